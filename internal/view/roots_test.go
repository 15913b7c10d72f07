package view

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/layout"
)

// namedRoot is a root that only says which one it is.
type namedRoot struct {
	layout.Root
	name string
}

// TestRoots: roots are found by their keyspaces' numbers, whichever those are and in whichever order they came, and a clone has the same
// ones and is apart.
func TestRoots(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			first, distance := 2+rng.Uint32N(1<<31), []uint32{0, 40, leastRoom - 20, 100_000}[seed%4]
			var r Roots
			want := map[uint32]layout.Root{}
			number := func() uint32 {
				if rng.IntN(10) == 0 {
					return DefaultKeyspace
				}
				return first + rng.Uint32N(30) + rng.Uint32N(3)*distance
			}
			for range 100 {
				switch ks := number(); rng.IntN(4) {
				case 0:
					r.Set(ks, nil)
					delete(want, ks)
				case 1:
					old := r
					r = r.Clone()
					old.Set(ks, namedRoot{name: "not in the clone"})
				default:
					root := namedRoot{name: fmt.Sprint(ks, " ", rng.Uint32())}
					r.Set(ks, root)
					want[ks] = root
				}
				if got := maps.Collect(r.All()); !maps.Equal(got, want) {
					t.Fatalf("all are %v, want %v", got, want)
				}
				for _, ks := range []uint32{0, 2, number(), number(), first - 1, first + 30, 1<<32 - 1} {
					if got := r.At(ks); got != want[ks] {
						t.Fatalf("keyspace %d from %d on: %v, want %v", ks, first, got, want[ks])
					}
				}
			}
		})
	}
}

// TestRootsOfKeyspacesThatAreGone: a clone takes no room for the keyspaces that came and went before those that are there.
func TestRootsOfKeyspacesThatAreGone(t *testing.T) {
	var r Roots
	for ks := uint32(2); ks < 10_000; ks++ {
		r.Set(ks-1, nil)
		r.Set(ks, namedRoot{name: fmt.Sprint(ks)})
		r = r.Clone()
		if len(r.rest) > 2 {
			t.Fatalf("room for %d keyspaces, where there is one", len(r.rest))
		}
	}
}

// TestRootsOfKeyspacesFarBetween: what very many keyspaces leave that came and went between those that are there is no room, and those that
// lie together keep their places in a row.
func TestRootsOfKeyspacesFarBetween(t *testing.T) {
	const together, between = 3000, 10_000_000
	var r Roots
	want := map[uint32]layout.Root{}
	set := func(ks uint32) {
		want[ks] = namedRoot{name: fmt.Sprint(ks)}
		r.Set(ks, want[ks])
	}
	for i := range uint32(20) {
		set(2 + i*between)
	}
	for i := range uint32(together) {
		set(2 + 5*between + i)
	}
	set(2 + 30*between)
	for range 2 {
		if r = r.Clone(); len(r.rest) != together || len(r.apart) != 20 {
			t.Errorf("a row of %d, and %d apart", len(r.rest), len(r.apart))
		}
	}
	if got := maps.Collect(r.All()); !maps.Equal(got, want) {
		t.Errorf("%d roots, want %d", len(got), len(want))
	}
	numbers := slices.Collect(r.numbers())
	if !slices.IsSorted(numbers) {
		t.Error("they are not in the order of their numbers")
	}
	for _, ks := range numbers {
		r.Set(ks, nil)
	}
	if r = r.Clone(); len(r.rest)+len(r.apart) > 0 {
		t.Errorf("room for %d where there are none, and %d apart", len(r.rest), len(r.apart))
	}
}
