//go:build !slow

package kill

const (
	usualRounds = 8
	usualBudget = 24 << 20 // of the plain test of memory
)
