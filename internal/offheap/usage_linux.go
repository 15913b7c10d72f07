package offheap

import (
	"os"
	"strconv"
	"strings"
)

// Usage returns how many bytes of memory the process has, and how many bytes of addresses; 0 when the system does not tell.
func Usage() (resident, virtual int64) {
	text, _ := readFile("/proc/self/statm")
	fields := strings.Fields(text) // in pages: addresses, memory, and more
	if len(fields) < 2 {
		return 0, 0
	}
	pages := func(field string) int64 {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		return n * int64(os.Getpagesize())
	}
	return pages(fields[1]), pages(fields[0])
}
