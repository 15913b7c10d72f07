//go:build !slow

package crash

const (
	usualSeeds       = 1
	usualGenerations = 4
	usualMixtures    = 2
	usualInstants    = 6  // of the crashes of each life of a mixture
	usualStep        = 19 // of the calls that change what is stored
)
