package segment

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// storeWithHandles is a store of small segments that keeps so many files open.
func storeWithHandles(t testing.TB, fsys vfs.FS, dir string, most int64) *Store {
	t.Helper()
	o := testOptions(fsys)
	o.Dir, o.SegmentBytes, o.MapBytes = dir, 8<<10, 1<<20
	s := open(t, o, nil, 1)
	s.handles.most.Store(most)
	return s
}

// written is what lies in a store.
type written struct {
	pointers []Pointer
	contents [][]byte
}

// manySegments fills segments of both classes, so many of each, and makes everything durable.
func manySegments(t testing.TB, s *Store, n int) (all written) {
	t.Helper()
	for i := range n {
		seed := uint64(i)
		w := s.NewWriter(Nodes, 0)
		content := noise(seed, 5000)
		all.add(mustAppend(t, w, KindLeaf, None, content), content)
		must(t, w.Sync())
		w.Commit()
		content = noise(seed+1<<32, 5000)
		p, err := s.AppendValue(1, None, content)
		must(t, err)
		all.add(p, content)
	}
	s.SealValues()
	must(t, s.SyncValues())
	return all
}

func (all *written) add(p Pointer, content []byte) {
	all.pointers, all.contents = append(all.pointers, p), append(all.contents, content)
}

func (all *written) mustRead(t testing.TB, s *Store, i int) {
	t.Helper()
	mustRead(t, s, all.pointers[i], all.contents[i])
}

// onlyOpenListed makes sure that the files in which others to close are looked for are those that are open.
func onlyOpenListed(t testing.TB, s *Store) {
	t.Helper()
	for i, f := range s.handles.files {
		if f.place != i || f.handle.Load() == nil {
			t.Errorf("%s is at %d of the open files, by itself at %d; open: %v", f.name, i, f.place, f.handle.Load() != nil)
		}
	}
	for _, f := range s.files.Load().all {
		if f.handle.Load() != nil && !slices.Contains(s.handles.files, f) {
			t.Errorf("%s is open, and not among the open files", f.name)
		}
	}
}

// However many files a store has, few are open, and all can be read.
func TestOpenFilesStayWithinTheirBound(t *testing.T) {
	fsys := faultfs.New(newFS(t))
	stayWithinBound(t, fsys, testDir, func() int { return len(fsys.Leaks()) })
	if leaks := fsys.Leaks(); len(leaks) > 0 {
		t.Errorf("open behind Close: %q", leaks)
	}
}

// Files that are mapped are no exception.
func TestMappedFilesStayWithinTheirBound(t *testing.T) {
	stayWithinBound(t, osfs.New(), t.TempDir(), func() int { return 0 })
}

// stayWithinBound reads many segments, while open tells how many files are open as far as the file system knows.
func stayWithinBound(t *testing.T, fsys vfs.FS, dir string, open func() int) {
	const most = 8
	s := storeWithHandles(t, fsys, dir, most)
	all := manySegments(t, s, 40)
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(all.pointers)) {
		all.mustRead(t, s, i)
		all.mustRead(t, s, i) // out of the mapping, where there is one
		if n := max(int(s.handles.open()), open()); n > most {
			t.Fatalf("%d files are open", n)
		}
	}
	onlyOpenListed(t, s)
	must(t, s.Close())
	if n := s.handles.open(); n != 0 {
		t.Errorf("%d files are open behind Close, by the count", n)
	}
}

// The files that are read stay open, and those go that nobody reads.
func TestFilesThatAreReadStayOpen(t *testing.T) {
	fsys := faultfs.New(newFS(t))
	s := storeWithHandles(t, fsys, testDir, 16)
	all := manySegments(t, s, 40)
	const popular = 4
	for i := range popular {
		all.mustRead(t, s, i)
	}
	before := fsys.Count(faultfs.OpOpen)
	others := len(all.pointers) - popular
	for i := range others {
		all.mustRead(t, s, popular+i)
		for i := range popular {
			all.mustRead(t, s, i)
		}
	}
	if n := fsys.Count(faultfs.OpOpen) - before; n > others {
		t.Errorf("%d files were opened for one reading of %d others", n, others)
	}
}

// fewHandles is a file system in which no directory can be opened while there is no handle left for it.
type fewHandles struct {
	vfs.FS
	none bool
}

// OpenDir implements vfs.DirOpener.
func (f *fewHandles) OpenDir(dir string) (vfs.Dir, error) {
	if f.none {
		return nil, errors.New("too many open files")
	}
	return vfs.OpenDir(f.FS, dir)
}

// A value that is there can be made durable, though no directory can be opened any more: it is open, or the value is refused, and that passes.
func TestValuesAreDurableWithoutAnotherHandle(t *testing.T) {
	base := newFS(t)
	fsys := &fewHandles{FS: base, none: true}
	o := testOptions(fsys)
	o.SegmentBytes = 8 << 10
	s := open(t, o, nil, 1)
	if _, err := s.AppendValue(1, None, noise(1, 5000)); err == nil || s.Failed() {
		t.Fatalf("a value that could not be made durable was taken: %v", err)
	}
	fsys.none = false
	content := noise(2, 5000)
	p, err := s.AppendValue(1, None, content)
	must(t, err)
	for seed := uint64(3); seed < 10; seed++ {
		fsys.none = true
		must(t, s.SyncValues())
		p, err = s.AppendValue(1, None, noise(seed, 5000)) // in another file: two take more than a segment
		must(t, err)
		content = noise(seed, 5000)
	}
	must(t, s.SyncValues())
	after := open(t, testOptions(base.CrashImage(memfs.Policy{Unsynced: memfs.None})), s.Segments(), s.NextID())
	mustRead(t, after, p, content)
	must(t, after.Close())
	must(t, s.Close())
	if err := s.SyncValues(); err == nil {
		t.Error("values were synced behind Close")
	}
}

// What is written stays open until it is durable: a sync through another handle might not hear of a write that failed.
func TestFilesInWorkStayOpen(t *testing.T) {
	base := newFS(t)
	fsys := faultfs.New(base)
	s := storeWithHandles(t, fsys, testDir, 1)
	old := manySegments(t, s, 10)
	readOld := func() {
		for i := range old.pointers {
			old.mustRead(t, s, i)
		}
	}
	var fresh written
	w := s.NewWriter(Nodes, 0)
	for i := range uint64(4) {
		content := noise(100+i, 5000)
		fresh.add(mustAppend(t, w, KindLeaf, None, content), content)
		must(t, w.Flush())
		content = noise(200+i, 5000)
		p, err := s.AppendValue(1, None, content)
		must(t, err)
		fresh.add(p, content)
		readOld()
	}
	before := fsys.Count(faultfs.OpOpen)
	must(t, w.Sync())
	w.Commit()
	must(t, s.SyncValues())
	if n := fsys.Count(faultfs.OpOpen) - before; n > 0 {
		t.Errorf("%d files were opened again to be synced", n)
	}
	table, next := s.Segments(), s.NextID()
	o := testOptions(base.CrashImage(memfs.Policy{Unsynced: memfs.None}))
	after := open(t, o, table, next)
	for i := range fresh.pointers {
		fresh.mustRead(t, after, i)
	}
	readOld()                               // now they may go
	if open := s.handles.open(); open > 3 { // the last value's, where the next one goes, and one that was just read
		t.Errorf("%d files are open when everything is durable", open)
	}
}

// Once the directory may be another's, a name may be that of another file: what is open stays so.
func TestFilesStayOpenBehindHandOver(t *testing.T) {
	fsys := faultfs.New(newFS(t))
	s := storeWithHandles(t, fsys, testDir, 8)
	all := manySegments(t, s, 20)
	s.HandOver()
	open := fsys.Leaks()
	for i := range all.pointers {
		all.mustRead(t, s, i)
	}
	after := fsys.Leaks()
	for _, o := range open {
		if !slices.Contains(after, o) {
			t.Errorf("closed behind HandOver: %s", o)
		}
	}
}

// Readers, writers, syncs and removals meet while files are closed and opened all the time.
func TestHandlesAreClosedBesideReadersAndWriters(t *testing.T) {
	s := storeWithHandles(t, osfs.New(), t.TempDir(), 2) // files are mapped there
	all := manySegments(t, s, 20)
	until := time.Now().Add(300 * time.Millisecond)
	var wg sync.WaitGroup
	for n := range uint64(3) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(n, 3))
			for time.Now().Before(until) && !t.Failed() {
				i := rng.IntN(len(all.pointers))
				var buf Buffer
				raw, _, err := s.Read(all.pointers[i], &buf)
				if err != nil || !slices.Equal(raw, all.contents[i]) {
					t.Errorf("blob %d: %d bytes of %d, %v", i, len(raw), len(all.contents[i]), err)
				}
			}
		})
		wg.Go(func() {
			for i := n << 20; time.Now().Before(until) && !t.Failed(); i++ {
				content := noise(i, 3000)
				p, err := s.AppendValue(1, None, content)
				if err != nil {
					t.Error(err)
					return
				}
				var buf Buffer
				if raw, _, err := s.Read(p, &buf); errors.Is(err, ErrUnknownSegment) {
					continue // somebody else has removed it
				} else if err != nil || !slices.Equal(raw, content) {
					t.Errorf("value %d: %v", i, err)
				}
				if err := s.SyncValues(); err != nil {
					t.Error(err)
				}
				if i%8 == 7 {
					if err := s.Remove(p.Segment); err != nil && !errors.Is(err, ErrUnknownSegment) {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	onlyOpenListed(t, s)
	must(t, s.Close())
	if n := s.handles.open(); n != 0 {
		t.Errorf("%d files are open behind Close, by the count", n)
	}
}

// limited is a file system that tells how many files there may be.
type limited struct {
	vfs.FS
	most int
}

func (l limited) MostHandles() int { return l.most }

func TestHandlesFollowTheLimitOfTheProcess(t *testing.T) {
	for most, want := range map[int]int64{0: usualHandles, 2: leastHandles, 1024: 512, 1 << 20: mostHandles} {
		if got := handlesFor(limited{newFS(t), most}); got != want {
			t.Errorf("of %d: %d, want %d", most, got, want)
		}
	}
	if got := handlesFor(struct{ vfs.FS }{newFS(t)}); got != usualHandles {
		t.Errorf("where it is not known: %d, want %d", got, usualHandles)
	}
}
