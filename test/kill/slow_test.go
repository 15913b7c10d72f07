//go:build slow

package kill

const usualRounds = 40

func init() { *slow = true }
