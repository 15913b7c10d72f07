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
