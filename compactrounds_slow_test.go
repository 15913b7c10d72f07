//go:build slow

package pando

var roundsCodecs = []Compression{None, S2, Zstd}
