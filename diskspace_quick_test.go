//go:build !slow

package pando_test

// usualFillings is how many times TestDiskThatTheDatabaseFills opens each database, fills it and empties it.
const usualFillings = 1
