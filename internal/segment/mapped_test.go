package segment

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// mappedStore is a store on the real file system with some blobs in it, read once so that their pages are marked.
func mappedStore(t *testing.T) (*Store, []Pointer, [][]byte) {
	t.Helper()
	s, err := Open(Options{FS: osfs.New(), Dir: t.TempDir(), SegmentBytes: 1 << 20, MapBytes: 2 << 20}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w := s.NewWriter(Nodes, 1)
	var pointers []Pointer
	var contents [][]byte
	for i := range 20 {
		content := bytes.Repeat([]byte{byte(i)}, 3000+i*1000)
		p, err := w.Append(KindLeaf, 1, None, 0, content)
		if err != nil {
			t.Fatal(err)
		}
		pointers, contents = append(pointers, p), append(contents, content)
	}
	w.Commit()
	var buf Buffer
	for _, p := range pointers {
		if _, _, err := s.Read(p, &buf); err != nil {
			t.Fatal(err)
		}
	}
	return s, pointers, contents
}

// mappingAt is the mapping of the file of p; the test ends where there is none.
func mappingAt(t *testing.T, s *Store, p Pointer) *mapped {
	t.Helper()
	m := s.files.Load().find(p.Segment).mapped.Load()
	if m == nil {
		t.Skip("files are not mapped here")
	}
	return m
}

func TestReadMapped(t *testing.T) {
	s, pointers, contents := mappedStore(t)
	m := mappingAt(t, s, pointers[0])
	var buf Buffer
	for i, p := range pointers {
		if !m.holds(int64(p.Offset), int(p.Length)) {
			t.Errorf("blob %d was read, and its pages are not marked", i)
		}
		raw, _, err := s.Read(p, &buf)
		if err != nil || !bytes.Equal(raw, contents[i]) {
			t.Fatalf("blob %d: %v", i, err)
		}
	}
	last := pointers[len(pointers)-1]
	if m.holds(int64(last.Offset)+int64(last.Length)+warmPage, 1) {
		t.Error("a page that nobody read is marked")
	}
}

// What this process has written lies in the page cache: nobody has to read it with a call first.
func TestWhatWasWrittenIsMarked(t *testing.T) {
	s, err := Open(Options{FS: osfs.New(), Dir: t.TempDir(), SegmentBytes: 1 << 20, MapBytes: 2 << 20}, nil, 1)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	w := s.NewWriter(Nodes, 1)
	before := mustAppend(t, w, KindLeaf, None, noise(1, 20_000))
	must(t, w.Flush())
	mustRead(t, s, before, noise(1, 20_000)) // maps the file
	after := mustAppend(t, w, KindLeaf, None, noise(2, 20_000))
	must(t, w.Flush())
	w.Commit()
	m := mappingAt(t, s, before)
	for _, p := range []Pointer{before, after} {
		if !m.holds(int64(p.Offset), int(p.Length)) {
			t.Errorf("the blob at %d is not marked", p.Offset)
		}
	}
}

// plainMapping is a mapping that does not know what lies in memory.
type plainMapping struct{ vfs.Mapping }

// knowingMapping is one that knows.
type knowingMapping struct {
	vfs.Mapping
	resident func(page int64) bool
}

func (k knowingMapping) Resident(offset int64, pages []bool) bool {
	for i := range pages {
		pages[i] = k.resident(offset/warmPage + int64(i))
	}
	return true
}

// turn makes as many reads as there are between two looks at the marks.
func (m *mapped) turn() {
	for range len(m.data) / warmPage * turnReads {
		m.age(0)
	}
}

func TestMarksAreForgotten(t *testing.T) {
	s, pointers, _ := mappedStore(t)
	m := mappingAt(t, s, pointers[0])
	m.mapping = plainMapping{m.mapping}
	m.turn()
	for i := range m.warm {
		if m.warm[i].Load() != 0 {
			t.Fatal("a page is still marked")
		}
	}
}

// Where the system tells what lies in memory the marks of that stay, and no others come to be.
func TestMarksOfWhatIsResidentStay(t *testing.T) {
	s, pointers, _ := mappedStore(t)
	m := mappingAt(t, s, pointers[0])
	marked := func(page int64) bool { return m.warm[page/64].Load()>>(page%64)&1 != 0 }
	pages := int64(len(m.data)) / warmPage
	before := make([]bool, pages)
	for i := range pages {
		before[i] = marked(i)
	}
	odd := func(page int64) bool { return page%2 == 1 }
	m.mapping = knowingMapping{m.mapping, odd}
	m.turn()
	for i := range pages {
		if want := before[i] && odd(i); marked(i) != want {
			t.Errorf("page %d: marked is %v, want %v", i, marked(i), want)
		}
	}
}

// A file that was cut from outside, or whose device fails, is an error, not the end of the process.
func TestReadMappedFault(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("cutting a mapped file is not possible everywhere")
	}
	s, pointers, _ := mappedStore(t)
	p := pointers[len(pointers)-1]
	mappingAt(t, s, p)
	if err := os.Truncate(s.files.Load().find(p.Segment).path, FileHeaderSize); err != nil {
		t.Fatal(err)
	}
	var buf Buffer
	if _, _, err := s.Read(p, &buf); !errors.Is(err, corrupt.Err) {
		t.Fatal(err)
	}
}

// Files beyond what may be mapped are read as well.
func TestMapBytes(t *testing.T) {
	s, err := Open(Options{FS: osfs.New(), Dir: t.TempDir(), SegmentBytes: 4 << 10, MapBytes: 10 << 10}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	var buf Buffer
	var last []uint32
	for i := range 6 {
		w := s.NewWriter(Nodes, 1)
		p, err := w.Append(KindLeaf, 1, None, 0, bytes.Repeat([]byte{byte(i)}, 1000))
		if err != nil {
			t.Fatal(err)
		}
		w.Commit()
		for range 2 {
			raw, _, err := s.Read(p, &buf)
			if err != nil || len(raw) != 1000 || raw[0] != byte(i) {
				t.Fatalf("blob %d: %d bytes, %v", i, len(raw), err)
			}
		}
		last = append(last, p.Segment)
	}
	if n := s.mappings.bytes.Load(); n > 10<<10 {
		t.Errorf("%d bytes are mapped", n)
	}
	for _, id := range last {
		if err := s.Remove(id); err != nil {
			t.Error(err)
		}
	}
	if n, files := s.mappings.bytes.Load(), s.mappings.files.Load(); n != 0 || files != 0 {
		t.Errorf("%d bytes of %d files are still mapped", n, files)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A copy that asks ahead is a copy, and of no more than there is.
func TestCopyAhead(t *testing.T) {
	src := noise(1, 3*aroundBytes)
	for _, n := range []int{
		1, aheadStep - 1, aheadStep, aheadStep + 1, aheadBytes, aheadBytes + 1, aheadLeast, 100_000, aroundBytes, aroundBytes + 1, len(src),
	} {
		dst := make([]byte, n+1)
		copyAhead(dst[:n], src[:n])
		if !bytes.Equal(dst[:n], src[:n]) || dst[n] != 0 {
			t.Errorf("%d bytes are not copied as they are", n)
		}
	}
}

// A file for whose mapping there was no room is mapped when there is: else what a compaction leaves would be read with calls for as long as the
// database is open, as the files that it has emptied were in the way when it was first read.
func TestFilesAreMappedOnceThereIsRoom(t *testing.T) {
	s, err := Open(Options{FS: osfs.New(), Dir: t.TempDir(), SegmentBytes: 1 << 20, MapBytes: 30_000}, nil, 1)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	var places []Pointer
	for i := range 2 {
		w := s.NewWriter(Nodes, 1)
		places = append(places, mustAppend(t, w, KindLeaf, None, noise(uint64(i), 20_000)))
		w.Commit()
		mustRead(t, s, places[i], noise(uint64(i), 20_000))
	}
	mappingAt(t, s, places[0])
	other := s.files.Load().find(places[1].Segment)
	if other.mapped.Load() != nil {
		t.Fatal("there is room for both")
	}
	must(t, s.Remove(places[0].Segment))
	mustRead(t, s, places[1], noise(1, 20_000))
	if other.mapped.Load() == nil {
		t.Error("there is room for the other one, and it is not mapped")
	}
}
