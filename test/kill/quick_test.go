//go:build !slow

package kill

const usualRounds = 8
