package workload

import (
	"fmt"

	"github.com/pandodb/pando/bench/engine"
)

// kvstore is after smallnest's kvstore-bench, which most comparisons of Go stores descend from: single puts and gets of
// values of 64, 128, 256 and 512 bytes.
func kvstore() []Workload {
	return []Workload{{Name: "kvstore-bench", About: "single puts and gets, values of 64 to 512 bytes",
		Class: engine.Relaxed, Stages: []func(*Run) error{kvstoreRun}}}
}

func kvstoreRun(r *Run) error {
	n := r.Sizes.Records / 10
	s, err := r.Open(&Data{KeyBytes: 16, ValueBytes: 512}, n*4, 1)
	if err != nil {
		return err
	}
	for at, size := range []int{64, 128, 256, 512} {
		d := &Data{KeyBytes: 16, ValueBytes: size}
		from, put := at*n, fmt.Sprintf("single put, %d B", size)
		err := steps(
			func() error { return r.puts(put, d, from, n, 1, sampled, 0) },
			func() error {
				return r.loop(fmt.Sprintf("get after single puts, %d B", size), n, 1, sampled, func(w *worker, _ int) error {
					return w.get(s, d, uint64(from+w.rng.IntN(n)))
				})
			},
			func() error { return r.settleAfter(put) },
		)
		if err != nil {
			return err
		}
	}
	return nil
}
