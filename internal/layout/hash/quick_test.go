//go:build !slow

package hash

const (
	thorough      = false // of the programs that every layout goes through
	usualDamages  = 12    // seeds, among them each size of pages with each way to damage them
	usualPrograms = 1     // of groups that are counted
)
