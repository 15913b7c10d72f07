package segment

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/parts"
	"github.com/pandodb/pando/test/golden"
	"github.com/pandodb/pando/vfs"
)

// goldenBlob is what the golden files hold.
type goldenBlob struct {
	kind  Kind
	codec Codec
	raw   []byte
}

// writeGolden makes a segment of blobs and describes it, byte by byte.
func writeGolden(t *testing.T, blobs []goldenBlob) string {
	t.Helper()
	fsys := newFS(t)
	s := open(t, testOptions(fsys), nil, goldenID)
	w := s.NewWriter(Nodes, 0x0708)
	var dump strings.Builder
	for _, b := range blobs {
		p := mustAppend(t, w, b.kind, b.codec, b.raw)
		fmt.Fprintf(&dump, "# kind %d, codec %d, %.100q: %+v\n", b.kind, b.codec, b.raw, p)
	}
	must(t, w.Sync())
	w.Commit()
	content, err := vfs.ReadFile(fsys, filepath.Join(testDir, DirName, "00001a2b.seg"), 1<<20)
	must(t, err)
	return dump.String() + golden.HexDump(content)
}

const goldenID = 0x1a2b

// TestGoldenSegment holds the format of segment files: a change of it shows as a change of the golden file.
func TestGoldenSegment(t *testing.T) {
	golden.Compare(t, "segment.txt", writeGolden(t, []goldenBlob{
		{KindLeaf, None, []byte("a leaf")}, {KindFilter, None, nil}, {KindCatalogue, None, []byte("a catalogue")},
		{KindLeaf, None, longLeaf()},
	}))
}

// longLeaf is a page that is stored in parts.
func longLeaf() []byte {
	page := []byte("\x03\x04key/")
	for _, c := range "abc" {
		page = append(append(binary.AppendUvarint(append(page, 1), 600<<3), byte(c)), bytes.Repeat([]byte{byte(c)}, 600)...)
	}
	return page
}

// TestGoldenCompressed holds that compressed blobs of old can be read. What compressing gives may change with the machine.
func TestGoldenCompressed(t *testing.T) {
	blobs := []goldenBlob{
		{KindDelta, S2, []byte(strings.Repeat("a delta ", 10))},
		{KindInner, Zstd, []byte(strings.Repeat("an inner node; ", 10))},
	}
	dump := golden.Kept(t, "compressed.txt", func() string { return writeGolden(t, blobs) })
	var content []byte
	for line := range strings.Lines(dump) {
		if !strings.HasPrefix(line, "#") {
			row, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(line[6:]), " ", ""))
			must(t, err)
			content = append(content, row...)
		}
	}
	fsys := newFS(t)
	must(t, fsys.MkdirAll(filepath.Join(testDir, DirName)))
	must(t, vfs.WriteFile(fsys, filepath.Join(testDir, DirName, FileName(goldenID)), content))
	s := open(t, testOptions(fsys), []Info{{ID: goldenID, Class: Nodes, Size: int64(len(content))}}, goldenID+1)
	got := scan(t, s, goldenID)
	if len(got.gaps) > 0 || len(got.raws) != len(blobs) {
		t.Fatalf("%d blobs, gaps %v", len(got.raws), got.gaps)
	}
	for i, b := range blobs {
		if h := mustRead(t, s, got.blobs[i], b.raw); h.Codec != b.codec || h.Kind != b.kind {
			t.Errorf("header %+v", h)
		}
	}
}

// Reading with a warm buffer costs no allocation, whatever the codec.
func TestReadAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := emptyStore(t)
	must(t, s.AddDictionary(1, text(5, 4096)))
	w := s.NewWriter(Nodes, 0)
	var ps []Pointer
	for codec := None; codec <= ZstdDictionary; codec++ {
		p, err := w.Append(KindLeaf, 0, codec, uint16(codec/ZstdDictionary), text(1, 8192))
		must(t, err)
		ps = append(ps, p)
	}
	parted, _ := partedPage(t, 70)
	ps = append(ps, mustAppend(t, w, KindLeaf, S2, parted))
	must(t, w.Flush())
	w.Commit()
	for i, p := range ps {
		var buf Buffer
		read := func() {
			if _, _, err := s.Read(p, &buf); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * max(runtime.GOMAXPROCS(0), 2) { // zstd has a decoder for each processor, and each has to be warm
			read()
		}
		if got := testing.AllocsPerRun(50, read); got > 0 {
			t.Errorf("codec %d: %v allocations", i, got)
		}
	}
}

func FuzzPointer(f *testing.F) {
	f.Add(AppendPointer(nil, Pointer{1, 64, 24, 99}))
	f.Add(make([]byte, PointerSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodePointer(b)
		if err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatalf("unnamed error: %v", err)
			}
			return
		}
		if !bytes.Equal(AppendPointer(nil, p), b[:PointerSize]) {
			t.Fatal("not what was decoded")
		}
	})
}

func FuzzFileHeader(f *testing.F) {
	f.Add(fileHeader{id: 7, database: [16]byte{1}, class: Values, keyspace: 3}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := decodeFileHeader(b); err == nil && !bytes.Equal(h.encode()[:32], b[:32]) {
			t.Fatal("not what was decoded")
		}
	})
}

// FuzzPayload gives the decoders payloads that have passed the checksum.
func FuzzPayload(f *testing.F) {
	var c codecs
	for _, codec := range []Codec{S2, Zstd} {
		payload, used, err := c.appendStored(nil, codec, 0, thorough, text(1, 2000))
		if err != nil || used != codec {
			f.Fatal(err)
		}
		f.Add(byte(codec), uint32(2000), payload)
	}
	leaf := leafPage(300)
	payload, used, err := c.appendStored(nil, Columns, 0, thorough, leaf)
	if err != nil || used != Columns {
		f.Fatal(used, err)
	}
	f.Add(byte(Columns), uint32(len(leaf)), payload)
	parted, _ := partedPage(f, 70)
	stencil, ok := parts.AppendStencil(nil, parted)
	if !ok {
		f.Fatal("no stencil")
	}
	f.Add(byte(Stencil), uint32(len(parted)), stencil)
	if err := c.add(1, text(2, 500)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, codec byte, raw uint32, payload []byte) {
		h := Header{Kind: KindLeaf, Codec: Codec(codec), Stored: uint32(len(payload)), Raw: raw}
		if h.Codec == ZstdDictionary {
			h.Dictionary = 1
		}
		if h.check() != nil || h.Codec == None || raw > 1<<20 {
			return
		}
		if out, err := c.decode(nil, h, payload); err == nil && len(out) != int(raw) {
			t.Fatalf("%d bytes instead of %d", len(out), raw)
		}
	})
}

// FuzzScan gives Scan files of any content, with and without blobs that verify in it.
func FuzzScan(f *testing.F) {
	f.Add([]byte("junk"), uint16(3), []byte("payload"))
	f.Add(make([]byte, 200), uint16(100), []byte{})
	f.Fuzz(func(t *testing.T, junk []byte, at uint16, payload []byte) {
		fsys := newFS(t)
		s := open(t, testOptions(fsys), nil, 1)
		w := s.NewWriter(Nodes, 0)
		mustAppend(t, w, KindLeaf, None, nil)
		must(t, w.Flush())
		w.Commit()
		offset := FileHeaderSize + min(int(at), len(junk))
		blob := append(make([]byte, HeaderSize), payload...)
		p := s.seal(blob, Header{Kind: KindLeaf, Stored: uint32(len(payload)), Raw: uint32(len(payload))}, 1, uint32(offset))
		editSegment(t, fsys, 1, func(b []byte) []byte {
			b = append(b[:FileHeaderSize], junk[:offset-FileHeaderSize]...)
			return append(append(b, blob...), junk[offset-FileHeaderSize:]...)
		})
		if !bytes.Contains(junk, blob) && binary.LittleEndian.Uint64(blob) == p.Sum {
			for _, found := range scan(t, s, 1).blobs {
				if found == p {
					return
				}
			}
			t.Fatal("the blob was not found")
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for _, codec := range []Codec{None, S2, Zstd, Columns} {
		b.Run(fmt.Sprintf("codec=%d", codec), func(b *testing.B) {
			s := emptyStore(b)
			w := s.NewWriter(Nodes, 0)
			raw := text(1, 8192)
			if codec == Columns {
				raw = leafPage(400)
			}
			b.SetBytes(int64(len(raw)))
			p := mustAppend(b, w, KindLeaf, codec, raw)
			must(b, w.Flush())
			w.Commit()
			var buf Buffer
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := s.Read(p, &buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for name, raw := range map[string][]byte{"text": text(1, 8192), "noise": noise(1, 8192), "longnoise": noise(1, 100_000)} {
		for _, codec := range []Codec{None, S2, Zstd} {
			b.Run(fmt.Sprintf("%s/codec=%d", name, codec), func(b *testing.B) {
				var c codecs
				var dst []byte
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if dst, _, err = c.appendStored(dst[:0], codec, 0, thorough, raw); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
