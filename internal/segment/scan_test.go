package segment

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
)

// scanned is what Scan said of a segment.
type scanned struct {
	blobs []Pointer
	raws  [][]byte
	gaps  [][2]int64
}

func scan(t testing.TB, s *Store, id uint32) scanned {
	t.Helper()
	var out scanned
	must(t, s.Scan(context.Background(), id, func(p Pointer, h Header, raw []byte) error {
		out.blobs, out.raws = append(out.blobs, p), append(out.raws, bytes.Clone(raw))
		return nil
	}, func(offset, length int64, err error) {
		if !errors.Is(err, corrupt.Err) || length <= 0 {
			t.Errorf("gap at %d of %d bytes: %v", offset, length, err)
		}
		out.gaps = append(out.gaps, [2]int64{offset, length})
	}))
	return out
}

// scanSegment makes a segment of blobs of all sizes.
func scanSegment(t testing.TB, fsys vfs.FS) (*Store, []Pointer, [][]byte) {
	t.Helper()
	o := testOptions(fsys)
	o.SegmentBytes = 8 << 20
	s := open(t, o, nil, 1)
	w := s.NewWriter(Nodes, 0)
	var ps []Pointer
	var raws [][]byte
	for i, n := range []int{100, 0, 5000, 1, 1_200_000, 70_000, 33, 4096, 8192, 12} {
		raw := noise(uint64(i), n)
		if i%2 == 0 {
			raw = text(uint64(i), n)
		}
		ps = append(ps, mustAppend(t, w, KindLeaf, Codec(i%3), raw))
		raws = append(raws, raw)
	}
	must(t, w.Sync())
	w.Commit()
	return s, ps, raws
}

func editSegment(t testing.TB, fsys vfs.FS, id uint32, edit func(b []byte) []byte) {
	t.Helper()
	name := filepath.Join(testDir, DirName, FileName(id))
	b, err := vfs.ReadFile(fsys, name, 1<<30)
	must(t, err)
	b = edit(bytes.Clone(b))
	f, err := fsys.OpenReadWrite(name)
	must(t, err)
	must(t, f.Truncate(int64(len(b))))
	_, err = f.WriteAt(b, 0)
	must(t, err)
	must(t, f.Close())
}

func TestScan(t *testing.T) {
	s, ps, raws := scanSegment(t, newFS(t))
	got := scan(t, s, ps[0].Segment)
	if !slices.Equal(got.blobs, ps) || len(got.gaps) != 0 {
		t.Fatalf("found %d of %d blobs, gaps %v", len(got.blobs), len(ps), got.gaps)
	}
	for i := range raws {
		if !bytes.Equal(got.raws[i], raws[i]) {
			t.Errorf("blob %d differs", i)
		}
	}
	stop := errors.New("stop")
	if err := s.Scan(context.Background(), ps[0].Segment, func(Pointer, Header, []byte) error { return stop }, nil); !errors.Is(err, stop) {
		t.Errorf("fn failed: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Scan(ctx, ps[0].Segment, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := s.Scan(context.Background(), 99, nil, nil); !errors.Is(err, ErrUnknownSegment) {
		t.Errorf("unknown segment: %v", err)
	}
}

// Whatever stretch is damaged, exactly the blobs in it are lost, and the gap that is reported is that of those blobs.
func TestScanResynchronises(t *testing.T) {
	fsys := newFS(t)
	s, ps, _ := scanSegment(t, fsys)
	id := ps[0].Segment
	original, err := vfs.ReadFile(fsys, filepath.Join(testDir, DirName, FileName(id)), 1<<30)
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 40 {
		at := FileHeaderSize + rng.IntN(len(original)-FileHeaderSize)
		if round < 20 { // small blobs are hit too
			p := ps[round%len(ps)]
			at = int(p.Offset) + rng.IntN(int(p.Length))
		}
		end := min(at+1+rng.IntN(1<<rng.IntN(18)), len(original))
		damage := func(b []byte) []byte {
			for i := at; i < end; i++ {
				b[i] ^= byte(1 + rng.IntN(255))
			}
			return b
		}
		if round%3 == 1 {
			damage = func(b []byte) []byte { clear(b[at:end]); b[at] = ^original[at]; return b }
		}
		editSegment(t, fsys, id, damage)
		var want []Pointer
		for _, p := range ps {
			if int(p.Offset+p.Length) <= at || int(p.Offset) >= end {
				want = append(want, p)
			}
		}
		got := scan(t, s, id)
		if !slices.Equal(got.blobs, want) || len(got.gaps) != 1 {
			t.Fatalf("round %d: damage at [%d,%d): found %d blobs, want %d; gaps %v", round, at, end, len(got.blobs), len(want), got.gaps)
		}
		editSegment(t, fsys, id, func([]byte) []byte { return original })
	}
}

func TestScanOfDamagedHeaderBlock(t *testing.T) {
	fsys := newFS(t)
	s, ps, _ := scanSegment(t, fsys)
	editSegment(t, fsys, ps[0].Segment, func(b []byte) []byte { b[offsetClass] ^= 4; return b })
	got := scan(t, s, ps[0].Segment)
	if !slices.Equal(got.blobs, ps) || len(got.gaps) != 1 || got.gaps[0] != [2]int64{0, FileHeaderSize} {
		t.Errorf("found %d of %d blobs, gaps %v", len(got.blobs), len(ps), got.gaps)
	}
}

func TestScanOfCutFile(t *testing.T) {
	fsys := newFS(t)
	s, ps, _ := scanSegment(t, fsys)
	last := ps[len(ps)-1]
	editSegment(t, fsys, last.Segment, func(b []byte) []byte { return b[:len(b)-1] })
	got := scan(t, s, last.Segment)
	if !slices.Equal(got.blobs, ps[:len(ps)-1]) || len(got.gaps) != 1 {
		t.Errorf("found %d of %d blobs, gaps %v", len(got.blobs), len(ps), got.gaps)
	}
}

// A sector that the device cannot read costs the blobs that lie in it, and no others.
func TestScanOverUnreadableSector(t *testing.T) {
	base := newFS(t)
	fsys := &badSector{FS: base}
	s, ps, _ := scanSegment(t, fsys)
	for _, p := range ps {
		fsys.from = int64(p.Offset) &^ (sectorBytes - 1)
		if fsys.from == 0 {
			continue
		}
		var want []Pointer
		for _, q := range ps {
			if int64(q.Offset+q.Length) <= fsys.from || int64(q.Offset) >= fsys.from+sectorBytes {
				want = append(want, q)
			}
		}
		if got := scan(t, s, p.Segment); !slices.Equal(got.blobs, want) {
			t.Errorf("bad sector at %d: found %d blobs, want %d; gaps %v", fsys.from, len(got.blobs), len(want), got.gaps)
		}
	}
}

// badSector is a file system that fails to read one sector of every file.
type badSector struct {
	vfs.FS
	from int64
}

type badFile struct {
	vfs.File
	fsys *badSector
}

func (b *badSector) Create(name string) (vfs.File, error) {
	f, err := b.FS.Create(name)
	return badFile{f, b}, err
}

func (f badFile) ReadAt(p []byte, off int64) (int, error) {
	if f.fsys.from > 0 && off < f.fsys.from+sectorBytes && off+int64(len(p)) > f.fsys.from {
		return 0, faultfs.ErrInjected
	}
	return f.File.ReadAt(p, off)
}

func TestLeadingZeros(t *testing.T) {
	for length := range 40 {
		for first := range length + 1 { // that is not zero
			b := make([]byte, length)
			for i := first; i < length; i += 3 {
				b[i] = 1
			}
			if n := leadingZeros(b); n != first {
				t.Errorf("%d zeros in front of %x, want %d", n, b, first)
			}
		}
	}
}
