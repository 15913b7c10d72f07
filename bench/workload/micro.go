package workload

import "github.com/pandodb/pando/bench/engine"

// micro is lmdb-micro, after the microbenchmark that LMDB was presented with (Symas, 2012): random 16-byte keys; 100-byte
// values, and values of 100 KB; set, get, delete, in random and in sequential order.
func micro() []Workload {
	return []Workload{
		{Name: "lmdb-micro", About: "16-byte random keys, 100-byte values, one process: load, read, scan, update, delete",
			Class: engine.Relaxed, Stages: []func(*Run) error{microRandom}},
		{Name: "lmdb-micro-seq", About: "the same with keys in order", Class: engine.Relaxed,
			Stages: []func(*Run) error{microOrdered}},
		{Name: "lmdb-micro-100k", About: "values of 100 KB", Class: engine.Relaxed, Stages: []func(*Run) error{microLong},
			scale: func(s Sizes) string { return thousands(s.Long) + " values" }},
	}
}

func microRandom(r *Run) error {
	d := &Data{KeyBytes: 16, ValueBytes: 100}
	n := r.Sizes.Records
	s, err := r.Open(d, n*2, 1)
	if err != nil {
		return err
	}
	return steps(
		func() error { return r.load("batched random inserts", d, 0, n, batchRecords, 0) },
		func() error { return r.scan("full scan, as loaded", s, d, n, false) },
		func() error { return r.gets("get, as loaded", s, d, n, n/4, 1) },
		func() error { return r.settleAfter("batched random inserts") },
		func() error { return r.gets("get", s, d, n, n/2, 1) },
		func() error { return r.gets("get, 2 goroutines", s, d, n, n/2, 2) },
		func() error { return r.snapshotGets("get inside a snapshot", d, n, n/2) },
		func() error { return r.absent("get, absent", d, n, n/2) },
		func() error { return r.scan("full scan", s, d, n, false) },
		func() error { return r.scan("full scan backwards", s, d, n, true) },
		func() error { return r.seeks("seek + 100 records", d, n, n/100, 100) },
		func() error { return r.updates("random update", d, n, n/2, batchRecords, 1) },
		func() error { return r.settleAfter("random update") },
		func() error { return r.puts("single update", d, 0, n/20, 1, sampled, 2) },
		func() error { return r.zipfian("zipfian, half writes, 2 goroutines", d, n, n/4, 2, 50) },
		func() error { return r.zipfian("zipfian, 5 % writes, 2 goroutines", d, n, n/2, 2, 5) },
		func() error { return r.deletes("random delete", d, n, n/2, batchRecords) },
		func() error { return r.settleAfter("random delete") },
		func() error { return r.deleted(d, n, n/2/batchRecords*batchRecords, max(n/1000, 1)) },
	)
}

func microOrdered(r *Run) error {
	d := &Data{KeyBytes: 16, ValueBytes: 100, Ordered: true}
	n := r.Sizes.Records
	s, err := r.Open(d, n, 1)
	if err != nil {
		return err
	}
	return steps(
		func() error { return r.load("batched inserts in order", d, 0, n, batchRecords, 0) },
		func() error { return r.settleAfter("batched inserts in order") },
		func() error {
			return r.loop("get in order", n/2, 1, sampled, func(w *worker, i int) error { return w.get(s, d, uint64(i)) })
		},
		func() error { return r.scan("full scan, loaded in order", s, d, n, false) },
		func() error {
			return r.loop("delete in order", n/2/batchRecords, 1, 1, func(w *worker, i int) error {
				ops := w.batch(d, i*batchRecords, (i+1)*batchRecords, 0)
				for k := range ops {
					ops[k].Delete = true
				}
				return r.store.Write(ops)
			})
		},
		func() error {
			r.perRecord(d, batchRecords)
			return r.gone("delete in order", d, spread(n/2/batchRecords*batchRecords))
		},
		func() error { return r.settleAfter("delete in order") },
	)
}

// longBytes is the length of long values.
const longBytes = 100_000

func microLong(r *Run) error {
	d := &Data{KeyBytes: 16, ValueBytes: longBytes}
	n := r.Sizes.Long
	s, err := r.Open(d, n, 1)
	if err != nil {
		return err
	}
	return steps(
		func() error { return r.puts("100 KB: set", d, 0, n, 1, 1, 0) },
		func() error { return r.settleAfter("100 KB: set") },
		func() error { return r.gets("100 KB: get", s, d, n, n, 1) },
		func() error {
			return r.loop("100 KB: get in order", n, 1, 1, func(w *worker, i int) error { return w.get(s, d, uint64(i)) })
		},
		func() error { return r.puts("100 KB: overwrite", d, 0, n/2, 1, 1, 1) },
		func() error { return r.deletes("100 KB: delete", d, n, n/2, 1) },
		func() error { return r.settleAfter("100 KB: delete") },
	)
}

// steps runs steps until one fails.
func steps(list ...func() error) error {
	for _, step := range list {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// snapshotGets reads from one snapshot.
func (r *Run) snapshotGets(name string, d *Data, n, ops int) error {
	snap, err := r.store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	return r.gets(name, snap, d, n, ops, 1)
}

// zipfian mixes reads and single writes with popular records.
func (r *Run) zipfian(name string, d *Data, n, ops, goroutines, percentWrites int) error {
	list := newZipf(n).draw(newRand(3), ops)
	return r.loop(name, ops, goroutines, sampled, func(w *worker, at int) error {
		i := uint64(list[at])
		if int(w.rng.Uint32()%100) >= percentWrites {
			return w.get(r.store, d, i)
		}
		w.key = d.Key(w.key, i)
		w.value = d.Value(w.value, i, uint64(at))
		return r.store.Put(w.key, w.value)
	})
}
