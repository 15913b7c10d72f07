package workload

import (
	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// space is what the files take: after a load, after nine tenths were deleted, after compaction; with values that do not
// compress and with documents. memory is what the process takes under a small budget.
func space() []Workload {
	return []Workload{
		{Name: "space", About: "disk: loaded, churned, compacted; random values", Class: engine.Relaxed,
			Stages: []func(*Run) error{spaceLoad(&Data{KeyBytes: 16, ValueBytes: 100}, "random"), spaceChurn}},
		{Name: "space-json", About: "disk: loaded and compacted; JSON documents of 200 bytes", Class: engine.Relaxed,
			Stages: []func(*Run) error{spaceLoad(jsonData(), "JSON"), spaceCompact(jsonData(), "JSON")}},
		{Name: "memory", About: "memory after a load and reads, with a budget of 64 MiB", Class: engine.Relaxed,
			Stages: []func(*Run) error{memoryRun}},
	}
}

func jsonData() *Data { return &Data{KeyBytes: 16, ValueBytes: 215, JSON: true} }

// Each stage opens and closes, so that what an engine writes at a close is counted.

func spaceLoad(d *Data, kind string) func(*Run) error {
	return func(r *Run) error {
		n := r.Sizes.Records
		if _, err := r.Open(d, n*2, 1); err != nil {
			return err
		}
		return steps(
			func() error { return r.load(kind+": load", d, 0, n, batchRecords, 0) },
			func() error { return r.settleAfter(kind + ": load") },
			func() error { return r.Close() },
			func() error { return r.disk(kind + ": disk as loaded") },
		)
	}
}

func spaceCompact(d *Data, kind string) func(*Run) error {
	return func(r *Run) error {
		n := r.Sizes.Records
		s, err := r.Open(d, n*2, 1)
		if err != nil {
			return err
		}
		return steps(
			func() error { return r.section(kind+": compaction", n, s.Compact) },
			r.info,
			func() error { return r.scan(kind+": scan, compacted", s, d, n, false) },
			func() error { return r.Close() },
			func() error { return r.disk(kind + ": disk compacted") },
		)
	}
}

func spaceChurn(r *Run) error {
	d := &Data{KeyBytes: 16, ValueBytes: 100}
	n := r.Sizes.Records
	s, err := r.Open(d, n*2, 1)
	if err != nil {
		return err
	}
	gone := n * 9 / 10 / batchRecords * batchRecords
	return steps(
		func() error { return r.section("compaction", n, s.Compact) },
		r.info,
		func() error { return r.Close() },
		func() error { return r.disk("disk compacted") },
		func() error { s, err = r.Open(d, n*2, 1); return err },
		func() error { return r.updates("churn: update", d, n, n, batchRecords, 1) },
		func() error { return r.deletes("churn: delete nine tenths", d, n, gone, batchRecords) },
		func() error { return r.settleAfter("churn: delete nine tenths") },
		func() error { return r.Close() },
		func() error { return r.disk("churn: disk after deletes") },
		func() error { s, err = r.Open(d, n*2, 1); return err },
		func() error { return r.section("churn: compaction", n-gone, s.Compact) },
		r.info,
		func() error { return r.scanRest("churn: scan, compacted", d, n, gone) },
		func() error { return r.Close() },
		func() error { return r.disk("churn: disk compacted") },
	)
}

// memoryBudget is small beside the data, except in quick runs.
const memoryBudget = 64 << 20

func memoryRun(r *Run) error {
	d := &Data{KeyBytes: 16, ValueBytes: 100}
	n := r.Sizes.Records
	s, err := r.open(d, n, 1, memoryBudget)
	if err != nil {
		return err
	}
	measure.ResetPeak()
	return steps(
		func() error { return r.load("load, 64 MiB budget", d, 0, n, batchRecords, 0) },
		func() error { return r.settleAfter("load, 64 MiB budget") },
		func() error { return r.gets("get, 64 MiB budget", s, d, n, n/4, 1) },
		func() error { return r.scan("scan, 64 MiB budget", s, d, n, false) },
		func() error {
			peak, anonymous := measure.Memory()
			r.amount("anonymous memory after reads", mega(anonymous), "MB")
			r.amount("peak resident memory, mapped files included", mega(peak), "MB")
			return nil
		},
	)
}
