//go:build !slow

package aggregate

// spilledSizes are budgets of memory that are far too small: which groups are moved, and when, is another each time.
// A golden line gets one of them.
func spilledSizes(line int) []int64 {
	if line%2 == 0 {
		return []int64{100}
	}
	return []int64{400}
}
