//go:build !slow && !race

package race

import "time"

const (
	chaosTime       = 150 * time.Millisecond // for which calls of a database run beside each other
	storeChaosTime  = 120 * time.Millisecond
	serverChaosTime = 220 * time.Millisecond
)
