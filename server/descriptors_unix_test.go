//go:build unix

package server

import (
	"syscall"
	"testing"
)

// affordable returns how many connections there may be, with one end in this process, up to want. It lets the process have as many
// descriptors as it may.
func affordable(t *testing.T, want int) int {
	t.Helper()
	const others = 200 // descriptors for everything else
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Logf("the limit of descriptors stays: %v", err)
	}
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if most := int64(limit.Cur) - others; int64(want) > most {
		t.Logf("only %d connections instead of %d: this process may have %d descriptors open", most, want, limit.Cur)
		return int(most)
	}
	return want
}
