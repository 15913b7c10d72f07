//go:build amd64 || arm64

package prefetch

import "unsafe"

// Line is how many bytes come at a time.
const Line = 64

// Lines asks for n lines from p on, and for one where n is less. None of them has to be memory at all.
//
//go:noescape
func Lines(p unsafe.Pointer, n int)
