//go:build slow

package kill

const (
	usualRounds = 40
	usualBudget = 64 << 20
)

func init() { *slow = true }
