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
		want string
	}{
		{4711, "db/LOCK: locked by process 4711"},
		{0, "db/LOCK: locked by another process"},
	} {
		err := fmt.Errorf("%w", &vfs.LockedError{Name: "db/LOCK", PID: test.pid})
		if err.Error() != test.want || !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("%q, want %q", err, test.want)
		}
	}
}
