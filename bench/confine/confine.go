// Package confine limits the memory of processes from outside: everything that the kernel charges to them counts, the pages of files
// that they read or map included, so that an engine that leaves its caching to the system is measured with as little memory as one
// that has a cache of its own.
//
// It uses control groups (cgroups(7), and "Control Group v2" and "Memory Resource Controller" in the kernel's documentation). It needs
// a group that this process may divide: it is root, or the group was delegated to it, as with version 2 by
//
//	systemd-run --user --scope -p Delegate=yes pandobench run ...
//
// Where that cannot be had, New says why.
package confine

// Limit is what a process gets that was told to get by with a budget for its caches: a quarter more, and at least 64 MiB, for the
// program itself, indexes and filters that an engine does not count, and the dirty pages of what it writes. It is the same for all.
func Limit(budget int64) int64 { return budget + max(budget/4, 64<<20) }
