//go:build slow

package hash

const (
	thorough      = true
	usualDamages  = 40
	usualPrograms = 3
)
