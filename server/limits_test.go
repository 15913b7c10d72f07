package server

import (
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// limited is a file system that tells how many files there may be.
type limited struct {
	vfs.FS
	most int
}

func (l limited) MostHandles() int { return l.most }

func TestConnectionsLeaveFilesForTheStore(t *testing.T) {
	for _, c := range []struct{ files, wanted, want int }{
		{1 << 20, 20_000, 20_000}, {20_000, 20_000, 13_404}, {1024, 20_000, 384}, {1024, 100, 100}, {0, 20_000, 20_000}, {10, 20_000, leastConnections},
	} {
		if got := connections(c.wanted, limited{memfs.New(), c.files}); got != c.want {
			t.Errorf("%d of %d files: %d, want %d", c.wanted, c.files, got, c.want)
		}
	}
	if got := connections(20_000, struct{ vfs.FS }{memfs.New()}); got != 20_000 {
		t.Errorf("where it is not known: %d", got)
	}
}
