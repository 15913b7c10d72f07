//go:build amd64 || arm64

package prefetch

import "unsafe"

// Line is how many bytes come at a time.
const Line = 64

// Lines asks for n lines from p on, and for one where n is less. None of them has to be memory at all.
//
//go:noescape
func Lines(p unsafe.Pointer, n int)

// Near is Lines for a few lines, about a dozen, all of which are read within a few hundred nanoseconds: they come nearer.
//
//go:noescape
func Near(p unsafe.Pointer, n int)

// Gather asks for what lies in n places: length bytes, at least one, from base on plus eight times each of the 32-bit numbers of a list,
// which lie stride bytes apart.
//
//go:noescape
func Gather(base, list unsafe.Pointer, n, stride, length int)
