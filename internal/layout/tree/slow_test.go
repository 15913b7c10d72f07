//go:build slow

package tree

const (
	thorough     = true
	usualDamages = 100
)
