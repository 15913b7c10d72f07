package pando_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/pandodb/pando"
)

// The benchmarks use the pairs of which docs/benchmarks.md speaks: 16-byte random keys, 100-byte values.
const (
	benchKey   = 16
	benchValue = 100
)

// benchDB opens a database in the relaxed profile.
func benchDB(b *testing.B) *pando.DB {
	b.Helper()
	db, err := pando.Open(b.TempDir(), &pando.Options{Profile: pando.Relaxed, MemoryBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// pair fills a key in that is a random function of n, and returns it with a value.
func pair(key, value []byte, n uint64) {
	r := rand.New(rand.NewPCG(n, 1))
	binary.BigEndian.PutUint64(key, r.Uint64())
	binary.BigEndian.PutUint64(key[8:], n)
	for i := 0; i+8 <= len(value); i += 8 {
		binary.LittleEndian.PutUint64(value[i:], r.Uint64())
	}
}

// fill loads n pairs in batches and settles them.
func fill(b *testing.B, db *pando.DB, n int) {
	b.Helper()
	key, value := make([]byte, benchKey), make([]byte, benchValue)
	batch := db.NewBatch()
	for i := range n {
		pair(key, value, uint64(i))
		batch.Put(key, value)
		if batch.Len() == 1000 || i == n-1 {
			if err := db.Write(batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	if err := db.Checkpoint(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkPut(b *testing.B) {
	db := benchDB(b)
	key, value := make([]byte, benchKey), make([]byte, benchValue)
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		pair(key, value, n)
		if err := db.Put(key, value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBatchOf1000(b *testing.B) {
	benchBatches(b, func(_ *pando.DB, batch *pando.Batch) *pando.Batch { batch.Reset(); return batch })
}

// As BenchmarkBatchOf1000, of callers who make a batch for each commit.
func BenchmarkNewBatchOf1000(b *testing.B) {
	benchBatches(b, func(db *pando.DB, _ *pando.Batch) *pando.Batch { return db.NewBatch() })
}

// benchBatches writes batches of a thousand pairs; next returns the one after a batch that was written.
func benchBatches(b *testing.B, next func(*pando.DB, *pando.Batch) *pando.Batch) {
	db := benchDB(b)
	key, value := make([]byte, benchKey), make([]byte, benchValue)
	batch := db.NewBatch()
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		pair(key, value, n)
		batch.Put(key, value)
		if batch.Len() == 1000 {
			if err := db.Write(batch); err != nil {
				b.Fatal(err)
			}
			batch = next(db, batch)
		}
	}
}

// What a transaction costs beyond a Get and a Put, which have benchmarks of their own.
func BenchmarkTransaction(b *testing.B) {
	db := benchDB(b)
	const n = 100_000
	fill(b, db, n)
	key, value := make([]byte, benchKey), make([]byte, benchValue)
	dst := make([]byte, 0, 256)
	r := rand.New(rand.NewPCG(1, 2))
	get := func(tx *pando.Tx) error {
		_, err := tx.GetTo(dst, key)
		return err
	}
	getPut := func(tx *pando.Tx) error {
		if err := get(tx); err != nil {
			return err
		}
		return tx.Put(key, value)
	}
	run := func(name string, fn func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pair(key, value, r.Uint64N(n))
				if err := fn(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("View", func() error { return db.View(get) })
	run("Update", func() error { return db.Update(getPut) })
	run("UpdateThatReadsItsWrites", func() error {
		return db.Update(func(tx *pando.Tx) error {
			if err := tx.Put(key, value); err != nil {
				return err
			}
			return getPut(tx)
		})
	})
	run("Optimistic", func() error {
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		if err := getPut(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	run("Modify", func() error {
		return db.Modify(key, func(old []byte, found bool) ([]byte, error) { return value, nil })
	})
}

// A queue: each step puts a key behind the others, and takes the first one. It has a thousand keys at a time.
func BenchmarkQueue(b *testing.B) {
	db := benchDB(b)
	key, value := make([]byte, 8), make([]byte, benchValue)
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		binary.BigEndian.PutUint64(key, n)
		if err := db.Put(key, value); err != nil {
			b.Fatal(err)
		}
		if n < 1000 {
			continue
		}
		it := db.Iter(nil)
		if !it.First() || binary.BigEndian.Uint64(it.Key()) != n-1000 {
			b.Fatal(n, it.Key(), it.Err())
		}
		if err := db.Delete(it.Key()); err != nil {
			b.Fatal(err)
		}
		it.Close()
	}
}

// Updates of few records beside many that nobody touches, with a budget far below what there is: each checkpoint is to cost what has changed,
// and cleaning what it moves, however much else there is.
func BenchmarkHotUpdates(b *testing.B) {
	for _, records := range []int{100_000, 10_000_000} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			const hot = 50_000
			db, err := pando.Open(b.TempDir(), &pando.Options{Profile: pando.Relaxed, MemoryBytes: 32 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			r, value, batch := rand.New(rand.NewPCG(1, 2)), make([]byte, benchValue), db.NewBatch()
			put := func(n uint64) {
				for i := 0; i+8 <= len(value); i += 8 {
					binary.LittleEndian.PutUint64(value[i:], r.Uint64())
				}
				batch.Put(binary.BigEndian.AppendUint64(nil, n), value)
				if batch.Len() < 1000 {
					return
				}
				if err := db.Write(batch); err != nil {
					b.Fatal(err)
				}
				batch.Reset()
			}
			for n := range records {
				put(uint64(n))
			}
			if err := db.Checkpoint(context.Background()); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				put(uint64(records) - 1 - r.Uint64N(hot))
			}
		})
	}
}

// A checkpoint of one record in one of many keyspaces.
func BenchmarkCheckpointOfOne(b *testing.B) {
	for _, keyspaces := range []int{1, 100, 1000, 10_000} {
		b.Run(fmt.Sprint(keyspaces), func(b *testing.B) {
			db := benchDB(b)
			list := make([]*pando.Keyspace, keyspaces)
			for i := range list {
				ks, err := db.Keyspace(fmt.Sprint("keyspace ", i), nil)
				if err == nil {
					err = ks.Put([]byte("key"), []byte("value"))
				}
				if err != nil {
					b.Fatal(err)
				}
				list[i] = ks
			}
			if err := db.Checkpoint(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if err := list[n%keyspaces].Put([]byte("key"), []byte("value")); err != nil {
					b.Fatal(err)
				}
				if err := db.Checkpoint(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

const benchRecords = 1_000_000

func BenchmarkSettled(b *testing.B) {
	db := benchDB(b)
	fill(b, db, benchRecords)
	key, value := make([]byte, benchKey), make([]byte, benchValue)
	dst := make([]byte, 0, 256)
	r := rand.New(rand.NewPCG(1, 2))
	b.Run("GetToHit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pair(key, value[:0], r.Uint64N(benchRecords))
			if _, err := db.GetTo(dst, key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("GetToMiss", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pair(key, value[:0], benchRecords+r.Uint64N(benchRecords))
			if _, err := db.GetTo(dst, key); err != pando.ErrNotFound {
				b.Fatal(err)
			}
		}
	})
	b.Run("Scan", func(b *testing.B) {
		b.ReportAllocs()
		it := db.Iter(nil)
		defer it.Close()
		for b.Loop() {
			if !it.Next() && !it.First() {
				b.Fatal(it.Err())
			}
		}
	})
	b.Run("ScanReverse", func(b *testing.B) {
		b.ReportAllocs()
		it := db.Iter(nil)
		defer it.Close()
		for b.Loop() {
			if !it.Prev() && !it.Last() {
				b.Fatal(it.Err())
			}
		}
	})
	b.Run("Seek100", func(b *testing.B) {
		b.ReportAllocs()
		it := db.Iter(nil)
		defer it.Close()
		for b.Loop() {
			pair(key, value[:0], r.Uint64N(benchRecords))
			it.SeekGE(key)
			for range 100 {
				it.Next()
			}
		}
	})
	b.Run("Count", func(b *testing.B) {
		for b.Loop() {
			pair(key, value[:0], r.Uint64N(benchRecords))
			if _, err := db.Count(key, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkValuesApart reads values of 2 and of 16 KB, more of them than the processor's caches hold: in walks, and sixteen keys at a time as a
// query by an index does. Every value is looked at as a whole, but in "keys", which looks at one in 64. One operation is one pair.
func BenchmarkValuesApart(b *testing.B) {
	for _, length := range []int{2000, 16_000} {
		b.Run(fmt.Sprintf("%d bytes", length), func(b *testing.B) { benchValuesApart(b, 80_000_000/length, length) })
	}
}

func benchValuesApart(b *testing.B, n, length int) {
	db := benchDB(b)
	value := make([]byte, length)
	batch := db.NewBatch()
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = make([]byte, benchKey)
		pair(keys[i], value, uint64(i))
		batch.Put(keys[i], value)
		if batch.Len() == 1000 {
			if err := db.Write(batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	if err := db.Checkpoint(context.Background()); err != nil {
		b.Fatal(err)
	}
	sum := 0
	look := func(value []byte) {
		for i := 0; i < length; i += 64 {
			sum += int(value[i])
		}
	}
	walk := func(b *testing.B, step func(*pando.Iterator) bool, oneIn int) {
		for left := b.N; left > 0; {
			it := db.Default().Iter(nil)
			for ; left > 0 && step(it); left-- {
				if left%oneIn == 0 {
					look(it.Value())
				}
			}
			if err := it.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("walk", func(b *testing.B) { walk(b, (*pando.Iterator).Next, 1) })
	b.Run("backwards", func(b *testing.B) { walk(b, (*pando.Iterator).Prev, 1) })
	b.Run("keys", func(b *testing.B) { walk(b, (*pando.Iterator).Next, 64) })
	b.Run("many", func(b *testing.B) {
		var r pando.Reader
		if err := r.Open(db); err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		var list, values pando.List
		rng := rand.New(rand.NewPCG(1, 2))
		for left := b.N; left > 0; left -= list.Len() {
			list.Reset()
			values.Reset()
			for range 16 {
				list.Append(keys[rng.IntN(n)])
			}
			if err := r.GetMany(&values, db.Default(), &list, 0, list.Len()); err != nil {
				b.Fatal(err)
			}
			for i := range values.Len() {
				look(values.At(i))
			}
		}
	})
}

func BenchmarkPair(b *testing.B) {
	key, value := make([]byte, benchKey), make([]byte, benchValue)
	for n := uint64(0); b.Loop(); n++ {
		pair(key, value, n)
	}
}

// BenchmarkDurable counts the syncs of the log a put as well: one for a single writer, far fewer where many share them.
func BenchmarkDurable(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("%dWriters", writers), func(b *testing.B) {
			db, err := pando.Open(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			var next atomic.Uint64
			b.SetParallelism((writers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				key, value := make([]byte, benchKey), make([]byte, benchValue)
				for pb.Next() {
					pair(key, value, next.Add(1))
					if err := db.Put(key, value); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(db.Metrics().Syncs)/float64(b.N), "syncs/op")
		})
	}
}

// BenchmarkOpenAfterKill opens a database whose log holds 64 MiB that were never settled.
func BenchmarkOpenAfterKill(b *testing.B) {
	dir := b.TempDir()
	db, err := pando.Open(dir, &pando.Options{Profile: pando.Relaxed, MemoryBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	key, value := make([]byte, benchKey), make([]byte, benchValue)
	batch := db.NewBatch()
	for i := range (64 << 20) / 132 {
		pair(key, value, uint64(i))
		batch.Put(key, value)
		if batch.Len() == 100 {
			if err := db.Write(batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	killed := b.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		again := b.TempDir()
		if err := os.CopyFS(again, os.DirFS(killed)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		db, err := pando.Open(again, &pando.Options{Profile: pando.Relaxed, MemoryBytes: 1 << 30})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
