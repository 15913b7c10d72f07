package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

func TestLockedError(t *testing.T) {
	for _, test := range []struct {
		pid  int
		own  bool
		want string
	}{
		{4711, false, "db/LOCK: locked by process 4711"},
		{4711, true, "db/LOCK: locked by this process, which has it open already"},
		{0, false, "db/LOCK: locked by somebody else"},
	} {
		err := fmt.Errorf("%w", &vfs.LockedError{Name: "db/LOCK", PID: test.pid, Own: test.own})
		if err.Error() != test.want || !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("%q, want %q", err, test.want)
		}
	}
}

// unreadable is a file system whose directories cannot be opened, for the reason that it gives.
type unreadable struct {
	vfs.FS
	cause error
}

// HoldDir implements vfs.DirHolder.
func (u unreadable) HoldDir(string) (vfs.HeldFS, error) { return nil, u.cause }

// What may be searched but not read is used by its name; what is not there is an error.
func TestHoldDirWithoutOpeningIt(t *testing.T) {
	for _, base := range []vfs.FS{memfs.New(), unreadable{memfs.New(), fmt.Errorf("open d: %w", fs.ErrPermission)}} {
		held, closer, err := vfs.HoldDir(base, "d")
		if err != nil || held != base || closer.Close() != nil {
			t.Errorf("%T: %T, %v", base, held, err)
		}
	}
	if _, _, err := vfs.HoldDir(unreadable{memfs.New(), fs.ErrNotExist}, "d"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
