package workload

import (
	"fmt"
	"sync/atomic"

	"github.com/pandodb/pando/bench/engine"
)

// ycsb is the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010): workloads A to F with Zipfian keys by 1, 2, 4 and
// 16 goroutines. Records are ours, of 16+100 bytes, instead of 1 KB in ten fields: small records are what separates engines.
func ycsb() []Workload {
	return []Workload{{Name: "ycsb", About: "YCSB A to F, Zipfian, 1 to 16 goroutines", Class: engine.Relaxed,
		Stages: []func(*Run) error{ycsbRun}}}
}

// ycsbMix is one of the workloads: shares in per cent; the rest are reads.
type ycsbMix struct {
	name                           string
	update, insert, scan, readback int
	latest                         bool
}

func ycsbMixes() []ycsbMix {
	return []ycsbMix{
		{name: "A (half updates)", update: 50},
		{name: "B (5 % updates)", update: 5},
		{name: "C (reads)"},
		{name: "D (5 % inserts, reads of the latest)", insert: 5, latest: true},
		{name: "E (scans, 5 % inserts)", insert: 5, scan: 95},
		{name: "F (half read-modify-write)", readback: 50},
	}
}

// ycsbScan is the longest scan of workload E.
const ycsbScan = 100

func ycsbRun(r *Run) error {
	d := &Data{KeyBytes: 16, ValueBytes: 100}
	n := r.Sizes.Records / 2
	if _, err := r.Open(d, n*4, 16); err != nil {
		return err
	}
	if err := steps(
		func() error { return r.load("load", d, 0, n, batchRecords, 0) },
		func() error { r.Cells = nil; return r.store.Settle() },
	); err != nil {
		return err
	}
	y := &ycsbState{r: r, d: d, zipf: newZipf(n)}
	y.inserted.Store(int64(n))
	y.visible.Store(int64(n))
	for _, m := range ycsbMixes() {
		for _, goroutines := range []int{1, 2, 4, 16} {
			if m.scan > 0 && r.Driver.NoOrder {
				r.pass() // there is no such cell
				continue
			}
			ops := n / 5
			if m.scan > 0 {
				ops /= 20
			}
			if err := y.mix(m, ops, goroutines); err != nil {
				return err
			}
		}
	}
	return nil
}

type ycsbState struct {
	r        *Run
	d        *Data
	zipf     *zipf
	inserted atomic.Int64 // records begun
	visible  atomic.Int64 // records [0, visible) are there
	short    atomic.Int64 // scans of a mix that ended before they had what was asked for

	last, version uint64 // what the first goroutine put last
}

func (y *ycsbState) mix(m ycsbMix, ops, goroutines int) error {
	list := y.zipf.draw(newRand(uint64(goroutines)), ops)
	name := fmt.Sprintf("%s, %d goroutines", m.name, goroutines)
	first := y.inserted.Load()
	err := y.r.loop(name, ops, goroutines, sampled, func(w *worker, at int) error {
		return y.one(m, w, uint64(list[at]), uint64(at))
	})
	y.visible.Store(y.inserted.Load())
	// A popular record may lie near the end.
	if short := int(y.short.Swap(0)); err == nil && short > 5+ops/2 {
		err = fmt.Errorf("%s: %d of %d scans ended early", name, short, ops)
	}
	if err == nil && goroutines == 1 && m.update+m.insert+m.readback > 0 {
		err = y.r.written(name, y.d, y.version, []uint64{y.last})
	}
	if err != nil || m.insert == 0 {
		return err
	}
	for i := first; i < y.inserted.Load(); i += 17 { // unmeasured: what was inserted is there
		w := &worker{}
		if err := w.get(y.r.store, y.d, uint64(i)); err != nil {
			return fmt.Errorf("%s: inserted record: %w", name, err)
		}
	}
	return nil
}

func (y *ycsbState) one(m ycsbMix, w *worker, i, version uint64) error {
	dice := int(w.rng.Uint32() % 100)
	if m.latest {
		i = uint64(y.visible.Load()) - 1 - i // the most popular is the newest
	}
	switch {
	case dice < m.update:
		return y.put(w, i, version)
	case dice < m.insert:
		return y.put(w, uint64(y.inserted.Add(1)-1), 0)
	case dice < m.insert+m.scan:
		length := 1 + w.rng.IntN(ycsbScan)
		n, err := w.seek(y.r.store, y.d, i, length)
		if n < length {
			y.short.Add(1)
		}
		return err
	case dice < m.readback:
		if err := w.get(y.r.store, y.d, i); err != nil {
			return err
		}
		return y.put(w, i, version)
	}
	return w.get(y.r.store, y.d, i)
}

func (y *ycsbState) put(w *worker, i, version uint64) error {
	w.key, w.value = y.d.Key(w.key, i), y.d.Value(w.value, i, version)
	if w.id == 0 {
		y.last, y.version = i, version
	}
	return y.r.store.Put(w.key, w.value)
}
