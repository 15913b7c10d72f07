//go:build slow

package engine

const (
	usualAccounts = 3
	usualSteps    = 120
)
