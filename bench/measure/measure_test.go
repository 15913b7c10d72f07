package measure

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestUsageGrows(t *testing.T) {
	before := Now()
	sum := 0
	for time.Since(before.Wall) < 30*time.Millisecond {
		sum++
	}
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	after := Now()
	if after.CPU() <= before.CPU() {
		t.Errorf("no processor time for %d turns", sum)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if n := after.WrittenSince(before); n < 1<<20 {
		t.Errorf("%d bytes written, want a MiB or more", n)
	}
	if n := DiskBytes(filepath.Dir(name)); n < 1<<20 {
		t.Errorf("%d bytes on disk, want a MiB or more", n)
	}
	if peak, anonymous := Memory(); peak < anonymous || anonymous <= 0 {
		t.Errorf("memory: peak %d, anonymous %d", peak, anonymous)
	}
}

func TestLatency(t *testing.T) {
	a, b := NewLatency(), NewLatency()
	for i := range 900 {
		a.Record(time.Duration(i) * time.Microsecond)
	}
	for range 100 {
		b.Record(time.Second)
	}
	a.Merge(b)
	if a.Count() != 1000 || a.At(50) < 490*time.Microsecond || a.At(50) > 510*time.Microsecond || a.At(99) < 990*time.Millisecond {
		t.Errorf("%d durations, p50 %v, p99 %v, longest %v", a.Count(), a.At(50), a.At(99), a.Max())
	}
}
