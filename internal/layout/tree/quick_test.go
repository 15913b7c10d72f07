//go:build !slow

package tree

const (
	thorough     = false // of the programs that every layout goes through
	usualDamages = 30    // seeds of changes beside damage
)
