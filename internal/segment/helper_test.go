package segment

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/test/entropy"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

const testDir = "db"

func testOptions(fs vfs.FS) Options {
	return Options{FS: fs, Dir: testDir, Database: [16]byte{1, 2, 3}, SegmentBytes: 1 << 20}
}

func newFS(t testing.TB) *memfs.FS {
	t.Helper()
	fs := memfs.New()
	if err := fs.MkdirAll(testDir); err != nil {
		t.Fatal(err)
	}
	if err := fs.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	return fs
}

func open(t testing.TB, o Options, table []Info, nextID uint32) *Store {
	t.Helper()
	s, err := Open(o, table, nextID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func emptyStore(t testing.TB) *Store {
	t.Helper()
	return open(t, testOptions(newFS(t)), nil, 1)
}

// text is n bytes that compress well, different for each seed.
func text(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 0, n+32)
	for len(b) < n {
		b = strconv.AppendInt(append(b, "name-"...), rng.Int64N(50), 10)
		b = append(strconv.AppendInt(append(b, " has value "...), rng.Int64N(1000), 10), "; "...)
	}
	return b[:n]
}

// noise is n bytes that do not compress.
func noise(seed uint64, n int) []byte { return entropy.Bytes(rand.New(rand.NewPCG(seed, 2)), n) }

func mustAppend(t testing.TB, w *Writer, kind Kind, codec Codec, raw []byte) Pointer {
	t.Helper()
	p, err := w.Append(kind, 7, codec, 0, raw)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustRead(t testing.TB, s *Store, p Pointer, want []byte) Header {
	t.Helper()
	var buf Buffer
	raw, h, err := s.Read(p, &buf)
	if err != nil {
		t.Fatalf("read %+v: %v", p, err)
	}
	if !bytes.Equal(raw, want) {
		t.Fatalf("read %+v: %d bytes differ from the %d written", p, len(raw), len(want))
	}
	return h
}

func wantCorrupt(t testing.TB, err error) {
	t.Helper()
	var damage *corrupt.Error
	if !errors.Is(err, corrupt.Err) || !errors.As(err, &damage) || damage.File == "" {
		t.Fatalf("got %v, want a *corrupt.Error", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
