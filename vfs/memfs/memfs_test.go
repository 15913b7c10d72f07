package memfs_test

import (
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
	"github.com/pandodb/pando/vfs/vfstest"
)

func TestConformance(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		fsys := memfs.New()
		if err := fsys.MkdirAll("/db"); err != nil {
			t.Fatal(err)
		}
		return fsys, "/db"
	})
}
