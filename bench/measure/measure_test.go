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
	if skipped := before.Skip(before, after); !skipped.Wall.Equal(after.Wall) || skipped.CPU() != after.CPU() || skipped.Dirtied != after.Dirtied {
		t.Errorf("skipped from %v to %v: %v", before, after, skipped)
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

func TestFlushes(t *testing.T) {
	dir := t.TempDir()
	before, ok := Flushes(dir)
	if !ok {
		t.Skip("the system does not count the flushes of this device")
	}
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 3 {
		if _, err := f.WriteString("something to sync"); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	// A device without a cache of its own has nothing to flush.
	if after, ok := Flushes(dir); !ok || after < before {
		t.Errorf("%d flushes after %d", after, before)
	}
}
