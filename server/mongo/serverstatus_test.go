package mongo

import (
	"math"
	"testing"
)

// TestServerStatusIsReadByTools: mongostat takes the uptime for a whole number, and shows the memory that the process has.
func TestServerStatusIsReadByTools(t *testing.T) {
	c := dial(t, newServer(t, nil))
	status := c.must("admin", cmd("serverStatus", 1))
	if up, isDouble := status.Lookup("uptime").DoubleOK(); !isDouble || up != math.Floor(up) {
		t.Errorf("uptime is %s", status.Lookup("uptime"))
	}
	resident, virtual := status.Lookup("mem", "resident").AsInt64(), status.Lookup("mem", "virtual").AsInt64()
	if has, _ := memoryInUse(); resident <= 0 || resident > 2*has>>20+1 || virtual < resident {
		t.Errorf("%d MiB are resident, of %d; the process has %d bytes", resident, virtual, has)
	}
}
