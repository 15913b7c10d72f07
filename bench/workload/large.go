package workload

import (
	"fmt"
	"time"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// large is more data than the budget: records of 16+100 bytes in random order, with a memory budget of a quarter of them;
// then reads at once, and after the backlog is worked off; scans; random updates with their write amplification.
//
// With a limit of time, an engine that has not everything in by then goes on with what it has: its cells say how much that is,
// and nobody is compared with them, since less data is cheaper. Reads stop after a tenth of that limit: they are a sample anyway.
func large() []Workload {
	return []Workload{{Name: "large", About: "a memory budget of a quarter of the data", Class: engine.Relaxed,
		Stages: []func(*Run) error{largeRun}, Budget: largeBudget, Limited: true,
		scale: func(s Sizes) string {
			return fmt.Sprintf("%s records, budget of %d MiB", thousands(s.Large), largeBudget(s)>>20)
		}}}
}

// recordData is what most workloads store.
func recordData() *Data { return &Data{KeyBytes: 16, ValueBytes: 100} }

func largeBudget(s Sizes) int64 { return quarter(recordData(), s.Large) }

// quarter is the budget for n records where memory is scarce. Below 16 MiB engines cannot go.
func quarter(d *Data, n int) int64 { return max(d.Bytes(n)/4, 16<<20) }

// shares of the limit of time.
const (
	updateShare = 3
	readShare   = 10
)

func largeRun(r *Run) error {
	d, n := recordData(), r.Sizes.Large
	s, err := r.open(d, n, 1, largeBudget(r.Sizes))
	if err != nil {
		return err
	}
	if n, err = r.loadWithin("large: load", d, n); err != nil {
		return err
	}
	r.readLimit = r.Spec.LoadLimit / readShare
	return steps(
		func() error { return r.gets("large: get right after the load", s, d, n, n/50, 1) },
		func() error { return r.settleAfter("large: load") },
		func() error { return r.disk("large: disk after the load") },
		func() error { return r.gets("large: get", s, d, n, n/20, 1) },
		func() error { return r.gets("large: get, 2 goroutines", s, d, n, n/20, 2) },
		func() error { return r.absent("large: get, absent", d, n, n/20) },
		func() error { return r.seeks("large: seek + 100 records", d, n, n/1000, 100) },
		func() error { return r.scan("large: full scan", s, d, n, false) },
		func() error { return r.amplified("large: ", d, n, n/4) },
		func() error {
			peak, _ := measure.Memory()
			r.amount("large: peak resident memory", mega(peak), "MB")
			return nil
		},
	)
}

// loadWithin loads n records, or what the limit of time allows, and returns how many there are then. If it is not all of them, every
// further cell is marked.
func (r *Run) loadWithin(name string, d *Data, n int) (int, error) {
	w, loaded, start := &worker{}, 0, time.Now()
	err := r.section(name, n, func() error {
		for loaded < n && (loaded == 0 || !r.past(start, r.Spec.LoadLimit)) {
			to := min(loaded+batchRecords, n)
			if err := r.store.Write(w.batch(d, loaded, to, 0)); err != nil {
				return err
			}
			loaded = to
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	c := &r.Cells[len(r.Cells)-1]
	c.Ops, c.Data = int64(loaded), d.Bytes(loaded)
	if loaded < n {
		r.cut = fmt.Sprintf("%s of %s records in %v", thousands(loaded), thousands(n), r.Spec.LoadLimit)
		c.Cut = r.cut
	}
	return loaded, nil
}

// past reports whether a limit of time has been reached; 0 is none.
func (r *Run) past(start time.Time, limit time.Duration) bool {
	return limit > 0 && time.Since(start) > limit
}

// amplified overwrites records at random, waits until that is done, and tells what was written for it. Where the limit of time ends
// the updates, these cells are marked, since what an engine puts off is then not all there is.
func (r *Run) amplified(prefix string, d *Data, n, ops int) error {
	name := prefix + "random update"
	ops = max(ops, batchRecords) // a batch at least, of which there is something to tell
	work := func() error { return r.updates(name, d, n, ops, batchRecords, 1) }
	return r.limited(r.Spec.LoadLimit/updateShare, ops/batchRecords*batchRecords, "updates", work, func() error {
		if err := r.settleAfter(name); err != nil {
			return err
		}
		c := &r.Cells[len(r.Cells)-1]
		r.amount(prefix+"write amplification of random updates", float64(c.Write)/float64(c.Data), "bytes written per byte")
		return r.info() // pages of a mapping that are dirty already are not counted again: engines that map their file look better
	})
}

// limited does work whose loop a limit of time may end; 0 is none. If it ends before all of it is done, the cell of the loop is marked,
// and so are those of what follows. Nothing follows where the engine has no such operation.
func (r *Run) limited(limit time.Duration, all int, what string, work, then func() error) error {
	reads, cut := r.readLimit, r.cut
	defer func() { r.readLimit, r.cut = reads, cut }()
	r.readLimit = limit
	if err := work(); err != nil {
		return err
	}
	c := &r.Cells[len(r.Cells)-1]
	if c.Failed != "" {
		return nil
	}
	if c.Ops < int64(all) && r.cut == "" {
		r.cut = fmt.Sprintf("%s of %s %s in %v", thousands(int(c.Ops)), thousands(all), what, limit)
		c.Cut = r.cut
	}
	return then()
}

func mega(n int64) float64 { return float64(n) / 1e6 }
