//go:build !amd64 && !arm64

package prefetch

import "unsafe"

// Line is how many bytes come at a time.
const Line = 64

// Lines does nothing.
func Lines(unsafe.Pointer, int) {}

// Near does nothing.
func Near(unsafe.Pointer, int) {}

// Gather does nothing.
func Gather(_, _ unsafe.Pointer, _, _, _ int) {}
