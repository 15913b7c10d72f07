package wal

import (
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// TestRecoverOutOfMappings recovers a log of real files, which are mapped and have holes where nothing was written: as a killed process
// leaves it, with a segment that is ready; and with remains of a record behind a hole, which are found.
func TestRecoverOutOfMappings(t *testing.T) {
	for _, remains := range []bool{false, true} {
		o := Options{FS: osfs.New(), Dir: t.TempDir(), Database: database, SegmentBytes: 1 << 20, FirstBytes: MinSegmentBytes, Salt: salts()}
		l, err := Create(o, 1)
		must(t, err)
		var h history
		for _, n := range []int{100, 9000, 3, 20000, 70000, 1, 40} {
			must(t, h.append(t, l, n))
		}
		must(t, l.Prepare())
		if remains {
			leaveRemains(t, l)
		}
		o.SettleLater = !remains
		again, rec := recoverAll(t, o, Position{Segment: 1}, &h, 0, len(h.seqs))
		if (rec.Cut != nil) != remains {
			t.Errorf("remains: %t, and cut was %v", remains, rec.Cut)
		}
		must(t, again.Close())
		must(t, l.Close())
	}
}

// leaveRemains writes a frame far behind the end of the log.
func leaveRemains(t *testing.T, l *Log) {
	t.Helper()
	s := l.active
	offset := s.limit() - 8*blockSize
	if offset < l.offset+8*blockSize {
		t.Fatalf("no room for a hole in a segment of %d bytes, of which %d are used", s.size, l.offset)
	}
	f := frame{seq: l.last + 1, claim: at(s.segment, l.offset), kind: kindMark, span: 1}
	b := make([]byte, frameHeader)
	f.put(b, &s.header, offset)
	file, err := l.o.FS.OpenReadWrite(l.o.path(s.segment))
	must(t, err)
	_, err = file.WriteAt(b, offset)
	must(t, err)
	if finder, ok := file.(vfs.HoleFinder); ok {
		start, end, err := finder.Hole(l.offset)
		must(t, err)
		t.Logf("the hole is [%d, %d), the frame at %d", start, end, offset)
	}
	must(t, file.Close())
}

// TestRecoverReadsNoHole recovers a log whose last file is a hole for the most part, and asks the system what of it has come into memory:
// a single byte that was looked at brings in as much as the system reads ahead.
func TestRecoverReadsNoHole(t *testing.T) {
	o := Options{FS: osfs.New(), Dir: t.TempDir(), Database: database, SegmentBytes: 1 << 20, Salt: salts()}
	l, err := Create(o, 1)
	must(t, err)
	var h history
	for _, n := range []int{100, 9000, 3} {
		must(t, h.append(t, l, n))
	}
	finder, ok := l.active.file.(vfs.HoleFinder)
	if !ok || l.active.mapping == nil {
		t.Skip("no holes, or no mappings")
	}
	start, end, err := finder.Hole(firstFrame)
	must(t, err)
	resident := func() (n int) {
		pages := make([]bool, (end-start)/blockSize)
		if m, ok := l.active.mapping.(vfs.ResidentMapping); !ok || len(pages) == 0 || !m.Resident(start, pages) {
			t.Skip("the system does not tell what is in memory")
		}
		for _, in := range pages {
			if in {
				n++
			}
		}
		return n
	}
	if n := resident(); n > 0 {
		t.Skipf("of the hole [%d, %d) %d pages are in memory to begin with", start, end, n)
	}
	o.SettleLater = true
	again, _ := recoverAll(t, o, Position{Segment: 1}, &h, 0, len(h.seqs))
	if n := resident(); n > 0 {
		t.Errorf("of the hole [%d, %d) %d pages came into memory", start, end, n)
	}
	must(t, again.Close())
	must(t, l.Close())
}
