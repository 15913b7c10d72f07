package engine

import "testing"

func TestDefaultMemory(t *testing.T) {
	for available, want := range map[int64]int64{
		0:         64 << 20, // not known
		64 << 30:  1 << 30,
		4 << 30:   512 << 20,
		512 << 20: 64 << 20,
		256 << 20: 64 << 20,
		128 << 20: 32 << 20, // a small container
	} {
		if got := defaultMemory(available); got != want {
			t.Errorf("of %d MiB: %d, want %d", available>>20, got, want)
		}
	}
}
