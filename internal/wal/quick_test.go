//go:build !slow

package wal

const (
	usualCuts     = 3 // of all kinds of power cuts, chosen anew for each moment
	usualFull     = 5 // seeds of disks that are full now and then
	usualReopened = 2 // seeds of logs that were reopened unused
	usualByteStep = 3 // bytes from one that is damaged to the next
)
