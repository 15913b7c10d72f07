package workload

import (
	"fmt"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// bplustree is after a benchmark of B+trees in C#: records of 116 bytes; insert, select, update, delete, enumerate, one call
// each; by 1 and by 4 threads; memory and disk for 1,000 records.
func bplustree() []Workload {
	return []Workload{{Name: "bplustree", About: "116-byte records one call each, 1 and 4 goroutines",
		Class: engine.Relaxed, Stages: []func(*Run) error{bplustreeRun(1), bplustreeClear, bplustreeRun(4)}}}
}

// bplustreeClear begins anew for the next number of goroutines.
func bplustreeClear(r *Run) error { return clearDir(r.Spec.Dir) }

func bplustreeRun(goroutines int) func(*Run) error {
	return func(r *Run) error {
		d := &Data{KeyBytes: 16, ValueBytes: 100}
		n := r.Sizes.Records / 5 / 1000 * 1000
		n = max(n, 1000)
		s, err := r.Open(d, n*2, goroutines)
		if err != nil {
			return err
		}
		name := func(what string) string { return fmt.Sprintf("%s, %d goroutines", what, goroutines) }
		err = steps(
			func() error { return r.puts(name("insert"), d, 0, n, goroutines, sampled, 0) },
			func() error { return r.gets(name("select"), s, d, n, n, goroutines) },
			func() error { return r.settleAfter(name("insert")) },
			func() error { return r.puts(name("update"), d, 0, n/2, goroutines, sampled, 1) },
		)
		if err != nil {
			return err
		}
		_, anonymous := measure.Memory()
		if err := r.settleAfter(name("update")); err != nil {
			return err
		}
		if goroutines == 1 {
			r.amount("anonymous memory per 1,000 records", float64(anonymous)/float64(n), "KB")
			r.amount("disk per 1,000 records", float64(measure.DiskBytes(r.Spec.Dir))/float64(n), "KB")
		}
		stride := coprime(n)
		return steps(
			func() error { return r.scan(name("enumerate"), s, d, n, false) },
			func() error {
				return r.loop(name("delete"), n/2, goroutines, sampled, func(w *worker, i int) error {
					w.key = d.Key(w.key, uint64(i*stride%n))
					return s.Delete(w.key)
				})
			},
			func() error { return r.scanRest(name("enumerate the rest"), d, n, n/2) },
			func() error { return r.settleAfter(name("delete")) },
		)
	}
}
