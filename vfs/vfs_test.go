package vfs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs"
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
