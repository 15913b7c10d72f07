package segment

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// sparingStore is one that keeps files, in a file system of its own.
func sparingStore(t *testing.T, fs vfs.FS, spares int) *Store {
	t.Helper()
	o := testOptions(fs)
	o.Spares = spares
	return open(t, o, nil, 1)
}

// fillSegment writes values until a segment is full, and leaves it.
func fillSegment(t *testing.T, s *Store, seed uint64) (pointers []Pointer, contents [][]byte) {
	t.Helper()
	for i := uint64(0); ; i++ {
		content := noise(seed+i, 100_000)
		p, err := s.AppendValue(1, None, content)
		must(t, err)
		if len(pointers) > 0 && p.Segment != pointers[0].Segment {
			s.SealValues()
			return pointers, contents
		}
		pointers, contents = append(pointers, p), append(contents, content)
	}
}

func segmentFiles(t *testing.T, s *Store) []string {
	t.Helper()
	names, err := s.options.FS.List(s.dir)
	must(t, err)
	return names
}

// The file of a removed segment becomes that of a later one, in which nothing is found of what it held.
func TestFileIsUsedAgain(t *testing.T) {
	s := sparingStore(t, newFS(t), 1)
	old, _ := fillSegment(t, s, 1)
	next := s.NextID()
	must(t, s.Remove(old[0].Segment))
	if names := segmentFiles(t, s); !slices.Contains(names, FileName(old[0].Segment)) {
		t.Fatalf("the file is not kept: %v", names)
	}
	content := noise(1000, 70_000) // of another length, so that what follows is no whole value
	p, err := s.AppendValue(1, None, content)
	must(t, err)
	if names := segmentFiles(t, s); p.Segment != next || slices.Contains(names, FileName(old[0].Segment)) {
		t.Fatalf("the file is not that of segment %d: %v", next, names)
	}
	mustRead(t, s, p, content)
	var buf Buffer
	for _, o := range old {
		if _, _, err := s.Read(o, &buf); !errors.Is(err, ErrUnknownSegment) {
			t.Errorf("a value of the removed segment: %v", err)
		}
		o.Segment = next
		if _, _, err := s.Read(o, &buf); !errors.Is(err, corrupt.Err) {
			t.Errorf("a value of the removed segment under the new number: %v", err)
		}
	}
	var found []Pointer
	scan := func() {
		t.Helper()
		found = nil
		must(t, s.Scan(context.Background(), next, func(p Pointer, _ Header, _ []byte) error {
			found = append(found, p)
			return nil
		}, func(offset, length int64, err error) { t.Errorf("%d bytes at %d: %v", length, offset, err) }))
		if !slices.Equal(found, []Pointer{p}) {
			t.Errorf("found %v", found)
		}
	}
	scan()
	s.SealValues()
	scan()
	if info, err := s.options.FS.Stat(s.path(FileName(next))); err != nil || info.Size != int64(p.Offset)+int64(p.Length) {
		t.Errorf("a file of %d bytes was left: %v", info.Size, err)
	}
	mustRead(t, s, p, content)
}

// silent is a file system that does not tell who else has a file.
type silent struct{ *memfs.FS }

func (s silent) OpenReadWrite(name string) (vfs.File, error) {
	f, err := s.FS.OpenReadWrite(name)
	return struct{ vfs.File }{f}, err
}

// Files that hold little, that hold nodes, and those that are too many are not kept.
func TestFilesThatAreNotKept(t *testing.T) {
	kept := func(s *Store, id uint32) bool {
		t.Helper()
		must(t, s.Remove(id))
		return slices.Contains(segmentFiles(t, s), FileName(id))
	}
	s := sparingStore(t, newFS(t), 2)
	first, _ := fillSegment(t, s, 1)
	second, _ := fillSegment(t, s, 2)
	third, _ := fillSegment(t, s, 3)
	small, err := s.AppendValue(1, None, noise(5, 1000))
	must(t, err)
	s.SealValues()
	w := s.NewWriter(Nodes, 1)
	var node Pointer
	for range 6 {
		node, err = w.Append(KindLeaf, 1, None, 0, noise(6, 100_000))
		must(t, err)
	}
	must(t, w.Sync())
	w.Commit()
	for _, c := range []struct {
		what string
		id   uint32
		want bool
	}{
		{"small", small.Segment, false}, {"of nodes", node.Segment, false},
		{"first", first[0].Segment, true}, {"second", second[0].Segment, true}, {"third", third[0].Segment, false},
	} {
		if got := kept(s, c.id); got != c.want {
			t.Errorf("%s: kept is %t", c.what, got)
		}
	}
	s.GiveBack()
	if names := segmentFiles(t, s); slices.Contains(names, FileName(first[0].Segment)) || slices.Contains(names, FileName(second[0].Segment)) {
		t.Errorf("given back, yet there: %v", names)
	}
}

// A file that has a second name, or may have one, is not used again.
func TestFilesOfOthersAreNotUsedAgain(t *testing.T) {
	plain := newFS(t)
	for _, c := range []struct {
		what string
		fs   vfs.FS
		do   func(path string) error
		want bool
	}{
		{"linked", plain, func(path string) error { return plain.Link(path, testDir+"/link") }, false},
		{"not linked", newFS(t), func(string) error { return nil }, true},
		{"on a file system that does not tell", silent{newFS(t)}, func(string) error { return nil }, false},
	} {
		s := sparingStore(t, c.fs, 1)
		old, contents := fillSegment(t, s, 1)
		path := s.path(FileName(old[0].Segment))
		must(t, c.do(path))
		must(t, s.Remove(old[0].Segment))
		p, err := s.AppendValue(1, None, noise(7, 1000))
		must(t, err)
		info, err := c.fs.Stat(s.path(FileName(p.Segment)))
		must(t, err)
		if got := info.Size > int64(len(contents[0])); got != c.want {
			t.Errorf("%s: used again is %t", c.what, got)
		}
		if _, err := c.fs.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the old name: %v", c.what, err)
		}
	}
	link, err := vfs.ReadFile(plain, testDir+"/link", 2<<20)
	must(t, err)
	if want := noise(1, 100_000); !bytes.Contains(link, want) {
		t.Error("what a link leads to has changed")
	}
}

// Close leaves no file that no segment has, and a later run uses none of an earlier one.
func TestSparesAreGoneAfterClose(t *testing.T) {
	fs := newFS(t)
	o := testOptions(fs)
	o.Spares = 2
	s, err := Open(o, nil, 1)
	must(t, err)
	first, _ := fillSegment(t, s, 1)
	second, _ := fillSegment(t, s, 2)
	must(t, s.SyncValues())
	must(t, s.Remove(first[0].Segment))
	table, next := s.Segments(), s.NextID()
	must(t, s.Close())
	after := open(t, o, table, next)
	if names := segmentFiles(t, after); slices.Contains(names, FileName(first[0].Segment)) {
		t.Errorf("after Close: %v", names)
	}
	must(t, after.Remove(second[0].Segment))
	if names := segmentFiles(t, after); slices.Contains(names, FileName(second[0].Segment)) {
		t.Errorf("a file of an earlier run is kept: %v", names)
	}
}
