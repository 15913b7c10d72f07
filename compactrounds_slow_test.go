//go:build slow

package pando

// roundsCodecs are all of them here.
var roundsCodecs = []Compression{None, S2, Zstd}
