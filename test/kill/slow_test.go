//go:build slow

package kill

const (
	usualRounds = 40
	usualBudget = budget
)

func init() { *slow = true }
