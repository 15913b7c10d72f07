package workload

import "github.com/pandodb/pando/bench/engine"

// growth is the lines of the report: cost against the number of records, by powers of ten. Cells of small sizes repeat until
// they are long enough to measure.
func growth() []Workload {
	return []Workload{{Name: "growth", About: "cost against the number of records", Class: engine.Relaxed,
		Stages: []func(*Run) error{growthRun}}}
}

// growthLeast is the smallest size.
const growthLeast = 10_000

func growthRun(r *Run) error {
	for n := growthLeast; n <= r.Sizes.Growth; n *= 10 {
		if err := r.growthAt(n); err != nil {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
		if err := clearDir(r.Spec.Dir); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) growthAt(n int) error {
	d := &Data{KeyBytes: 16, ValueBytes: 100}
	s, err := r.Open(d, n, 1)
	if err != nil {
		return err
	}
	first := len(r.Cells)
	gets := min(n, 200_000)
	err = steps(
		func() error { return r.load("load", d, 0, n, batchRecords, 0) },
		func() error { return s.Settle() },
		func() error { return r.gets("warm up", s, d, n, gets, 1) },
		func() error { r.Cells = r.Cells[:len(r.Cells)-1]; return r.gets("get", s, d, n, gets, 1) },
		func() error { return r.scan("full scan", s, d, n, false) },
		func() error { return r.updates("random update", d, n, min(n, 100_000), batchRecords, 1) },
	)
	for i := first; i < len(r.Cells); i++ {
		r.Cells[i].Size = int64(n)
	}
	return err
}
