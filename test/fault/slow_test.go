//go:build slow

package fault

const (
	usualStorms   = 100
	usualSectors  = 20
	usualCallStep = 7
	usualReadStep = 23
)
