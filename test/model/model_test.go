package model

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var (
	seedFlag = flag.Uint64("seed", 0, "run the program of this seed only")
	programs = flag.Int("programs", usualPrograms, "how many random programs to run")
	length   = flag.Int("ops", 500, "operations of a program")
	fresh    = flag.Bool("fresh", false, "run programs that nobody has run before, instead of the same for everybody")
)

// TestModel runs random programs against the model, one seed each; -seed N replays one, and -fresh looks for new ones.
func TestModel(t *testing.T) {
	if *seedFlag != 0 {
		run(t, newMemory(), *seedFlag, *length)
		return
	}
	base := uint64(1)
	if *fresh {
		base = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	n := *programs
	if testing.Short() {
		n = min(n, 6)
	}
	for i := range n {
		seed := base + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			run(t, newMemory(), seed, *length)
		})
	}
}
