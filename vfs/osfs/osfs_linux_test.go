package osfs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

func TestAllocateReservesBlocks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f, err := osfs.New().Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Allocate(1 << 20); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		t.Fatal(err)
	}
	if st.Blocks == 0 {
		t.Skip("this file system reserves nothing")
	}
	if st.Blocks*512 < 1<<20 {
		t.Errorf("%d bytes reserved of %d", st.Blocks*512, 1<<20)
	}
}

// What was just written lies in memory, and a question that makes no sense is not answered.
func TestResident(t *testing.T) {
	const length = 5*4096 + 100
	f, err := osfs.New().Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte("x"), length), 0); err != nil {
		t.Fatal(err)
	}
	m, err := f.(vfs.ReadMapper).MapRead(length)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	asked := m.(vfs.ResidentMapping)
	pages := make([]bool, 5)
	if !asked.Resident(4096, pages) {
		t.Skip("pages of another size")
	}
	for i, resident := range pages {
		if !resident {
			t.Errorf("page %d, which was just written, is not in memory", i+1)
		}
	}
	for _, offset := range []int64{-4096, 100, 6 * 4096, 1 << 40} {
		if asked.Resident(offset, pages) {
			t.Errorf("an answer for offset %d", offset)
		}
	}
	if asked.Resident(0, nil) {
		t.Error("an answer for no pages")
	}
}

// TestNoSpace needs a device that is full for everybody.
func TestNoSpace(t *testing.T) {
	f, err := osfs.New().OpenReadWrite("/dev/full")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	_, err = f.WriteAt([]byte("x"), 0)
	if !errors.Is(err, vfs.ErrNoSpace) || !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("write to a full device: %v", err)
	}
}

func TestSharedLockWithoutWritePermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "LOCK")
	if err := os.WriteFile(name, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	l, err := osfs.New().Lock(name, vfs.Shared)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A process that is being started has the descriptors of the one that starts it for a moment: they keep nobody out once the lock is given up.
func TestLockEndsBesideCopiesOfItsDescriptors(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fsys, name := osfs.New(), filepath.Join(dir, "LOCK")
	l, err := fsys.Lock(name, vfs.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, entry := range list {
		if target, _ := os.Readlink("/proc/self/fd/" + entry.Name()); target != name && target != dir {
			continue
		}
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		copied, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(copied)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := fsys.Lock(name, vfs.Exclusive)
	if err != nil {
		t.Fatalf("the lock is not free: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHole looks for what was never written between two blocks that were.
func TestHole(t *testing.T) {
	const size, block = 1 << 20, 4096
	f, err := osfs.New().Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Allocate(size); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{0, size - block} {
		if _, err := f.WriteAt(bytes.Repeat([]byte{1}, block), offset); err != nil {
			t.Fatal(err)
		}
	}
	start, end, err := f.(vfs.HoleFinder).Hole(block)
	if err != nil || start > end || start < block || end > size {
		t.Fatalf("[%d, %d), %v", start, end, err)
	}
	if start < end && end > size-block {
		t.Errorf("the last block is in the hole [%d, %d)", start, end)
	}
	if b := make([]byte, end-start); start < end {
		if _, err := f.ReadAt(b, start); err != nil || !bytes.Equal(b, make([]byte, len(b))) {
			t.Errorf("what is in the hole is not zero: %v", err)
		}
	}
}

// TestReserve takes space behind the end of a file, and gives it back.
func TestReserve(t *testing.T) {
	const reserved = 1 << 20
	name := filepath.Join(t.TempDir(), "f")
	f, err := osfs.New().Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := []byte("what is there stays")
	if _, err := f.WriteAt(text, 0); err != nil {
		t.Fatal(err)
	}
	taken := func() int64 {
		t.Helper()
		var stat unix.Stat_t
		if err := unix.Stat(name, &stat); err != nil {
			t.Fatal(err)
		}
		if stat.Size != int64(len(text)) {
			t.Errorf("the file has %d bytes", stat.Size)
		}
		return stat.Blocks * 512
	}
	f.(vfs.Reserver).Reserve(0, reserved)
	if n := taken(); n < reserved {
		t.Logf("the file system has reserved %d bytes", n)
	}
	if err := f.Truncate(int64(len(text))); err != nil {
		t.Fatal(err)
	}
	if n := taken(); n >= reserved {
		t.Errorf("%d bytes stay reserved", n)
	}
	got := make([]byte, len(text))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestForget forgets what is durable, of which no byte changes, and what is not there.
func TestForget(t *testing.T) {
	f, err := osfs.New().Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := bytes.Repeat([]byte("what is there stays"), 10_000)
	for _, synced := range []bool{false, true} {
		if _, err := f.WriteAt(text, 0); err != nil {
			t.Fatal(err)
		}
		if synced {
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		f.(vfs.Forgetter).Forget(0, int64(len(text))+1<<20)
		got := make([]byte, len(text))
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, text) {
			t.Errorf("synced: %t: the file has changed, %v", synced, err)
		}
	}
}

// TestDetach takes stored pages out of a mapping, whole and in part: they are in the file and come back into the mapping.
func TestDetach(t *testing.T) {
	const pages, page = 8, 4096
	f, err := osfs.New().Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Allocate(pages * page); err != nil {
		t.Fatal(err)
	}
	m, err := f.Map(pages * page)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := make([]byte, pages*page)
	for round, cut := range [][2]int64{{0, pages * page}, {0, 2*page + 7}, {page / 2, 3 * page}, {5 * page, 1 << 30}, {pages * page, page}, {7, 9}, {0, 0}} {
		for i := range want {
			want[i] = byte(i/page + i + round)
		}
		copy(m.Bytes(), want)
		m.(vfs.Detacher).Detach(cut[0], cut[1])
		got := make([]byte, len(want))
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Errorf("detached %v: the file has changed, %v", cut, err)
		}
		if !bytes.Equal(m.Bytes(), want) {
			t.Errorf("detached %v: the mapping has changed", cut)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// TestSole asks of a file that is in memory, of one with two names, and of what was never written.
func TestSole(t *testing.T) {
	fsys, dir := osfs.New(), t.TempDir()
	name, link := filepath.Join(dir, "f"), filepath.Join(dir, "link")
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 100_000
	if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
		t.Fatal(err)
	}
	sole := func(length int64) bool { return f.(vfs.Sole).Sole(length) }
	if !sole(size) {
		t.Skip("the system does not tell what is in memory")
	}
	if sole(2 * size) {
		t.Error("more is in memory than was written")
	}
	if err := fsys.Link(name, link); err != nil {
		t.Fatal(err)
	}
	if sole(size) {
		t.Error("the file has two names")
	}
	if err := fsys.Remove(link); err != nil {
		t.Fatal(err)
	}
	if !sole(size) {
		t.Error("the file has one name again")
	}
}

// A pipe in the place of a file is an error, and nothing that anybody waits for.
func TestPipeInPlaceOfFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	for _, open := range []func(string) (vfs.File, error){osfs.New().Open, osfs.New().OpenReadWrite} {
		f, err := open(name)
		if err != nil {
			continue
		}
		if _, err := f.ReadAt(make([]byte, 8), 0); err == nil {
			t.Error("a pipe was read")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
