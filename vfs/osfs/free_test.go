package osfs_test

import (
	"path/filepath"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// A directory that is there has some room, the same seen from a file system that keeps to it; of one that is not there nothing is known.
func TestFree(t *testing.T) {
	dir := t.TempDir()
	held, closer, err := vfs.HoldDir(osfs.New(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	for name, fsys := range map[string]vfs.FS{"any": osfs.New(), "held": held} {
		if free, known := vfs.Free(fsys, dir); !known || free <= 0 {
			t.Errorf("%s: %d bytes, %t", name, free, known)
		}
		if free, known := vfs.Free(fsys, filepath.Join(dir, "missing")); known || free != 0 {
			t.Errorf("%s: %d bytes in a directory that is missing", name, free)
		}
	}
}
