package segment

import (
	"testing"

	"github.com/pandodb/pando/vfs"
)

// tellsOfSyncs is a file system that calls before when a file is about to be synced.
type tellsOfSyncs struct {
	vfs.FS
	before func()
}

func (f *tellsOfSyncs) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return tellsOfSync{file, f}, err
}

type tellsOfSync struct {
	vfs.File
	fs *tellsOfSyncs
}

func (f tellsOfSync) Sync() error {
	f.fs.before()
	return f.File.Sync()
}

// A segment that is full, and is being synced, keeps its handle, however many files others open meanwhile: nothing else tells what befell its
// writes.
func TestFileThatIsSyncedStaysOpen(t *testing.T) {
	fsys := &tellsOfSyncs{FS: newFS(t), before: func() {}}
	s := storeWithHandles(t, fsys, testDir, 8)
	all := manySegments(t, s, 20)
	w := s.NewWriter(Nodes, 0)
	var full written
	for i := range 4 { // in as many segments
		content := noise(uint64(i)+1<<40, 5000)
		full.add(mustAppend(t, w, KindLeaf, None, content), content)
	}
	syncs := 0
	fsys.before = func() {
		syncs++
		for i := range all.pointers {
			all.mustRead(t, s, i)
		}
	}
	must(t, w.Sync())
	fsys.before = func() {}
	if syncs != len(full.pointers) {
		t.Errorf("%d syncs of %d segments", syncs, len(full.pointers))
	}
	w.Commit()
	for i := range full.pointers {
		full.mustRead(t, s, i)
	}
	if n := s.handles.open(); n > 8+4 {
		t.Errorf("%d files are open", n)
	}
}
