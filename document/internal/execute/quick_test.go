//go:build !slow

package execute_test

const (
	usualQueries  = 30  // of each generated collection
	sievedFilters = 150 // generated filters of scans
)
