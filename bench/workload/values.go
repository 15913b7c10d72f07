package workload

import (
	"fmt"

	"github.com/pandodb/pando/bench/engine"
)

// values is our own: what lies between small records and long ones, as documents, pages and messages do, and where an engine has to choose
// whether a value lies beside its key or apart. The sizes have the same bytes in all, so that there are fewer of the longer ones.
func values() []Workload {
	var list []Workload
	for _, kilo := range []int{1, 4, 16} {
		list = append(list, Workload{Name: fmt.Sprintf("values-%dk", kilo),
			About: fmt.Sprintf("values of %d KB, single puts: insert, read, walk, overwrite, delete", kilo),
			Class: engine.Relaxed, Stages: []func(*Run) error{valuesOf(kilo)},
			scale: func(s Sizes) string { return thousands(valuesCount(s, kilo)) + " values" }})
	}
	return list
}

// valuesPerRecord is how many bytes of values there are for each record that other workloads store.
const valuesPerRecord = 200

func valuesCount(s Sizes, kilo int) int { return max(s.Records*valuesPerRecord/(1000*kilo), 100) }

func valuesOf(kilo int) func(*Run) error {
	return func(r *Run) error {
		n := valuesCount(r.Sizes, kilo)
		d := &Data{KeyBytes: 16, ValueBytes: 1000 * kilo}
		s, err := r.Open(d, n, 1)
		if err != nil {
			return err
		}
		name := func(what string) string { return fmt.Sprintf("%d KB: %s", kilo, what) }
		return steps(
			func() error { return r.puts(name("insert"), d, 0, n, 1, sampled, 0) },
			func() error { return r.gets(name("get, as loaded"), s, d, n, n/2, 1) },
			func() error { return r.settleAfter(name("insert")) },
			func() error { return r.gets(name("get"), s, d, n, n, 1) },
			func() error { return r.scan(name("full scan"), s, d, n, false) },
			func() error { return r.scanSome(name("full scan, one value in 64"), d, n) },
			func() error { return r.seeks(name("seek + 10 records"), d, n, n/10, 10) },
			func() error { return r.puts(name("overwrite"), d, 0, n/2, 1, sampled, 1) },
			func() error { return r.settleAfter(name("overwrite")) },
			func() error { return r.scan(name("full scan, half overwritten"), s, d, n, false) },
			func() error { return r.deletes(name("delete"), d, n, n/2, 1) },
			func() error { return r.settleAfter(name("delete")) },
			func() error { return r.deleted(d, n, n/2, 7) },
			func() error { return r.Close() },
			func() error { return r.disk(name("disk, half of it overwritten and then deleted")) },
		)
	}
}
