//go:build slow

package crash

const (
	usualSeeds       = 5
	usualGenerations = 6
	usualMixtures    = 12
	usualInstants    = 12
	usualStep        = 5
)
