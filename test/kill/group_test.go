package kill

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
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
	for line := range strings.Lines(string(own)) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		if controllers == "memory" { // of version 1, where there is one beside version 2
			base, file = filepath.Join(groups, "memory", path), "memory.limit_in_bytes"
			break
		}
		if number == "0" {
			base, file = filepath.Join(groups, path), "memory.max"
		}
	}
	if base == "" {
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
