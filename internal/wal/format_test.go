package wal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/test/golden"
)

// goldenLog has each kind of frame and both kinds of header. A released format never changes: if this test fails, the version
// must change.
func goldenLog(t *testing.T) Options {
	t.Helper()
	o := options(newFS(t), true)
	o.Salt = func() uint64 { return 0x0123456789abcdef }
	l, err := Create(o, 1)
	must(t, err)
	add := func(seq uint64, p []byte) {
		_, err := l.Append(seq, p)
		must(t, err)
	}
	add(3, []byte("hello"))
	must(t, l.Sync())
	add(4, nil)
	add(7, bytes.Repeat([]byte("split"), 4000))
	must(t, l.Close())
	l, _, err = Recover(o, Position{Segment: 1}, func(uint64, []byte, bool) error { return nil })
	must(t, err)
	add(8, []byte("after reopening"))
	must(t, l.Close())
	return o
}

// dump shows the lines of 16 bytes that are not zero, repeated ones only once, under the names of docs/format/wal.md.
func dump(data []byte) string {
	var b strings.Builder
	skipped := false
	for at := 0; at < len(data); at += 16 {
		line := data[at : at+16]
		if !slices.ContainsFunc(line, func(c byte) bool { return c != 0 }) || at > firstFrame+112 && at < len(data)-blockSize-16 {
			skipped = true
			continue
		}
		if skipped {
			b.WriteString("  ...\n")
			skipped = false
		}
		fmt.Fprintf(&b, "%08x  % x  % x%s\n", at, line[:8], line[8:], note(at))
	}
	return b.String()
}

func note(at int) string {
	switch at {
	case 0:
		return "   offMagic, offVersion"
	case offDatabase:
		return "   offDatabase"
	case offSegment:
		return "   offSegment, offSalt"
	case offSize:
		return "   offSize, offPrevSegment"
	case offPrevSalt:
		return "   offPrevSalt, offPrevEnd"
	case offDurable:
		return "   offDurable"
	case offHeaderCRC &^ 15:
		return "   offHeaderCRC"
	case firstFrame:
		return "   offLength, offPayloadCRC, offSeq"
	case firstFrame + offClaim:
		return "   offClaim, offSpanKind, offFrameCRC"
	}
	return ""
}

func TestGolden(t *testing.T) {
	o := goldenLog(t)
	names, err := o.FS.List(dir)
	must(t, err)
	var b strings.Builder
	for _, name := range names {
		f, err := o.FS.Open(dir + "/" + name)
		must(t, err)
		size, err := f.Size()
		must(t, err)
		data, err := readUpTo(f, make([]byte, size), 0)
		must(t, err)
		must(t, f.Close())
		fmt.Fprintf(&b, "%s, %d bytes\n%s\n", name, size, dump(data))
	}
	golden.Compare(t, "log.golden", b.String())
	var got replayed
	_, err = Replay(o, Position{Segment: 1}, got.add)
	must(t, err)
	if !slices.Equal(got.seqs, []uint64{3, 4, 7, 8}) || len(got.payloads[2]) != 20000 {
		t.Fatalf("replayed %v", got.seqs)
	}
}

func TestNewerVersion(t *testing.T) {
	o := options(newFS(t), true)
	l, err := Create(o, 1)
	must(t, err)
	must(t, l.Close())
	f, err := o.FS.OpenReadWrite(o.path(1))
	must(t, err)
	im := image{files: map[uint64]*imageFile{1: {data: make([]byte, MinSegmentBytes)}}}
	h, err := readUpTo(f, make([]byte, headerLength), 0)
	must(t, err)
	h[offVersion] = version + 1
	im.stamp(1, h)
	_, err = f.WriteAt(h, 0)
	must(t, err)
	must(t, f.Close())
	if _, _, err := Recover(o, Position{Segment: 1}, nil); !errors.Is(err, ErrVersion) {
		t.Fatal(err)
	}
}

func TestNames(t *testing.T) {
	for _, n := range []uint64{0, 1, 0xabcdef12, 1<<32 - 1} {
		if got, ok := parseName(baseName(n)); !ok || got != n {
			t.Fatalf("%s is segment %d", baseName(n), got)
		}
	}
	for _, name := range []string{"", ".wal", "1.wal", "0000000A.wal", "00000001.wal.tmp", "000000001.wal", "+0000001.wal"} {
		if _, ok := parseName(name); ok {
			t.Fatalf("%q was taken for a segment", name)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add((&header{database: database, segment: 7, salt: 5, size: MinSegmentBytes, prevSegment: noSegment}).encode())
	f.Add((&header{database: database, segment: 7, salt: 5, size: MaxSegmentBytes, prevSegment: 3, prevEnd: 4104}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHeader(b)
		if err == nil && h.prevSegment == noSegment && h.prevSalt == 0 {
			if again, err := decodeHeader(h.encode()); err != nil || again != h {
				t.Fatalf("%+v became %+v, %v", h, again, err)
			}
		}
	})
}

func FuzzFrame(f *testing.F) {
	h := header{segment: 1, salt: 99, size: MinSegmentBytes}
	b := make([]byte, 64)
	fr := frame{length: 32, seq: 9, span: 2, claim: at(1, firstFrame), kind: kindFull}
	fr.put(b, &h, 8192)
	f.Add(b, int64(8192))
	f.Fuzz(func(t *testing.T, b []byte, offset int64) {
		offset &= MinSegmentBytes - 1
		got, ok := decodeFrame(b, &h, offset, h.limit())
		if !ok {
			return
		}
		if got.length < 0 || offset+got.room() > h.limit() {
			t.Fatalf("%+v reaches beyond the limit", got)
		}
		again := make([]byte, frameHeader)
		got.put(again, &h, offset)
		if !bytes.Equal(again, b[:frameHeader]) {
			t.Fatalf("%+v is written as %x, was %x", got, again, b[:frameHeader])
		}
	})
}

// FuzzReplay changes bytes of a log, makes header checksums right again so that deep code is reached, and recovers it.
func FuzzReplay(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, false)
	f.Add([]byte{0, 32, 0, 1, 0, 16, 0, 2}, true)
	f.Fuzz(func(t *testing.T, edits []byte, stamp bool) {
		o := goldenLog(t)
		for ; len(edits) >= 4; edits = edits[4:] {
			file, err := o.FS.OpenReadWrite(o.path(1 + uint64(edits[0]%4)))
			must(t, err)
			offset := int64(edits[1])<<8 | int64(edits[2])
			_, err = file.WriteAt(edits[3:4], offset%MinSegmentBytes)
			must(t, err)
			if stamp {
				b, err := readUpTo(file, make([]byte, headerLength), 0)
				must(t, err)
				im := image{files: map[uint64]*imageFile{1: {data: make([]byte, MinSegmentBytes)}}}
				im.stamp(1, b)
				_, err = file.WriteAt(b, 0)
				must(t, err)
			}
			must(t, file.Close())
		}
		var got replayed
		l, _, err := Recover(o, Position{Segment: 1}, got.add)
		if err != nil {
			if !errors.Is(err, corrupt.Err) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		want := []uint64{3, 4, 7, 8}
		if len(got.seqs) > len(want) || !slices.Equal(got.seqs, want[:len(got.seqs)]) {
			t.Fatalf("replayed %v", got.seqs)
		}
		must(t, l.Close())
	})
}
