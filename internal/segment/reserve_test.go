package segment

import (
	"sync"
	"testing"

	"github.com/pandodb/pando/vfs"
)

// reservingFS is a file system whose files take space ahead, and know how much.
type reservingFS struct {
	vfs.FS
	files map[string]*reservingFile
}

type reservingFile struct {
	vfs.File
	t        *testing.T
	mu       sync.Mutex
	reserved int64
}

func (fs *reservingFS) Create(name string) (vfs.File, error) {
	f, err := fs.FS.Create(name)
	fs.files[name].File = f
	return fs.files[name], err
}

// Reserve implements vfs.Reserver.
func (f *reservingFile) Reserve(from, to int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from != f.reserved || to <= from {
		f.t.Errorf("[%d, %d) reserved, behind %d", from, to, f.reserved)
	}
	f.reserved = to
}

func (f *reservingFile) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was, err := f.Size(); err != nil || size != was {
		f.t.Errorf("a file of %d bytes is cut to %d: %v", was, size, err)
	}
	f.reserved = size
	return f.File.Truncate(size)
}

// beyond is what a file has beyond its end.
func (f *reservingFile) beyond() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	size, err := f.Size()
	must(f.t, err)
	return f.reserved - size
}

func reservingStore(t *testing.T, segmentBytes int64) (*Store, func(id uint32) *reservingFile) {
	fs := &reservingFS{FS: newFS(t), files: map[string]*reservingFile{}}
	o := testOptions(fs)
	o.SegmentBytes = segmentBytes
	s := open(t, o, nil, 1)
	for id := range uint32(10) {
		fs.files[s.path(FileName(id))] = &reservingFile{t: t}
	}
	return s, func(id uint32) *reservingFile { return fs.files[s.path(FileName(id))] }
}

// A value finds its space reserved, and of what is reserved nothing stays when its segment is left, full or not.
func TestSpaceOfValuesIsReserved(t *testing.T) {
	const full = 16 << 20
	s, file := reservingStore(t, full)
	var last Pointer
	var contents [][]byte
	var pointers []Pointer
	for i, n := range []int{10, 100, 60_000, 100_000, 1 << 20, 3 << 20, 8 << 20, 4 << 20, 100} {
		value := noise(uint64(i), n)
		p, err := s.AppendValue(1, S2, value)
		must(t, err)
		f := file(p.Segment)
		if end, beyond := int64(p.Offset)+int64(p.Length), f.beyond(); beyond < 0 || beyond > min(max(end, reserveLeast), reserveMost) || end+beyond > full {
			t.Errorf("%d bytes reserved behind %d", beyond, end)
		}
		if last.Segment != 0 && last.Segment != p.Segment && file(last.Segment).beyond() != 0 {
			t.Errorf("segment %d was left with %d bytes reserved", last.Segment, file(last.Segment).beyond())
		}
		last = p
		contents, pointers = append(contents, value), append(pointers, p)
	}
	if last.Segment == pointers[0].Segment {
		t.Fatal("everything lies in one segment")
	}
	s.SealValues()
	if n := file(last.Segment).beyond(); n != 0 {
		t.Errorf("%d bytes stay reserved in a sealed segment", n)
	}
	for i, p := range pointers {
		mustRead(t, s, p, contents[i])
	}
	p, err := s.AppendValue(1, S2, noise(1, 1000))
	must(t, err)
	f := file(p.Segment)
	f.File = &keptOpen{f.File}
	must(t, s.Close())
	if n := f.beyond(); n != 0 {
		t.Errorf("%d bytes stay reserved after Close", n)
	}
}

// keptOpen lets a test ask for the size after Close.
type keptOpen struct{ vfs.File }

func (*keptOpen) Close() error { return nil }

// A segment that somebody writes to is left as it is: where it ends is not known.
func TestReservedSpaceStaysForWriters(t *testing.T) {
	s, file := reservingStore(t, 1<<20)
	p, err := s.AppendValue(1, None, noise(1, 1000))
	must(t, err)
	r, err := s.reserve(5000)
	must(t, err)
	s.SealValues()
	if n := file(p.Segment).beyond(); n < 5000 {
		t.Errorf("%d bytes are left for a writer of 5000", n)
	}
	must(t, s.finishValue(r, s.writeTo(r, [][]byte{noise(2, 5000)})))
}
