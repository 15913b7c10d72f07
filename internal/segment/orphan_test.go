package segment

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/pandodb/pando/vfs"
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

// A file that a crash has left, and that cannot be removed, keeps no database from being opened, and is removed when that works again.
func TestOrphanThatCannotBeRemoved(t *testing.T) {
	mem := memfs.New()
	ffs := faultfs.New(mem)
	leaveOrphans(t, ffs)
	count := func() int {
		names, err := mem.List(filepath.Join("db", DirName))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	before := count()
	ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpRemove), Times: -1})
	s, err := Open(Options{FS: ffs, Dir: "db"}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := count(); got != before {
		t.Errorf("%d files are left of %d", got, before)
	}
	ffs.Set()
	s.GiveBack()
	if got := count(); got != before-2 {
		t.Errorf("%d files are left of %d, of which two are of no use", got, before)
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

// tebibyte is a file system whose segments seem to be a tebibyte long, with nothing behind what is in them.
type tebibyte struct{ vfs.FS }

type tebibyteFile struct{ vfs.File }

const tebibyteSize = 1 << 40

func (t tebibyte) Stat(name string) (vfs.Info, error) {
	info, err := t.FS.Stat(name)
	if filepath.Ext(name) == ".seg" {
		info.Size = tebibyteSize
	}
	return info, err
}

func (t tebibyte) Open(name string) (vfs.File, error) {
	f, err := t.FS.Open(name)
	return tebibyteFile{f}, err
}

func (f tebibyteFile) Size() (int64, error) { return tebibyteSize, nil }

func (f tebibyteFile) ReadAt(b []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		clear(b[n:])
		return len(b), nil
	}
	return n, err
}

// A file that somebody has made as long as it gets, which costs nothing on the disk, is read as far as a segment can reach.
func TestScanOfAnEndlessFile(t *testing.T) {
	if raceEnabled {
		t.Skip("two gigabytes take half a minute with the race detector, and only one goroutine reads them")
	}
	t.Parallel()
	mem := faultfs.New(memfs.New())
	p := leaveOrphans(t, mem)
	s, err := Open(Options{FS: tebibyte{mem}, Dir: "db", ReadOnly: true}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := scan(t, s, p.Segment)
	if len(got.blobs) != 1 || got.blobs[0] != p {
		t.Errorf("found %v, want %v", got.blobs, p)
	}
	end := int64(p.Offset) + int64(p.Length)
	if want := [2]int64{end, longest - end}; len(got.gaps) != 1 || got.gaps[0] != want {
		t.Errorf("gaps %v, want %v", got.gaps, want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The file of a segment that could not be begun, be it a new one or that of a removed segment, and that cannot be removed, is removed when
// that works again, without another Open.
func TestFileOfASegmentThatCouldNotBeBegunGoesLater(t *testing.T) {
	for what, failing := range map[string]faultfs.Rule{
		"header": {Ops: faultfs.Ops(faultfs.OpWriteAt)},
		"name":   {Ops: faultfs.Ops(faultfs.OpRename, faultfs.OpCreate), Times: 2},
	} {
		for _, spares := range []int{0, 1} {
			ffs := faultfs.New(newFS(t))
			s := sparingStore(t, ffs, spares)
			old, _ := fillSegment(t, s, 1)
			must(t, s.Remove(old[0].Segment)) // whose file may be kept
			rest := len(segmentFiles(t, s)) - spares
			ffs.Set(failing, faultfs.Rule{Ops: faultfs.Ops(faultfs.OpRemove), Times: -1})
			if p, err := s.AppendValue(1, None, []byte("value")); !errors.Is(err, faultfs.ErrInjected) {
				t.Errorf("%s: a value at %v, %v", what, p, err)
			}
			ffs.Set()
			s.GiveBack()
			if names := segmentFiles(t, s); len(names) != rest {
				t.Errorf("%s, %d spares: there are %v, of which %d belong to segments", what, spares, names, rest)
			}
		}
	}
}
