package kill

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pandodb/pando/internal/cgroup"
)

// groups is where Linux shows control groups.
const groups = "/sys/fs/cgroup"

// memoryGroup makes a control group whose processes have so many bytes of memory, page cache included, and returns its directory. Where
// this process may not make one the test is skipped.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	base, file := "", ""
	switch in := cgroup.Parse(string(own)); {
	case in.Memory != "": // where there is one beside version 2, it has the memory
		base, file = filepath.Join(groups, "memory", in.Memory), "memory.limit_in_bytes"
	case in.Unified != "":
		base, file = filepath.Join(groups, in.Unified), "memory.max"
	default:
		t.Skip("no control groups")
	}
	dir := filepath.Join(base, "pando-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(limit)), 0o644); err != nil {
		t.Skip(err) // of version 2, where nobody has given us the controller
	}
	return dir
}

// join puts this process into a control group; "" is none.
func join(group string) error {
	if group == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, os.Getpid()), 0o644)
}
