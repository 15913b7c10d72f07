//go:build slow

package wal

const (
	usualCuts     = 6
	usualFull     = 12
	usualReopened = 4
	usualByteStep = 1
)
