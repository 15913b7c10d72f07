package offheap

import (
	"math"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pandodb/pando/internal/cgroup"
)

// controlGroups is where Linux shows control groups, as all distributions and containers have it.
const controlGroups = "/sys/fs/cgroup"

// AvailableMemory returns the memory in bytes that this process may have: that of the machine or, where that is less, what its control
// groups have, as in a container, or half of the addresses that it may have. It is 0 when the system does not tell.
func AvailableMemory() int64 {
	physical := PhysicalMemory()
	own, _ := readFile("/proc/self/cgroup") // none: there are no control groups
	limit := min(groupLimit(controlGroups, own), addressLimit(strconv.IntSize, unix.Getrlimit)/2)
	switch {
	case limit >= math.MaxInt64/2:
		return physical
	case physical == 0:
		return limit
	}
	return min(physical, limit)
}

// addressLimit is how many bytes of addresses the process may have, by the bits of a word and by its own limits (ulimit -v and -d). Mapped
// files take some of them as well as memory, and a Go program has more of both than it uses.
func addressLimit(bits int, limitOf func(which int, limit *unix.Rlimit) error) int64 {
	least := uint64(math.MaxInt64)
	if bits == 32 {
		least = 1 << 32
	}
	for _, which := range []int{unix.RLIMIT_AS, unix.RLIMIT_DATA} {
		var limit unix.Rlimit
		if limitOf(which, &limit) == nil {
			least = min(least, limit.Cur)
		}
	}
	return int64(least)
}

// groupLimit is the least limit of memory of the control groups that own lists, as /proc/self/cgroup does, and of those around them, as
// far as they are seen under root; math.MaxInt64 where there is none. The files are those of cgroups(7), of either version.
func groupLimit(root, own string) int64 {
	least, groups := int64(math.MaxInt64), cgroup.Parse(own)
	if group := groups.Unified; group != "" {
		least = min(limitAround(root, group, "memory.max"), limitAround(root, group, "memory.high"))
	}
	if group := groups.Memory; group != "" {
		least = min(least, limitAround(path.Join(root, "memory"), group, "memory.limit_in_bytes"))
	}
	return least
}

// limitAround is the least number in the files of that name in a group and in those around it. In a container the group may have the name
// that it has outside, and its files lie at the root.
func limitAround(root, group, file string) int64 {
	least := int64(math.MaxInt64)
	for at := path.Join("/", group); ; at = path.Dir(at) {
		if text, ok := readFile(path.Join(root, at, file)); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil { // else it is "max"
				least = min(least, n)
			}
		}
		if at == "/" {
			return least
		}
	}
}

// mostText is how much is read of one of the kernel's files.
const mostText = 16 << 10

// readFile reads one of the kernel's files.
func readFile(name string) (text string, ok bool) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	all := make([]byte, 0, mostText)
	for len(all) < cap(all) {
		n, err := unix.Read(fd, all[len(all):cap(all)])
		if n <= 0 || err != nil {
			break
		}
		all = all[:len(all)+n]
	}
	return string(all), unix.Close(fd) == nil && len(all) > 0
}
