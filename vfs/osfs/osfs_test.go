package osfs_test

import (
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
	"github.com/pandodb/pando/vfs/vfstest"
)

func TestConformance(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return osfs.New(), t.TempDir() })
}
