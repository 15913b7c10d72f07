package workload

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// mixed is a writer at full speed and a reader whose latency counts; snapshots is a reader that holds one moment while much
// is overwritten.
func mixed() []Workload {
	return []Workload{
		{Name: "mixed", About: "one writer at full speed, one reader: throughput of both, latency of the reader", Class: engine.Relaxed,
			Stages: []func(*Run) error{mixedRun}, scale: func(s Sizes) string { return fmt.Sprintf("%s, for %v", s.records(), s.length()) }},
		{Name: "snapshots", About: "a snapshot held while everything is overwritten twice", Class: engine.Relaxed,
			Stages: []func(*Run) error{snapshotsRun}},
	}
}

func mixedRun(r *Run) error {
	d := &Data{KeyBytes: 16, ValueBytes: 100}
	n := r.Sizes.Records
	s, err := r.settled(d, n, n*2)
	if err != nil {
		return err
	}
	var stop atomic.Bool
	var written atomic.Int64
	failed := make(chan error, 1)
	start := measure.Now()
	go func() {
		w := &worker{rng: newRand(1)}
		var last uint64
		for {
			batch := w.batchOf(d, 100, 1, func(int) uint64 { last = w.rng.Uint64N(uint64(n)); return last })
			if err := s.Write(batch); err != nil {
				failed <- err
				return
			}
			written.Add(int64(len(batch)))
			if stop.Load() { // looked at behind a write: there is one at least, however late the system lets this begin
				break
			}
		}
		failed <- r.written("writer", d, 1, []uint64{last})
	}()
	reader := &worker{rng: newRand(2), latency: measure.NewLatency()}
	end := time.Now().Add(r.Sizes.length())
	for err == nil && time.Now().Before(end) {
		err = reader.run(0, 100, 1, func(w *worker, _ int) error { return w.get(s, d, w.rng.Uint64N(uint64(n))) })
	}
	stop.Store(true)
	if err = errors.Join(err, <-failed); err != nil {
		return err
	}
	c := cellBetween("writes and reads together", int(written.Load()+reader.latency.Count()), start, measure.Now())
	c.percentiles(reader.latency)
	c.Info = true // who writes more has the dearer mix
	seconds := time.Duration(c.Wall).Seconds()
	r.add(c)
	r.amount("writer", float64(written.Load())/seconds, "records/s")
	r.amount("reader", float64(reader.latency.Count())/seconds, "records/s")
	r.amount("reader's p50", float64(c.P50)/1e3, "us")
	r.amount("reader's p99", float64(c.P99)/1e3, "us")
	r.amount("reader's p99.9", float64(c.P999)/1e3, "us")
	return nil
}

func snapshotsRun(r *Run) error {
	if r.Driver.BlocksWriters {
		r.add(Cell{Name: "update under a snapshot", Failed: engine.ErrUnsupported.Error()})
		return nil
	}
	d := &Data{KeyBytes: 16, ValueBytes: 100}
	n := r.Sizes.Records / 2
	s, err := r.settled(d, n, n*8)
	if err != nil {
		return err
	}
	snap, err := s.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	old := oldest{snap}
	// SQLite takes its moment with the first read.
	if err := (&worker{}).get(old, d, 0); err != nil {
		return fmt.Errorf("first read of the snapshot: %w", err)
	}
	return steps(
		func() error { return r.updates("update under a snapshot", d, n, 2*n, batchRecords, 1) },
		func() error { return r.gets("get of the old moment", old, d, n, n/4, 1) },
		func() error { return r.gets("get of the new state", s, d, n, n/4, 1) },
		func() error { return r.scan("scan of the old moment", old, d, n, false) },
		func() error { return r.disk("disk under the snapshot") },
		func() error { return r.settleAfter("update under a snapshot") },
	)
}

// oldest is a snapshot in which every value has version 0.
type oldest struct{ engine.Snapshot }

// Get fails when it meets a value that was written later.
func (o oldest) Get(dst, key []byte) ([]byte, bool, error) {
	v, found, err := o.Snapshot.Get(dst, key)
	if err == nil && found && Version(v) != 0 {
		err = fmt.Errorf("the snapshot shows version %d", Version(v))
	}
	return v, found, err
}

// settled opens a store for so many records, gives it the first n of the data, which counts for nothing, and lets it come to rest.
func (r *Run) settled(d *Data, n, records int) (engine.Store, error) {
	s, err := r.Open(d, records, 1)
	if err != nil {
		return nil, err
	}
	if err := r.load("load", d, 0, n, batchRecords, 0); err != nil {
		return nil, err
	}
	r.Cells = nil
	return s, s.Settle()
}
