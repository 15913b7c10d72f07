//go:build slow

package aggregate

// spilledSizes are budgets of memory that are far too small: which groups are moved, and when, is another each time.
func spilledSizes(int) []int64 { return []int64{100, 200, 300, 400, 500, 600} }
