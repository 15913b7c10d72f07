package wal

import (
	"testing"

	"github.com/pandodb/pando/vfs"
)

// forgetful is a file system that notes what it is told to forget of its newest file.
type forgetful struct {
	vfs.FS
	told *[][2]int64
}

type forgetfulFile struct {
	vfs.File
	told *[][2]int64
}

func (f forgetful) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return forgetfulFile{file, f.told}, err
}

func (f forgetfulFile) Forget(offset, length int64) {
	*f.told = append(*f.told, [2]int64{offset, offset + length})
}

// Of long records the system is told to forget what is durable, a megabyte at a time, and not while somebody follows the log.
func TestLongRecordsAreForgotten(t *testing.T) {
	told := new([][2]int64)
	o := options(forgetful{newFS(t), told}, false)
	o.SegmentBytes, o.FirstBytes = 16<<20, 16<<20
	l, err := Create(o, 1)
	must(t, err)
	var h history
	add := func(n int) {
		t.Helper()
		must(t, h.append(t, l, n))
	}
	expect := func(what string, want ...int64) {
		t.Helper()
		must(t, l.Sync())
		if len(want) == 0 && len(*told) > 0 || len(want) > 0 && (len(*told) != 1 || (*told)[0] != [2]int64{want[0], want[1]}) {
			t.Errorf("%s: told to forget %v, want %v", what, *told, want)
		}
		*told = nil
	}
	add(100)
	expect("a short record")
	add(forgetBytes / 2)
	expect("half a megabyte")
	synced := l.Position()
	add(forgetBytes)
	long := l.Position()
	must(t, l.SyncTo(synced))
	if len(*told) > 0 {
		t.Errorf("told to forget %v, which is not durable", *told)
	}
	add(100)
	expect("a long one, and a short one", 0, long.Offset)
	reader, err := l.NewReader(h.seqs[0])
	must(t, err)
	add(2 * forgetBytes)
	expect("a long one that is being read")
	must(t, reader.Close())
	add(100)
	expect("the same when nobody reads", 0, h.ends[4].Offset)
	add(forgetBytes / 2)
	expect("half a megabyte more, behind the last whole piece", h.ends[4].Offset&^(largestPage-1), l.Position().Offset)
	must(t, l.Close())
	l, _ = recoverAll(t, o, Position{Segment: 1}, &h, 0, len(h.seqs))
	must(t, l.Close())
}

// Long records of all lengths around a page's end lie in files that hold remains of others.
func TestLongRecordsInFilesUsedBefore(t *testing.T) {
	o := options(newFS(t), false)
	o.SegmentBytes, o.FirstBytes, o.SpareSegments = 1<<20, 1<<20, 8
	l, err := Create(o, 1)
	must(t, err)
	var h history
	for range 2 {
		from := l.Position()
		before := len(h.seqs)
		for n := range 64 {
			must(t, h.append(t, l, callBytes+blockSize-40+n))
			must(t, h.append(t, l, n))
		}
		for range 2 { // so that what is recycled is used again
			must(t, h.append(t, l, 1<<20))
		}
		must(t, l.Close())
		l, _ = recoverAll(t, o, from, &h, before, len(h.seqs))
		must(t, l.Recycle(l.Position()))
	}
	must(t, l.Close())
}

// detachable is a file system whose newest file notes what is taken out of its mapping, and what is forgotten.
type detachable struct {
	vfs.FS
	detached, forgotten *[][2]int64
}

type detachableFile struct {
	forgetfulFile
	detached *[][2]int64
}

type detachableMapping struct {
	vfs.Mapping
	detached *[][2]int64
}

func (f detachable) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return detachableFile{forgetfulFile{file, f.forgotten}, f.detached}, err
}

func (f detachableFile) Map(length int64) (vfs.Mapping, error) {
	m, err := f.File.Map(length)
	return detachableMapping{m, f.detached}, err
}

func (m detachableMapping) Detach(offset, length int64) {
	*m.detached = append(*m.detached, [2]int64{offset, offset + length})
}

// Of short records the pages that are full leave the mapping, each once, and may be forgotten when they are durable.
func TestShortRecordsAreDetachedAndForgotten(t *testing.T) {
	fsys := detachable{newFS(t), new([][2]int64), new([][2]int64)}
	o := options(fsys, false)
	o.SegmentBytes, o.FirstBytes = 16<<20, 16<<20
	l, err := Create(o, 1)
	must(t, err)
	var h history
	for l.Position().Offset < forgetBytes+forgetBytes/2 {
		must(t, h.append(t, l, callBytes/2))
		must(t, h.append(t, l, 10))
	}
	if len(*fsys.forgotten) > 0 {
		t.Errorf("forgot %v, which is not durable", *fsys.forgotten)
	}
	end := int64(0)
	for _, d := range *fsys.detached {
		if d[0] != end || d[1]-d[0] < detachBytes || d[1]%blockSize != 0 {
			t.Errorf("detached %v behind %d", d, end)
		}
		end = d[1]
	}
	if left := l.Position().Offset - end; left < 0 || left > detachBytes+blockSize {
		t.Errorf("%d bytes behind what is detached", left)
	}
	must(t, l.Sync())
	if len(*fsys.forgotten) != 1 || (*fsys.forgotten)[0] != [2]int64{0, end} {
		t.Errorf("forgot %v, want what is detached, up to %d", *fsys.forgotten, end)
	}
	must(t, l.Close())
	l, _ = recoverAll(t, o, Position{Segment: 1}, &h, 0, len(h.seqs))
	must(t, l.Close())
}
