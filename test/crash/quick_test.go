//go:build !slow

package crash

const (
	usualSeeds    = 1
	usualMixtures = 2
	usualStep     = 9 // of the calls that change what is stored
)
