package corrupt

import (
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // there is little that stays, and much that is garbage soon
	m.Run()
}
