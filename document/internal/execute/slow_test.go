//go:build slow

package execute_test

const (
	usualQueries  = 60  // of each generated collection
	sievedFilters = 400 // generated filters of scans
)
