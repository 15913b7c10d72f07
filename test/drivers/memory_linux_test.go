package drivers

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// shared is where Linux keeps files in memory.
const shared = "/dev/shm"

// scratch returns an empty directory that goes away with the test: in memory where there is room for a few databases. The
// specifications' cases give a server as little as 100 ms for a commit that has to be synced, and a disk that others use takes longer.
// What a sync is worth is the matter of test/crash and test/kill.
func scratch(t *testing.T) string {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(shared, &st); err != nil || st.Type != unix.TMPFS_MAGIC || st.Bavail*uint64(st.Bsize) < 4<<30 {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(shared, "pando-drivers-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
