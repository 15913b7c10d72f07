//go:build !slow

package cache

import "time"

const (
	usualSteps  = 10_000 // of a random program
	usualStress = 500 * time.Millisecond
)
