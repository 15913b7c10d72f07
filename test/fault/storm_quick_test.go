//go:build !slow

package fault

const usualSeeds = 8
