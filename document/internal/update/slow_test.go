//go:build slow

package update

// manyFields is how many fields an update sets of which each may take as long as the others.
const manyFields = 300_000
