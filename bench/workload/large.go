package workload

import (
	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// large is more data than the budget: records of 16+100 bytes in random order, with a memory budget of a quarter of them;
// then reads at once, and after the backlog is worked off; scans; random updates with their write amplification.
func large() []Workload {
	return []Workload{{Name: "large", About: "a memory budget of a quarter of the data", Class: engine.Relaxed,
		Stages: []func(*Run) error{largeRun}}}
}

func largeRun(r *Run) error {
	d := &Data{KeyBytes: 16, ValueBytes: 100}
	n := r.Sizes.Large
	s, err := r.open(d, n, 1, max(d.Bytes(n)/4, 16<<20))
	if err != nil {
		return err
	}
	return steps(
		func() error { return r.load("large: load", d, 0, n, batchRecords, 0) },
		func() error { return r.gets("large: get right after the load", s, d, n, n/50, 1) },
		func() error { return r.settleAfter("large: load") },
		func() error {
			r.amount("large: disk after the load", mega(measure.DiskBytes(r.Spec.Dir)), "MB")
			return nil
		},
		func() error { return r.gets("large: get", s, d, n, n/20, 1) },
		func() error { return r.gets("large: get, 2 goroutines", s, d, n, n/20, 2) },
		func() error { return r.absent("large: get, absent", d, n, n/20) },
		func() error { return r.seeks("large: seek + 100 records", d, n, n/1000, 100) },
		func() error { return r.scan("large: full scan", s, d, n, false) },
		func() error { return r.updates("large: random update", d, n, n/4, batchRecords, 1) },
		func() error { return r.settleAfter("large: random update") },
		func() error {
			c := r.Cells[len(r.Cells)-1]
			r.amount("large: write amplification of random updates", float64(c.Write)/float64(c.Data), "bytes written per byte")
			return r.info() // pages of a mapping that are dirty already are not counted again: engines that map their file look better
		},
		func() error {
			peak, _ := measure.Memory()
			r.amount("large: peak resident memory", mega(peak), "MB")
			return nil
		},
	)
}

func mega(n int64) float64 { return float64(n) / 1e6 }
