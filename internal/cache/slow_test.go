//go:build slow

package cache

import "time"

const (
	usualSteps  = 20_000
	usualStress = 1500 * time.Millisecond
)
