//go:build !slow

package pando

// roundsCodecs is what TestCompactInRoundsIsAsSmallAsInOne compacts with: the codec with most to it.
var roundsCodecs = []Compression{Zstd}
