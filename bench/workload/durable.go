package workload

import (
	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// durable is what survives a power cut: single synced puts by 1, 16 and 64 goroutines, and batches of 10. Engines that share
// syncs between writers that wait get better with more of them. The engine "raw" is the floor: one write and one fdatasync
// into space that is already there.
func durable() []Workload {
	return []Workload{
		{Name: "durable", About: "synced writes of 16+100 bytes, one writer", Class: engine.Durable,
			Stages: []func(*Run) error{durableWith(1)}, scale: durableScale},
		{Name: "durable-16", About: "the same, 16 writers", Class: engine.Durable,
			Stages: []func(*Run) error{durableWith(16)}, scale: durableScale},
		{Name: "durable-64", About: "the same, 64 writers", Class: engine.Durable,
			Stages: []func(*Run) error{durableWith(64)}, scale: durableScale},
	}
}

func durableScale(s Sizes) string { return thousands(s.Synced) + " synced writes by one writer" }

func durableWith(writers int) func(*Run) error {
	return func(r *Run) error {
		d := &Data{KeyBytes: 16, ValueBytes: 100}
		n := r.Sizes.Synced
		if writers > 1 {
			n *= 4
		}
		s, err := r.Open(d, n*12, writers)
		if err != nil {
			return err
		}
		return steps(
			func() error { return r.puts("warm up", d, 0, n/10, writers, 1, 0) },
			func() error {
				r.Cells = nil
				return r.flushes("flushes a single put", n, func() error {
					return r.puts("single synced puts", d, 0, n, writers, 1, 1)
				})
			},
			func() error {
				err := r.loop("synced batches of 10", n/2, writers, 1, func(w *worker, i int) error {
					return s.Write(w.batch(d, n+i*10, n+i*10+10, 0))
				})
				return err
			},
			func() error { return r.gets("check", s, d, n+n/2*10, n, 1) },
			func() error { r.Cells = r.Cells[:len(r.Cells)-1]; return nil },
		)
	}
}

// flushes adds how often the device was told to make its cache durable while fn did ops operations. A device that counts none
// (a file system in memory) gets no cell.
func (r *Run) flushes(name string, ops int, fn func() error) error {
	before, _ := measure.Flushes(r.Spec.Dir)
	if err := fn(); err != nil {
		return err
	}
	if after, ok := measure.Flushes(r.Spec.Dir); ok && after > before {
		r.amount(name, float64(after-before)/float64(ops), "flushes")
	}
	return nil
}
