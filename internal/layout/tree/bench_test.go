package tree

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs/osfs"
)

// benchRecords records of 16+100 bytes make the tree of the benchmarks.
const benchRecords = 1_000_000

// numbers gives out changes to the keys from, from+step, ...
type numbers struct {
	next, step, end uint64
	key             [16]byte
	value           [100]byte
	random          *rand.Rand
	change          layout.Change
}

func (n *numbers) Next() bool { n.next += n.step; return n.next < n.end }

func (n *numbers) Change() *layout.Change {
	benchKey(&n.key, n.next)
	for i := 0; i < 50; i += 8 { // half of the value does not compress
		binary.LittleEndian.PutUint64(n.value[i:], n.random.Uint64())
	}
	n.change = layout.Change{Key: n.key[:], Record: record.Record{Kind: record.Inline, Value: n.value[:]}}
	return &n.change
}

func benchKey(key *[16]byte, i uint64) {
	binary.BigEndian.PutUint64(key[:], i)
	binary.BigEndian.PutUint64(key[8:], i*0x9E3779B97F4A7C15)
}

func benchTree(b *testing.B, cacheBytes int64) (*layout.Environment, *Tree, *root) {
	b.Helper()
	store, err := segment.Open(segment.Options{FS: osfs.New(), Dir: b.TempDir()}, nil, 1)
	if err != nil {
		b.Fatal(err)
	}
	domain := epoch.New()
	env := &layout.Environment{Store: store, Cache: cache.New(cacheBytes, domain), Epoch: domain}
	b.Cleanup(func() {
		domain.Close()
		_ = env.Cache.Close()
		_ = store.Close()
	})
	t := New()
	r, err := t.Load(env, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	return env, t, benchApply(b, env, t, r.(*root), &numbers{step: 2, end: 2 * benchRecords, random: rand.New(rand.NewPCG(1, 1))})
}

func benchApply(b *testing.B, env *layout.Environment, t *Tree, r *root, n *numbers) *root {
	b.Helper()
	w := env.Store.NewWriter(segment.Nodes, 1)
	next, err := t.Apply(context.Background(), r, nil, n, w, layout.ApplyOptions{Codec: segment.S2})
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	w.Commit()
	t.Published(next)
	env.Epoch.Collect()
	return next.(*root)
}

func BenchmarkGet(b *testing.B) {
	env, _, r := benchTree(b, 512<<20)
	c := r.NewCursor()
	for ok := c.First(); ok; { // make all of it resident
		p, _ := c.Window()
		c.MoveTo(p.Len() - 1)
		ok = c.Next()
	}
	_ = c.Close()
	run := func(b *testing.B, odd uint64, want layout.Status) {
		b.ReportAllocs()
		random := rand.New(rand.NewPCG(1, 2))
		var key [16]byte
		for b.Loop() {
			benchKey(&key, 2+2*random.Uint64N(benchRecords-2)+odd)
			hash := record.Hash(1, key[:])
			guard := env.Epoch.Enter()
			_, _, status := r.Get(hash, key[:])
			guard.Exit()
			if status != want {
				b.Fatal(status)
			}
		}
	}
	b.Run("hit", func(b *testing.B) { run(b, 0, layout.Found) })
	b.Run("miss", func(b *testing.B) { run(b, 1, layout.Absent) })
}

func BenchmarkGetReadCold(b *testing.B) {
	_, _, r := benchTree(b, 0)
	var s layout.Scratch
	random := rand.New(rand.NewPCG(1, 2))
	var key [16]byte
	run := func(b *testing.B, odd uint64) {
		b.ReportAllocs()
		for b.Loop() {
			benchKey(&key, 2+2*random.Uint64N(benchRecords-2)+odd)
			if _, ok, err := r.GetRead(&s, record.Hash(1, key[:]), key[:]); ok != (odd == 0) || err != nil {
				b.Fatal(ok, err)
			}
		}
	}
	b.Run("hit", func(b *testing.B) { run(b, 0) })
	b.Run("miss", func(b *testing.B) { run(b, 1) })
}

// benchScan reads everything and reports the time for one record and for one leaf.
func benchScan(b *testing.B, r *root) {
	b.ReportAllocs()
	records, leaves, sum := 0, 0, 0
	for b.Loop() {
		c := r.NewCursor()
		for ok := c.First(); ok; ok = c.Next() {
			p, i := c.Window()
			for n := p.Len(); i < n; i++ {
				suffix, rec := p.Entry(i)
				sum += len(suffix) + len(rec.Value)
				records++
			}
			leaves++
			c.MoveTo(p.Len() - 1)
		}
		if c.Err() != nil {
			b.Fatal(c.Err())
		}
		_ = c.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(leaves), "ns/leaf")
}

func BenchmarkScan(b *testing.B) {
	_, _, r := benchTree(b, 512<<20)
	b.Run("resident", func(b *testing.B) { benchScan(b, r) })
	_, _, r = benchTree(b, 0)
	b.Run("cold", func(b *testing.B) { benchScan(b, r) })
}

func BenchmarkNextLeaf(b *testing.B) {
	_, _, r := benchTree(b, 512<<20)
	c := r.NewCursor()
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		p, _ := c.Window()
		if p.IsZero() || !func() bool { c.MoveTo(p.Len() - 1); return c.Next() }() {
			c.First()
		}
	}
}

func BenchmarkSeek(b *testing.B) {
	_, _, r := benchTree(b, 512<<20)
	c := r.NewCursor()
	defer c.Close()
	random := rand.New(rand.NewPCG(1, 2))
	var key [16]byte
	b.ReportAllocs()
	for b.Loop() {
		benchKey(&key, 2*random.Uint64N(benchRecords))
		c.SeekGE(key[:])
	}
}

// BenchmarkApply measures one Apply of 500,000 updates spread over a million records, per change.
func BenchmarkApply(b *testing.B) {
	for _, c := range []struct {
		name  string
		cache int64
		step  uint64
	}{{"every2nd/resident", 512 << 20, 4}, {"every2nd/cold", 0, 4}, {"every200th/resident", 512 << 20, 400}, {"every200th/cold", 0, 400}} {
		b.Run(c.name, func(b *testing.B) {
			env, t, r := benchTree(b, c.cache)
			random := rand.New(rand.NewPCG(3, 3))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				r = benchApply(b, env, t, r, &numbers{step: c.step, end: 2 * benchRecords, random: random})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(uint64(n)*2*benchRecords/c.step), "ns/change")
			b.Logf("%+v", t.Stats(r))
		})
	}
}

// BenchmarkScanOnce reads everything once through an empty cache that can hold all of it.
func BenchmarkScanOnce(b *testing.B) {
	env, t, r := benchTree(b, 512<<20)
	encoded := r.Encode(nil)
	records := 0
	for b.Loop() {
		b.StopTimer()
		_ = env.Cache.Close()
		env.Cache = cache.New(512<<20, env.Epoch)
		root, err := t.Load(env, 1, encoded)
		if err != nil {
			b.Fatal(err)
		}
		c := root.NewCursor()
		b.StartTimer()
		for ok := c.First(); ok; ok = c.Next() {
			p, _ := c.Window()
			records += p.Len()
			c.MoveTo(p.Len() - 1)
		}
		if c.Err() != nil {
			b.Fatal(c.Err())
		}
		_ = c.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
}
