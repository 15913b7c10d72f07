//go:build slow || race

package race

import "time"

const (
	chaosTime       = 400 * time.Millisecond
	storeChaosTime  = 300 * time.Millisecond
	serverChaosTime = 500 * time.Millisecond
)
