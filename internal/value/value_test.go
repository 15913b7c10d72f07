package value

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

const testDir = "db"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newStore(t testing.TB) (*segment.Store, *faultfs.FS) {
	t.Helper()
	fsys := faultfs.New(memfs.New())
	must(t, vfs.MkdirAllSync(fsys, testDir))
	s, err := segment.Open(segment.Options{FS: fsys, Dir: testDir, SegmentBytes: 8 << 20}, nil, 1)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if leaks := fsys.Leaks(); len(leaks) > 0 {
			t.Errorf("leaks: %v", leaks)
		}
	})
	return s, fsys
}

func noise(n int) []byte {
	rng := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	b := make([]byte, n)
	if _, err := rng.Read(b); err != nil {
		panic(err)
	}
	return b
}

func text(n int) []byte {
	return []byte(strings.Repeat(fmt.Sprintf("a value of %d bytes; ", n), n/20+1)[:n])
}

func live(s *segment.Store) int64 {
	var sum int64
	for _, i := range s.Segments() {
		sum += i.Live
	}
	return sum
}

var lengths = []int{0, 1, 31, 1000, 4096, 70_000, 100_000, ChunkBytes - 1, ChunkBytes, ChunkBytes + 1, 3 * ChunkBytes, 3*ChunkBytes + 77}

func TestValuesOfEveryLength(t *testing.T) {
	s, _ := newStore(t)
	for _, codec := range []segment.Codec{segment.None, segment.S2, segment.Zstd} {
		for _, n := range lengths {
			for name, val := range map[string][]byte{"noise": noise(n), "text": text(n)} {
				key := []byte(fmt.Sprintf("key of %s %d", name, n))
				r, err := Append(s, 7, codec, key, val)
				must(t, err)
				if back, err := DecodeRef(AppendRef(nil, r)); err != nil || back != r {
					t.Fatalf("reference %+v became %+v: %v", r, back, err)
				}
				checkValue(t, s, r, val)
				checkOwners(t, s, r, key)
			}
		}
	}
}

// checkValue reads a value in every way.
func checkValue(t *testing.T, s *segment.Store, r Ref, want []byte) {
	t.Helper()
	memory := make([]byte, 2*len(want)+300)
	for _, room := range []int{0, len(want), len(want) + 3, len(want) + 100, 2*len(want) + 200} {
		checkRead(t, s, r, want, room, memory)
	}
	must(t, Verify(s, r))
	clear(memory)
	out := bytes.NewBuffer(memory[:0])
	if n, err := NewReader(s, r).WriteTo(out); err != nil || n != int64(len(want)) || !bytes.Equal(out.Bytes(), want) {
		t.Fatalf("WriteTo gave %d bytes, %v", n, err)
	}
}

// checkRead reads a value into room for so many bytes of memory, behind others.
func checkRead(t *testing.T, s *segment.Store, r Ref, want []byte, room int, memory []byte) {
	t.Helper()
	const prefix = "prefix"
	memory = memory[:len(prefix)+room]
	clear(memory)
	dst := append(memory[:0:len(memory)], prefix...)
	got, err := Read(s, dst, r)
	must(t, err)
	if rest, ok := bytes.CutPrefix(got, []byte(prefix)); !ok || !bytes.Equal(rest, want) {
		t.Fatalf("%d bytes with room for %d: other bytes than written", len(want), room)
	}
	if room > 0 && room >= len(want) && len(want) > 0 && len(want) <= ChunkBytes && &got[0] != &dst[0] {
		t.Fatalf("%d bytes with room for %d: memory was allocated", len(want), room)
	}
}

func checkOwners(t *testing.T, s *segment.Store, r Ref, key []byte) {
	t.Helper()
	var buf segment.Buffer
	blobs := 0
	must(t, Walk(s, r, func(p segment.Pointer, kind segment.Kind) error {
		raw, h, err := s.Read(p, &buf)
		must(t, err)
		got, _, err := Owner(raw)
		if err != nil || !bytes.Equal(got, key) || h.Kind != kind || h.Keyspace != r.Keyspace {
			t.Fatalf("blob %+v of kind %d belongs to %q, want %q of kind %d: %v", p, h.Kind, got, key, kind, err)
		}
		blobs++
		return nil
	}))
	want := 1
	if r.Length > ChunkBytes {
		want = int((r.Length+ChunkBytes-1)/ChunkBytes) + 1
	}
	if blobs != want {
		t.Fatalf("a value of %d bytes has %d blobs, want %d", r.Length, blobs, want)
	}
}

func TestReaderIsAReader(t *testing.T) {
	s, _ := newStore(t)
	for _, n := range []int{0, 5000, ChunkBytes + 5} {
		val := noise(n)
		r, err := Append(s, 1, segment.S2, []byte("k"), val)
		must(t, err)
		if err := iotest.TestReader(NewReader(s, r), val); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// The way in which a value comes does not show in what is stored.
func TestWriterAcceptsAnyPieces(t *testing.T) {
	for _, n := range lengths {
		val := noise(n)
		for name, feed := range map[string]func(w *Writer) error{
			"whole": func(w *Writer) error { _, err := w.Write(val); return err },
			"small pieces": func(w *Writer) error {
				for rest := val; len(rest) > 0; {
					k := min(len(rest), 30_011)
					if m, err := w.Write(rest[:k]); err != nil || m != k {
						return fmt.Errorf("%d of %d: %w", m, k, err)
					}
					rest = rest[k:]
				}
				return nil
			},
			"reader": func(w *Writer) error { _, err := w.ReadFrom(bytes.NewReader(val)); return err },
			"lazy reader": func(w *Writer) error {
				_, err := w.ReadFrom(iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(val))))
				return err
			},
			"mixed": func(w *Writer) error {
				half := len(val) / 2
				if _, err := w.Write(val[:half]); err != nil {
					return err
				}
				_, err := w.ReadFrom(bytes.NewReader(val[half:]))
				return err
			},
		} {
			s, _ := newStore(t)
			w := NewWriter(s, 1, segment.None, []byte("key"))
			must(t, feed(w))
			r, err := w.Finish()
			must(t, err)
			if r.Length != uint64(n) {
				t.Fatalf("%s: %d bytes became %d", name, n, r.Length)
			}
			checkValue(t, s, r, val)
			checkOwners(t, s, r, []byte("key"))
			if _, err := w.Write([]byte("x")); err == nil {
				t.Error("write after Finish")
			}
			w.Abort()
			checkRead(t, s, r, val, 0, make([]byte, 100))
		}
	}
}

// What fails on the way leaves nothing that counts.
func TestErrors(t *testing.T) {
	s, fsys := newStore(t)
	for k := range 12 {
		fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Skip: k, Err: vfs.ErrNoSpace})
		_, err := Append(s, 1, segment.None, []byte("key"), noise(3*ChunkBytes))
		fsys.Set()
		if fsys.Triggered() > 0 && !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatalf("write %d failed: %v", k, err)
		}
		if err == nil {
			break
		}
	}
	if _, err := NewWriter(s, 1, segment.None, []byte("key")).ReadFrom(iotest.ErrReader(io.ErrNoProgress)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("failing reader: %v", err)
	}
	if _, err := Append(s, 1, segment.None, make([]byte, record.MaxKey+1), nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("long key: %v", err)
	}
	if _, err := Append(s, 1, segment.None, make([]byte, record.MaxKey), []byte("v")); err != nil {
		t.Errorf("longest key: %v", err)
	}
}

// A plain value comes with one read of the file system, into the caller's memory, without an allocation.
func TestPlainValueIsReadInPlace(t *testing.T) {
	s, fsys := newStore(t)
	val := noise(100_000)
	r, err := Append(s, 1, segment.None, []byte("some key"), val)
	must(t, err)
	dst := make([]byte, 0, len(val)+64)
	before := fsys.Count(faultfs.OpReadAt)
	got, err := Read(s, dst, r)
	must(t, err)
	if reads := fsys.Count(faultfs.OpReadAt) - before; reads != 1 || !bytes.Equal(got, val) {
		t.Errorf("%d reads", reads)
	}
}

func TestKeepCopyAndFree(t *testing.T) {
	s, _ := newStore(t)
	values := [][]byte{noise(100), text(200_000), noise(3*ChunkBytes + 9)}
	var refs []Ref
	for i, val := range values {
		r, err := Append(s, 4, segment.S2, []byte{byte(i)}, val)
		must(t, err)
		refs = append(refs, r)
	}
	if got := live(s); got != 0 {
		t.Errorf("%d bytes live before a root refers to them", got)
	}
	for i, r := range refs {
		fresh, err := Copy(s, r, []byte{byte(i)}, segment.Zstd)
		must(t, err)
		checkValue(t, s, fresh, values[i])
		checkOwners(t, s, fresh, []byte{byte(i)})
		before := live(s)
		w := s.NewWriter(segment.Nodes, 0)
		must(t, Keep(s, r, w))
		must(t, Keep(s, fresh, w))
		w.Commit()
		if got := live(s); got <= before {
			t.Errorf("%d bytes live before a root refers to value %d, %d after", before, i, got)
		}
		refs[i] = fresh
		w = s.NewWriter(segment.Nodes, 0)
		must(t, Free(s, r, w))
		w.Commit()
	}
	for _, r := range refs {
		w := s.NewWriter(segment.Nodes, 0)
		must(t, Free(s, r, w))
		w.Commit()
	}
	if got := live(s); got != 0 {
		t.Errorf("%d bytes live after everything was freed", got)
	}
}

// Damage anywhere in a value is an error that names the file, and leaves the caller's bytes alone.
func TestDamage(t *testing.T) {
	for _, codec := range []segment.Codec{segment.None, segment.S2} {
		for _, n := range []int{500, ChunkBytes + 10} {
			s, fsys := newStore(t)
			val := text(n)
			r, err := Append(s, 1, codec, []byte("key"), val)
			must(t, err)
			must(t, Walk(s, r, func(p segment.Pointer, _ segment.Kind) error {
				for _, at := range []int64{segment.HeaderSize, (segment.HeaderSize + int64(p.Length)) / 2, int64(p.Length) - 1} {
					flip(t, fsys, p, at)
					got, err := Read(s, []byte("before"), r)
					var damage *corrupt.Error
					if !errors.As(err, &damage) || damage.File == "" || string(got) != "before" {
						t.Errorf("byte %d of %d: %d bytes, %v", at, p.Length, len(got), err)
					}
					if err := Verify(s, r); !errors.Is(err, corrupt.Err) {
						t.Errorf("Verify: %v", err)
					}
					if _, err := io.Copy(io.Discard, NewReader(s, r)); !errors.Is(err, corrupt.Err) {
						t.Errorf("Reader: %v", err)
					}
					flip(t, fsys, p, at)
				}
				return nil
			}))
			checkValue(t, s, r, val)
		}
	}
}

func flip(t *testing.T, fsys vfs.FS, p segment.Pointer, at int64) {
	t.Helper()
	f, err := fsys.OpenReadWrite(filepath.Join(testDir, segment.DirName, fmt.Sprintf("%08x.seg", p.Segment)))
	must(t, err)
	var c [1]byte
	_, err = f.ReadAt(c[:], int64(p.Offset)+at)
	must(t, err)
	c[0] ^= 0x10
	_, err = f.WriteAt(c[:], int64(p.Offset)+at)
	must(t, err)
	must(t, f.Close())
}

// A reference that fits another blob than it says is found out.
func TestForeignReferences(t *testing.T) {
	s, _ := newStore(t)
	short, err := Append(s, 1, segment.S2, []byte("key"), text(1000))
	must(t, err)
	long, err := Append(s, 1, segment.S2, []byte("key"), text(2*ChunkBytes))
	must(t, err)
	w := s.NewWriter(segment.Nodes, 0)
	leaf, err := w.Append(segment.KindLeaf, 1, segment.None, 0, text(1000))
	must(t, err)
	must(t, w.Flush())
	w.Commit()
	for name, change := range map[string]func() Ref{
		"other length":          func() Ref { r := short; r.Length++; return r },
		"other keyspace":        func() Ref { r := short; r.Keyspace++; return r },
		"index as a value":      func() Ref { r := long; r.Length = 1000; return r },
		"value as an index":     func() Ref { r := short; r.Length = 2 * ChunkBytes; return r },
		"index of other length": func() Ref { r := long; r.Length++; return r },
		"leaf as a value":       func() Ref { return Ref{Pointer: leaf, Length: 990, Keyspace: 1} },
		"leaf as a plain value": func() Ref { return Ref{Pointer: leaf, Length: 990, Keyspace: 1, Plain: true} },
		"plain with a huge key": func() Ref { return Ref{Pointer: leaf, Length: 999, Keyspace: 1, Plain: true} },
		"packed read as plain":  func() Ref { r := short; r.Plain = true; return r },
		"pointer to nothing":    func() Ref { return Ref{} },
	} {
		if _, err := Read(s, nil, change()); !errors.Is(err, corrupt.Err) {
			t.Errorf("%s: %v", name, err)
		}
		if err := Verify(s, change()); !errors.Is(err, corrupt.Err) && name != "packed read as plain" {
			t.Errorf("%s: Verify: %v", name, err)
		}
	}
}

func TestAllocations(t *testing.T) {
	s, _ := newStore(t)
	plain, err := Append(s, 1, segment.None, []byte("key"), noise(5000))
	must(t, err)
	packed, err := Append(s, 1, segment.S2, []byte("key"), text(5000))
	must(t, err)
	dst := make([]byte, 0, 6000)
	for name, r := range map[string]Ref{"plain": plain, "packed": packed} {
		got := testing.AllocsPerRun(100, func() {
			if _, err := Read(s, dst, r); err != nil {
				t.Fatal(err)
			}
		})
		if got > 0 && !raceEnabled {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func FuzzRef(f *testing.F) {
	f.Add(AppendRef(nil, Ref{Pointer: segment.Pointer{Segment: 1, Offset: 64, Length: 1 << 10}, Length: 900, Keyspace: 3, Plain: true}))
	f.Add(AppendRef(nil, Ref{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRef(b)
		if err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatalf("unnamed error: %v", err)
			}
			return
		}
		if !bytes.Equal(AppendRef(nil, r), b) {
			t.Fatal("not what was decoded")
		}
	})
}

func FuzzPayload(f *testing.F) {
	chunk := Ref{Pointer: segment.Pointer{Segment: 1, Offset: 64, Length: ChunkBytes + 30}, Length: ChunkBytes, Keyspace: 3}
	last := chunk
	last.Length = 5
	f.Add(append(appendIndex(nil, ChunkBytes+5, []Ref{chunk, last}), "key\x03\x00\x00\x00"...))
	f.Add([]byte("valuekey\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		key, content, err := Owner(raw)
		if err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatalf("unnamed error: %v", err)
			}
			return
		}
		if len(key)+len(content)+tailSize != len(raw) {
			t.Fatal("bytes were lost")
		}
		x, err := decodeIndex(raw)
		if err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatalf("unnamed error: %v", err)
			}
			return
		}
		var chunks []Ref
		for i := range x.count() {
			chunks = append(chunks, x.chunk(i))
		}
		if !bytes.Equal(appendIndex(nil, x.total, chunks), content) {
			t.Fatal("not what was decoded")
		}
	})
}
