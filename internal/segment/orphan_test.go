package segment

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A file that a crash has left, and the device does not read, keeps no database from being opened.
func TestOrphanThatCannotBeRead(t *testing.T) {
	ffs := faultfs.New(memfs.New())
	p := leaveOrphans(t, ffs)
	ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Times: -1})
	s, err := Open(Options{FS: ffs, Dir: "db"}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	ffs.Set()
	if _, _, err := s.Read(p, new(Buffer)); err != nil {
		t.Errorf("the log may refer to it: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// An Open that fails leaves no file open.
func TestOpenThatFailsLeavesNothingOpen(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpStat, faultfs.OpOpen, faultfs.OpClose, faultfs.OpRemove} {
		ffs := faultfs.New(memfs.New())
		leaveOrphans(t, ffs)
		ffs.Set(faultfs.Rule{Ops: faultfs.Ops(op), Skip: 1, Times: -1})
		s, err := Open(Options{FS: ffs, Dir: "db"}, nil, 1)
		if err == nil {
			err = s.Close()
		} else if !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("%v: %v", op, err)
		}
		if leaks := ffs.Leaks(); len(leaks) > 0 {
			t.Errorf("%v: %v, and left open %v", op, err, leaks)
		}
	}
}

// leaveOrphans leaves a segment of values and two of nodes as a crash does, and tells where a value is.
func leaveOrphans(t *testing.T, ffs *faultfs.FS) Pointer {
	s, err := Open(Options{FS: ffs, Dir: "db"}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.AppendValue(1, None, []byte("a value"))
	for range 2 {
		_, werr := s.NewWriter(Nodes, 0).Append(KindLeaf, 1, None, 0, make([]byte, 1<<20))
		err = errors.Join(err, werr)
	}
	if err := errors.Join(err, s.SyncValues(), s.Close()); err != nil {
		t.Fatal(err)
	}
	return p
}
