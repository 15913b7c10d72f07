//go:build !slow

package engine

const (
	usualAccounts = 1  // seeds of programs after each step of which the accounts are looked at
	usualSteps    = 80 // of each of them
)
