package tree

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Wherever heads lie, searching near where a number is expected finds what searching all of them does.
func TestSpread(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, head := range map[string]func(i int) uint64{
		"random":       func(int) uint64 { return rng.Uint64() },
		"counted":      func(i int) uint64 { return 1<<40 + uint64(i)*7 },
		"few bits":     func(int) uint64 { return rng.Uint64N(1 << 16) },
		"wide":         func(i int) uint64 { return uint64(i) << 54 },
		"most alike":   func(int) uint64 { return rng.Uint64N(5) * rng.Uint64N(2) },
		"exponential":  func(i int) uint64 { return 1 << (i % 64) },
		"two clusters": func(i int) uint64 { return uint64(i%2)<<63 + rng.Uint64N(1000) },
		"ends":         func(i int) uint64 { return uint64(i%3/2) * (1<<64 - 1) },
		"alike":        func(int) uint64 { return 42 },
	} {
		for _, n := range []int{0, 1, spreadLeast - 1, spreadLeast, 128, 300, 1000} {
			heads := make([]uint64, n)
			for i := range heads {
				heads[i] = head(i)
			}
			slices.Sort(heads)
			s := spreadOf(heads)
			asked := []uint64{0, 1, 1 << 63, 1<<64 - 1, rng.Uint64()}
			for _, h := range heads {
				asked = append(asked, h-1, h, h+1)
			}
			for _, x := range asked {
				if got, want := s.lowerBound(heads, x), lowerBound(heads, x); got != want {
					t.Fatalf("seed %d, %s: %d of %d heads below %d, not %d", seed, name, got, n, x, want)
				}
			}
		}
	}
}

// What lies evenly is searched near where it is expected, and other heads are not.
func TestSpreadIsKnown(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	counted, random, clusters := make([]uint64, 128), make([]uint64, 128), make([]uint64, 128)
	for i := range counted {
		counted[i], random[i], clusters[i] = uint64(i)*1000, rng.Uint64(), uint64(i%2)<<63+uint64(i)
	}
	slices.Sort(random)
	slices.Sort(clusters)
	if spreadOf(counted).scale == 0 || spreadOf(random).scale == 0 {
		t.Error("counted or random heads are not taken to lie evenly")
	}
	if spreadOf(clusters).scale != 0 {
		t.Error("heads in two clusters are taken to lie evenly")
	}
}
