package main

import (
	"runtime/debug"
	"testing"
)

// TestGarbageFor: what may gather follows the memory for caches, within bounds.
func TestGarbageFor(t *testing.T) {
	for memory, want := range map[int64]int64{1 << 20: 4 << 20, 256 << 20: 16 << 20, 1 << 30: 64 << 20, 1 << 40: 64 << 20} {
		if got := garbageFor(memory); got != want {
			t.Errorf("%d bytes of garbage beside %d of memory, want %d", got, memory, want)
		}
	}
	if got := garbageFor(0); got < leastGarbage || got > mostGarbage {
		t.Errorf("%d bytes of garbage by default", got)
	}
}

// TestGarbageOfALargeHeap: a heap of which much is in use is collected as Go does by itself, so that it does not become many times as
// large; one of which nothing is known yet does not grow beyond what may gather.
func TestGarbageOfALargeHeap(t *testing.T) {
	g := &garbage{room: 64 << 20}
	for live, want := range map[uint64]int{0: 1600, 1 << 20: 1600, 8 << 20: 800, 64 << 20: 100, 1 << 40: 100} {
		if got := g.percentFor(live); got != want {
			t.Errorf("%d bytes in use: %d per cent, want %d", live, got, want)
		}
	}
}

// TestGarbageEnds: a server that has ended leaves the collector as it was.
func TestGarbageEnds(t *testing.T) {
	t.Setenv(garbageVariable, "")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	end := letGather(1 << 40) // many times what the tests before it have left in use
	if now := debug.SetGCPercent(77); now <= usualGarbage {
		t.Errorf("garbage is collected at %d per cent while a server runs", now)
	}
	end()
	if now := debug.SetGCPercent(before); now != 77 {
		t.Errorf("garbage is collected at %d per cent afterwards, not at 77", now)
	}
}

// TestGarbageOfWhoKnowsBetter: the environment wins.
func TestGarbageOfWhoKnowsBetter(t *testing.T) {
	t.Setenv(garbageVariable, "50")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	defer letGather(64 << 20)()
	if now := debug.SetGCPercent(77); now != 77 {
		t.Errorf("garbage is collected at %d per cent although the environment says something", now)
	}
}
