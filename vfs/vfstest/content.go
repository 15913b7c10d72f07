package vfstest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/pandodb/pando/vfs"
)

// mapOrSkip maps f, or ends the test where files cannot be mapped.
func (e env) mapOrSkip(f vfs.File, length int64) vfs.Mapping {
	e.t.Helper()
	m, err := f.Map(length)
	if errors.Is(err, errors.ErrUnsupported) {
		e.must(f.Close())
		e.t.Skip("files cannot be mapped here")
	}
	e.must(err)
	return m
}

// testPieces writes pieces in one call: more than any system takes at a time, empty ones, and none.
func testPieces(t *testing.T, e env) {
	f := e.create("f", "0123456789")
	w, ok := f.(vfs.PieceWriter)
	if !ok {
		e.must(f.Close())
		t.Skip("files are written in one piece here")
	}
	pieces := [][]byte{nil, []byte("ab"), {}, []byte("c"), nil}
	want := "0123abc789"
	n, err := w.WritePiecesAt(pieces, 4)
	e.must(err)
	if n != 3 || string(pieces[1]) != "ab" {
		t.Errorf("%d bytes of 3 written, from %q", n, pieces)
	}
	e.holds("f", want)
	if n, err = w.WritePiecesAt(nil, 4); n != 0 || err != nil {
		t.Errorf("no pieces: %d bytes, %v", n, err)
	}
	pieces = nil
	for i := range 3000 {
		pieces = append(pieces, bytes.Repeat([]byte{byte(i)}, i%5))
	}
	n, err = w.WritePiecesAt(pieces, 10)
	e.must(err)
	want += string(bytes.Join(pieces, nil))
	if n != len(want)-10 {
		t.Errorf("%d bytes of %d written", n, len(want)-10)
	}
	e.holds("f", want)
	_, err = w.WritePiecesAt([][]byte{[]byte("x")}, -1)
	e.fails(err, "a write at a negative offset")
	e.must(f.Close())
	_, err = w.WritePiecesAt([][]byte{[]byte("x")}, 0)
	e.is(err, fs.ErrClosed)
	e.holds("f", want)
}

func testMap(t *testing.T, e env) {
	f := e.create("f", "0123456789")
	e.must(f.Allocate(8192))
	m := e.mapOrSkip(f, 8192)
	b := m.Bytes()
	if len(b) != 8192 || string(b[:10]) != "0123456789" {
		t.Fatalf("mapped %d bytes, %q", len(b), b[:10])
	}
	if uintptr(unsafe.Pointer(&b[0]))%4096 != 0 {
		t.Error("the mapping is not aligned to a page")
	}
	copy(b[5000:], "stored")
	p := make([]byte, 6)
	_, err := f.ReadAt(p, 5000)
	if err != nil || string(p) != "stored" {
		t.Errorf("ReadAt sees %q, %v", p, err)
	}
	_, err = f.WriteAt([]byte("WRITTEN"), 100)
	e.must(err)
	if string(b[100:107]) != "WRITTEN" {
		t.Errorf("the mapping sees %q", b[100:107])
	}
	e.must(f.Sync())
	copy(b[6000:], "later")

	g, err := e.Open(e.path("f"))
	e.must(err)
	_, err = g.ReadAt(p[:5], 6000)
	if err != nil || string(p[:5]) != "later" {
		t.Errorf("another handle sees %q, %v", p[:5], err)
	}
	e.must(g.Close())
	second := e.mapOrSkip(f, 4096)
	copy(second.Bytes(), "SECOND")
	if string(b[:6]) != "SECOND" {
		t.Error("two mappings of one file differ")
	}
	e.must(second.Close())
	copy(b, "still ")
	e.must(m.Close())
	e.fails(m.Close(), "closing a mapping twice")
	_, err = f.ReadAt(p, 0)
	if err != nil || string(p) != "still " {
		t.Errorf("after unmapping the file holds %q, %v", p, err)
	}
	e.must(f.Truncate(100000)) // growing is allowed again
	e.must(f.Close())
}

func testMapErrors(t *testing.T, e env) {
	f := e.create("f", "0123456789")
	e.must(e.mapOrSkip(f, 10).Close())
	for _, length := range []int64{-1, 0, 11, 1 << 20} {
		if _, err := f.Map(length); err == nil {
			t.Errorf("mapped %d bytes of a file of 10", length)
		}
	}
	e.must(f.Close())
	f, err := e.Open(e.path("f"))
	e.must(err)
	_, err = f.Map(10)
	e.fails(err, "mapping a file opened for reading")
	e.must(f.Close())
}

// testConcurrent has disjoint writers and readers of one file; it is for the race detector as much as for its own checks.
func testConcurrent(t *testing.T, e env) {
	const workers, block, rounds = 4, 1000, 50
	f := e.create("f", "")
	e.must(f.Allocate(workers * block))
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			off := int64(w * block)
			want, got := make([]byte, block), make([]byte, block)
			for r := range rounds {
				for i := range want {
					want[i] = byte(w*31 + r + i)
				}
				_, writeErr := f.WriteAt(want, off)
				_, readErr := f.ReadAt(got, off)
				if readErr == io.EOF {
					readErr = nil
				}
				var syncErr error
				if r%16 == 0 {
					syncErr = f.Sync()
				}
				if err := errors.Join(writeErr, readErr, syncErr); err != nil || !bytes.Equal(got, want) {
					t.Errorf("worker %d: wrong bytes in round %d (%v)", w, r, err)
					return
				}
			}
		})
	}
	group.Wait()
	e.must(f.Close())
}

// testAgainstModel compares one file with a byte slice over a random program.
func testAgainstModel(t *testing.T, e env) {
	const steps, sizeMax = 400, 40000
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	f := e.create("f", "")
	var model []byte
	for step := range steps {
		off := rng.IntN(sizeMax)
		switch rng.IntN(8) {
		case 0:
			e.must(f.Truncate(int64(off)))
			model = resized(model, off)
		case 1:
			e.must(f.Allocate(int64(off)))
			model = resized(model, max(off, len(model)))
		case 2:
			e.must(f.Sync())
		case 3, 4:
			p := make([]byte, rng.IntN(5000))
			n, err := f.ReadAt(p, int64(off))
			want := model[min(off, len(model)):min(off+len(p), len(model))]
			if !bytes.Equal(p[:n], want) || (err == io.EOF) != (n < len(p)) && n < len(p) {
				t.Fatalf("step %d: read at %d: %d bytes, %v; want %d", step, off, n, err, len(want))
			}
		default:
			p := make([]byte, rng.IntN(5000)+1)
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			_, err := f.WriteAt(p, int64(off))
			e.must(err)
			model = resized(model, max(off+len(p), len(model)))
			copy(model[off:], p)
		}
		e.size(f, int64(len(model)))
	}
	e.must(f.Close())
	e.holds("f", string(model))
}

func resized(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-len(b))...)
}
