package osfs_test

import (
	"errors"
	"os"
	"path/filepath"
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
