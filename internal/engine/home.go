package engine

import (
	"io"
	"sync/atomic"

	"github.com/pandodb/pando/vfs"
)

// home is the directory of the database as it was when it was opened. Its name may lead elsewhere later, because the process changes its
// working directory, or somebody moves it; and where it leads there may be another database, whose files have the same names. So the
// directory is held, and not looked up again.
type home struct {
	held io.Closer
	left atomic.Int32
}

// homeUsers are those who have to leave: Close, and what views are made of, which may be needed for longer.
const homeUsers = 2

// hold returns the file system that keeps to the directory.
func (h *home) hold(fsys vfs.FS, dir string) (vfs.FS, error) {
	held, closer, err := vfs.HoldDir(fsys, dir)
	h.held = closer
	return held, err
}

// leave is what each of the users calls once.
func (h *home) leave() error {
	if h.left.Add(1) < homeUsers || h.held == nil {
		return nil
	}
	return h.held.Close()
}
