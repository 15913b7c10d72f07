//go:build !slow

package document_test

const (
	shapedSeeds = 3
	smallDisk   = 16 << 20 // bytes of a disk that is filled
	powerCuts   = 10
)
