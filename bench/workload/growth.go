package workload

import (
	"fmt"
	"math/rand/v2"

	"github.com/pandodb/pando/bench/engine"
)

// growth is the lines of the report: cost against the number of records, by powers of ten up to the largest number. Reads are
// measured with the budget of the other workloads, where everything is in memory, and with one of a quarter of the data; so are
// updates, with what they write. An engine that does not load a size within the limit of time gets no larger one.
func growth() []Workload {
	return []Workload{{Name: "growth", About: "cost against the number of records", Class: engine.Relaxed, Floor: true,
		Stages: []func(*Run) error{growthRun}, Largest: func(s Sizes) int { return s.Growth }, Limited: true,
		scale: func(s Sizes) string { return fmt.Sprintf("budget of %d MiB", s.MemoryMB) }}}
}

// Sizes of the lines, and operations at each: enough to measure at the small ones.
const (
	growthLeast   = 10_000
	growthGets    = 200_000
	growthUpdates = 100_000 // at least
)

// enough is how many operations make a point of a line; a line of one point is there to see that it works.
func (r *Run) enough(operations int) int {
	if r.Sizes.Growth <= growthLeast {
		return min(operations, r.Sizes.Growth)
	}
	return operations
}

// growthSizes are the powers of ten from the least up, and the largest number itself.
func growthSizes(largest int) (list []int) {
	for n := growthLeast; n < largest; n *= 10 {
		list = append(list, n)
	}
	return append(list, largest)
}

func growthRun(r *Run) error {
	point := r.growthAt
	if r.Driver.Floor {
		point = r.memoryAt
	}
	for _, n := range growthSizes(r.Sizes.Growth) {
		first := len(r.Cells)
		err := point(n)
		for i := range r.Cells[first:] {
			r.Cells[first+i].Size = int64(n)
		}
		if err != nil {
			return err
		}
		if err := clearDir(r.Spec.Dir); err != nil {
			return err
		}
		r.checked = len(r.Cells)
		if err := r.Save(); err != nil {
			return err
		}
		if r.cut != "" {
			return nil
		}
	}
	return nil
}

func (r *Run) growthAt(n int) error {
	d := recordData()
	s, err := r.Open(d, n, 1)
	if err != nil {
		return err
	}
	loaded, err := r.loadWithin("load", d, n)
	if err != nil {
		return err
	}
	r.readLimit = r.Spec.LoadLimit / readShare
	return steps(
		func() error { return r.settleAfter("load") },
		func() error { return r.warmGets("get", s, d, loaded) },
		func() error { return r.scan("full scan", s, d, loaded, false) },
		func() error { return r.Close() },
		func() error { s, err = r.open(d, n, 1, quarter(d, n)); return err },
		func() error { return r.warmGets("get, budget of a quarter", s, d, loaded) },
		func() error {
			return r.amplified("budget of a quarter: ", d, loaded, max(loaded/4, r.enough(growthUpdates)))
		},
		func() error { return r.Close() },
	)
}

// warmGets reads at random once without being measured.
func (r *Run) warmGets(name string, s engine.Reader, d *Data, n int) error {
	if err := r.gets("warm up", s, d, n, r.enough(growthGets), 1); err != nil {
		return err
	}
	r.Cells = r.Cells[:len(r.Cells)-1]
	return r.gets(name, s, d, n, r.enough(growthGets), 1)
}

// memoryLine is what a miss of the processor's caches fetches.
const memoryLine = 64

// memoryAt is the floor under a get: one access to as much memory as the records take, at a place that the one before tells. A get of
// any engine is several of them. How much one costs grows with the memory, as more of it is outside of the processor's caches and of
// its table of pages.
func (r *Run) memoryAt(n int) error {
	lines := int(recordData().Bytes(n) / memoryLine)
	next := cycle(lines, newRand(uint64(n)))
	at, ops := uint64(0), r.enough(growthGets)*5
	err := r.section("get", ops, func() error {
		for range ops {
			at = next[at*memoryLine/8]
		}
		return nil
	})
	if err == nil && at >= uint64(lines) {
		err = fmt.Errorf("memory: line %d of %d", at, lines)
	}
	return err
}

// cycle returns memory in which the first word of each line is the number of another one, such that all are met (Sattolo 1986).
func cycle(lines int, rng *rand.Rand) []uint64 {
	const words = memoryLine / 8
	next := make([]uint64, lines*words)
	for i := range lines {
		next[i*words] = uint64(i)
	}
	for i := lines - 1; i > 0; i-- {
		j := rng.IntN(i)
		next[i*words], next[j*words] = next[j*words], next[i*words]
	}
	return next
}
