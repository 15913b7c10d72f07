package offheap

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLimitsOfControlGroups(t *testing.T) {
	for _, c := range []struct {
		name  string
		own   string
		files map[string]string
		want  int64
	}{
		{"no groups", "", nil, math.MaxInt64},
		{"version 2 without a limit", "0::/a\n", map[string]string{"a/memory.max": "max\n", "a/memory.high": "max\n"}, math.MaxInt64},
		{"version 2", "0::/a\n", map[string]string{"a/memory.max": "1000\n", "a/memory.high": "max\n"}, 1000},
		{"version 2, slowed down earlier", "0::/a\n", map[string]string{"a/memory.max": "1000\n", "a/memory.high": "900\n"}, 900},
		{"version 2, less around it", "0::/a/b\n", map[string]string{"a/b/memory.max": "1000\n", "a/memory.max": "500\n"}, 500},
		{"version 2, in a container", "0::/\n", map[string]string{"memory.max": "700\n"}, 700},
		{"version 2, under its name outside", "0::/box/17\n", map[string]string{"memory.max": "700\n"}, 700},
		{"version 1", "4:cpu,cpuacct:/a\n3:memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "800\n"}, 800},
		{"version 1 without a limit", "3:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 9223372036854771712},
		{"both", "3:hugetlb,memory:/a\n0::/\n", map[string]string{"memory/memory.limit_in_bytes": "600\n"}, 600},
		{"what makes no sense", "x\n0:\n:::\n0::/../..\n", map[string]string{"memory.max": "much\n"}, math.MaxInt64},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			name = filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := groupLimit(root, c.own); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestLimitsOfAddresses(t *testing.T) {
	const none = math.MaxUint64
	for _, c := range []struct {
		bits            int
		addresses, data uint64
		want            int64
	}{
		{64, none, none, math.MaxInt64},
		{64, 3 << 30, none, 3 << 30},
		{64, 3 << 30, 2 << 30, 2 << 30},
		{32, none, none, 4 << 30},
		{32, 1 << 30, none, 1 << 30},
	} {
		got := addressLimit(c.bits, func(which int, limit *unix.Rlimit) error {
			if limit.Cur = c.addresses; which == unix.RLIMIT_DATA {
				limit.Cur = c.data
			}
			return nil
		})
		if got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if got := addressLimit(64, func(int, *unix.Rlimit) error { return unix.EPERM }); got != math.MaxInt64 {
		t.Errorf("limits that are not told: %d", got)
	}
}

func TestAvailableMemoryIsThatOfTheMachineAtMost(t *testing.T) {
	if n := AvailableMemory(); n <= 0 || n > PhysicalMemory() {
		t.Errorf("%d bytes, of %d", n, PhysicalMemory())
	}
}
