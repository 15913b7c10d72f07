//go:build slow

package crash

const (
	usualSeeds    = 5
	usualMixtures = 12
	usualStep     = 5
)
