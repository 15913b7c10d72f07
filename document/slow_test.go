//go:build slow

package document_test

const (
	shapedSeeds = 100
	smallDisk   = 32 << 20
	powerCuts   = 20
)
