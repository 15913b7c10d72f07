//go:build !slow

package aggregate

// spilledSizes are budgets of memory that are far too small: which groups are moved, and when, is another each time.
var spilledSizes = []int64{100, 400}
