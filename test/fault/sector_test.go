package fault

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// sectors is a file system some of whose sectors cannot be read.
type sectors struct {
	*memfs.FS
	bad atomic.Pointer[func(name string, from, to int64) bool] // nil: all can be read
}

// fails says which sectors cannot be read from now on.
func (s *sectors) fails(bad func(name string, from, to int64) bool) {
	if bad == nil {
		s.bad.Store(nil)
		return
	}
	s.bad.Store(&bad)
}

type sectorFile struct {
	vfs.File
	fs   *sectors
	name string
}

// wholly is a file system of which sectors of segments cannot be read by who writes them either. Such files are not mapped.
type wholly struct{ *sectors }

func (w wholly) Create(name string) (vfs.File, error) {
	f, err := w.sectors.Create(name)
	if err != nil || !inSegment(name) {
		return f, err
	}
	return &sectorFile{f, w.sectors, name}, nil
}

var errDevice = errors.New("the device fails")

func (s *sectors) Open(name string) (vfs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &sectorFile{f, s, name}, nil
}

func (f *sectorFile) ReadAt(b []byte, offset int64) (int, error) {
	if bad := f.fs.bad.Load(); bad != nil && (*bad)(f.name, offset, offset+int64(len(b))) {
		return 0, errDevice
	}
	return f.File.ReadAt(b, offset)
}

// sectorRun is a database of which a part cannot be read.
type sectorRun struct {
	*testing.T
	fs   *sectors
	db   *pando.DB
	want map[string][]byte
}

func newSectorRun(t *testing.T) *sectorRun {
	r := &sectorRun{T: t, fs: &sectors{FS: memfs.New()}, want: map[string][]byte{}}
	r.open()
	r.write("old", 0, 3000)
	if err := r.db.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	r.reopen() // nothing is in memory
	return r
}

func (r *sectorRun) open() {
	r.Helper()
	var err error
	if r.db, err = pando.Open("db", &pando.Options{FS: r.fs, MemoryBytes: 1 << 20, ValueThreshold: 500}); err != nil {
		r.Fatal(err)
	}
}

func (r *sectorRun) reopen() {
	r.Helper()
	if err := r.db.Close(); err != nil {
		r.Fatal(err)
	}
	r.open()
}

func (r *sectorRun) write(what string, from, to int) {
	r.Helper()
	for i := from; i < to; i++ {
		k := fmt.Sprintf("key%05d", i)
		v := noise(what + k)[:60]
		if err := r.db.Put([]byte(k), v); err != nil {
			r.Fatalf("put %s: %v", k, err)
		}
		r.want[k] = v
	}
}

// readable counts the keys that can be read, and are right; the others fail with what the device says.
func (r *sectorRun) readable() (n int) {
	r.Helper()
	for k, v := range r.want {
		got, err := r.db.Get([]byte(k))
		switch {
		case err == nil && bytes.Equal(got, v):
			n++
		case err == nil, errors.Is(err, pando.ErrNotFound):
			r.Fatalf("%s has %d bytes, %v; want %d", k, len(got), err, len(v))
		}
	}
	return n
}

// leaf is a sector in the middle of the segments that have one: there lie leaves.
func leaf(name string, from, to int64) bool { return inSegment(name) && from < 50_512 && to > 50_000 }

func inSegment(name string) bool { return filepath.Ext(name) == ".seg" }

// badSector draws the sectors of a file, of which one in so many fails.
func badSector(name string, from, to int64, spread, salt uint64) bool {
	h := salt
	for _, c := range name {
		h = h*31 + uint64(c)
	}
	for sector := from / 512; sector <= (to-1)/512; sector++ {
		if x := (uint64(sector) + h) * 0x9e3779b97f4a7c15; (x>>32)%spread == 0 {
			return true
		}
	}
	return false
}

// A sector that cannot be read keeps nobody's changes from settling, and what lies in it is there again when it can be: it has
// deltas beside it.
func TestChangesBesideASectorThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSectorRun(t)
		defer func() {
			if err := r.db.Close(); err != nil {
				t.Error(err)
			}
		}()
		r.fs.fails(leaf)
		if n := r.readable(); n == len(r.want) || n == 0 {
			t.Fatalf("%d of %d keys can be read", n, len(r.want))
		}
		for round := range 5 {
			for i := round; i < 3000; i += 11 {
				r.write(fmt.Sprint("new", round), i, i+1)
			}
			if err := r.db.Checkpoint(ctx); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		report, err := r.db.Check(ctx)
		if err != nil || !errors.Is(report.Err(), errDevice) {
			t.Errorf("check says %v, %v", report.Err(), err)
		}
		if n := r.readable(); n == len(r.want) || n == 0 {
			t.Fatalf("%d of %d keys can be read", n, len(r.want))
		}
		r.reopen()
		r.fs.fails(nil)
		if n := r.readable(); n != len(r.want) {
			t.Errorf("the device works again, and %d of %d keys can be read", n, len(r.want))
		}
		if n, err := r.db.Count(nil, nil); err != nil || n != int64(len(r.want)) {
			t.Errorf("count says %d, %v", n, err)
		}
		if err := r.db.Compact(ctx, pando.CompactOptions{}); err != nil {
			t.Error(err)
		}
		if n := r.readable(); n != len(r.want) {
			t.Errorf("after compaction %d of %d keys can be read", n, len(r.want))
		}
	})
}

// A segment that the cleaner would empty cannot be while one of its sectors cannot be read: all else settles, and it is emptied when it can.
func TestCleaningBesideASectorThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSectorRun(t)
		defer func() {
			if err := r.db.Close(); err != nil {
				t.Error(err)
			}
		}()
		first := r.segments()[0]
		r.fs.fails(func(name string, from, to int64) bool { return filepath.Base(name) == first && leaf(name, from, to) })
		lost := r.unreadable()
		for round := range 3 {
			for i := range 3000 {
				if !lost[fmt.Sprintf("key%05d", i)] { // little is left of the segment but what cannot be read
					r.write(fmt.Sprint("new", round), i, i+1)
				}
			}
			if err := r.db.Checkpoint(ctx); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if n := len(r.unreadable()); n != len(lost) || !slices.Contains(r.segments(), first) {
			t.Fatalf("%d keys cannot be read, %d at first; segments: %v", n, len(lost), r.segments())
		}
		r.fs.fails(nil)
		time.Sleep(2 * time.Minute) // the cleaner comes back
		for i := range 2 {
			r.write("newest", i, i+1)
			if err := r.db.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n := r.readable(); n != len(r.want) || slices.Contains(r.segments(), first) {
			t.Errorf("the device works again, and %d of %d keys can be read; segments: %v, emptied: %s", n, len(r.want), r.segments(), first)
		}
	})
}

// What needs the page itself, a range that is deleted say, waits for a while; then the page is taken for damaged, and all settles.
func TestSectorThatStaysUnreadableIsDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSectorRun(t)
		defer func() {
			if err := r.db.Close(); err != nil {
				t.Error(err)
			}
		}()
		r.fs.fails(func(name string, _, _ int64) bool { return inSegment(name) })
		if err := r.db.DeleteRange([]byte("key00001"), []byte("key00002")); err != nil {
			t.Fatal(err)
		}
		delete(r.want, "key00001")
		for i := range 10 {
			err := r.db.Checkpoint(ctx)
			if !errors.Is(err, errDevice) || errors.Is(err, pando.ErrCorrupt) {
				t.Fatalf("attempt %d: %v", i, err)
			}
		}
		r.fs.fails(nil) // it has passed
		if err := r.db.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		if n := r.readable(); n != len(r.want) {
			t.Fatalf("%d of %d keys can be read", n, len(r.want))
		}
		r.reopen()
		r.fs.fails(leaf)
		lost := len(r.want) - r.readable()
		inside := r.firstUnreadable()
		if err := r.db.DeleteRange([]byte(inside), []byte(inside+"x")); err != nil {
			t.Fatal(err)
		}
		delete(r.want, inside)
		r.write("other", 0, 1)
		if err := r.db.Checkpoint(ctx); !errors.Is(err, errDevice) || errors.Is(err, pando.ErrCorrupt) {
			t.Fatalf("a moment later: %v", err)
		}
		time.Sleep(time.Minute) // the worker tries again and again
		if err := r.db.Checkpoint(ctx); err != nil {
			t.Fatalf("a minute later: %v", err)
		}
		r.fs.fails(nil)
		if n := r.readable(); n <= len(r.want)-lost || n == len(r.want) {
			t.Errorf("%d of %d keys can be read, %d were lost", n, len(r.want), lost)
		}
	})
}

// firstUnreadable is the first key of a leaf that cannot be read.
func (r *sectorRun) firstUnreadable() string {
	all := slices.Sorted(maps.Keys(r.unreadable()))
	if len(all) == 0 {
		r.Fatal("all can be read")
	}
	return all[0]
}

// unreadable returns the keys that cannot be read.
func (r *sectorRun) unreadable() map[string]bool {
	lost := map[string]bool{}
	for k := range r.want {
		if _, err := r.db.Get([]byte(k)); err != nil {
			lost[k] = true
		}
	}
	return lost
}

// segments returns the names of the segments, the oldest first.
func (r *sectorRun) segments() []string {
	r.Helper()
	names, err := r.fs.List("db/segments")
	if err != nil {
		r.Fatal(err)
	}
	slices.Sort(names)
	return names
}
