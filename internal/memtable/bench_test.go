package memtable

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/record"
)

const million = 1 << 20

// benchKeys returns n random keys of 16 bytes, or keys with a common beginning and a number in decimal.
func benchKeys(n int, decimal bool) [][]byte {
	rnd := rand.New(rand.NewPCG(1, 1))
	all := make([]byte, 0, n*16)
	keys := make([][]byte, n)
	for i := range keys {
		if decimal {
			all = fmt.Appendf(all, "user%012d", rnd.Uint32())
		} else {
			all = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(all, rnd.Uint64()), rnd.Uint64())
		}
		keys[i] = all[i*16 : i*16+16 : i*16+16]
	}
	return keys
}

func filled(b *testing.B, keys [][]byte) *Table {
	table := newTable(b, LimitFor(2*len(keys), 232*len(keys)))
	r := inline(make([]byte, 100))
	for i, key := range keys {
		table.Put(1, record.Hash(1, key), key, uint64(i+1), r)
	}
	return table
}

func BenchmarkPutNew(b *testing.B) {
	keys := benchKeys(million/2, false)
	r := inline(make([]byte, 100))
	b.ReportAllocs()
	var table *Table
	for i := 0; i < b.N; i++ {
		n := i % len(keys)
		if n == 0 {
			b.StopTimer()
			if table != nil {
				table.Free()
			}
			table, _ = New(LimitFor(len(keys), 116*len(keys)))
			b.StartTimer()
		}
		table.Put(1, record.Hash(1, keys[n]), keys[n], uint64(n+1), r)
	}
	table.Free()
}

func BenchmarkPutExisting(b *testing.B) {
	keys := benchKeys(million/2, false)
	r := inline(make([]byte, 100))
	b.ReportAllocs()
	var table *Table
	for i := 0; i < b.N; i++ {
		n := i % len(keys)
		if n == 0 {
			b.StopTimer()
			if table != nil {
				table.Free() // before the next one takes memory: pages that were never touched cost a virtual machine dear
			}
			table = filled(b, keys)
			b.StartTimer()
		}
		key := keys[(n*7919)&(len(keys)-1)]
		table.Put(1, record.Hash(1, key), key, uint64(million+n), r)
	}
}

func BenchmarkGet(b *testing.B) {
	keys := benchKeys(million, false)
	table := filled(b, keys)
	b.Run("hit", func(b *testing.B) {
		i, sum := 0, byte(0)
		for b.Loop() {
			key := keys[i*7919&(million-1)]
			r, _, _ := table.Get(1, record.Hash(1, key), key, always)
			sum += r.Value[50]
			i++
		}
	})
	b.Run("miss", func(b *testing.B) {
		i := 0
		for b.Loop() {
			key := keys[i*7919&(million-1)]
			table.Get(2, record.Hash(2, key), key, always)
			i++
		}
	})
	b.Run("hash", func(b *testing.B) {
		i, sum := 0, uint64(0)
		for b.Loop() {
			key := keys[i*7919&(million-1)]
			sum += record.Hash(1, key)
			i++
		}
	})
}

func BenchmarkOrder(b *testing.B) {
	for _, decimal := range []bool{false, true} {
		keys := benchKeys(million/2, decimal)
		table := filled(b, keys)
		k := table.keyspace(1)
		b.Run(fmt.Sprintf("decimal=%v", decimal), func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				k.order.Store(&order{})
				table.ordered(k)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*table.Len()), "ns/key")
		})
	}
}

func BenchmarkCursor(b *testing.B) {
	for _, runs := range []int{1, 3, 5} {
		keys := benchKeys(million/2, false)
		table := newTable(b, LimitFor(len(keys), 116*len(keys)))
		r := inline(make([]byte, 100))
		step := len(keys)
		for n, i := 1, 0; n <= runs; n++ {
			for end := i + step*3/4; i < len(keys) && (i < end || n == runs); i++ {
				table.Put(1, record.Hash(1, keys[i]), keys[i], uint64(i+1), r)
			}
			step /= 5
			table.NewCursor(1, always)
			if n == runs-1 {
				keys = keys[:i+step/2]
			}
		}
		got := len(table.keyspace(1).order.Load().runs)
		b.Run(fmt.Sprintf("runs=%d/move", got), func(b *testing.B) {
			c := table.NewCursor(1, always)
			for b.Loop() {
				if !c.Next() {
					c.First()
				}
			}
		})
		b.Run(fmt.Sprintf("runs=%d/read", got), func(b *testing.B) {
			c := table.NewCursor(1, always)
			var sum byte
			for b.Loop() {
				if !c.Next() {
					c.First()
				}
				r, _ := c.Record()
				sum += c.Key()[3] + r.Value[70]
			}
		})
		b.Run(fmt.Sprintf("runs=%d/seek", got), func(b *testing.B) {
			c := table.NewCursor(1, always)
			i := 0
			for b.Loop() {
				c.SeekGE(keys[i*7919%len(keys)])
				i++
			}
		})
	}
}

func BenchmarkCursorCached(b *testing.B) {
	table := filled(b, benchKeys(1000, false))
	c := table.NewCursor(1, always)
	for b.Loop() {
		if !c.Next() {
			c.First()
		}
	}
}

// BenchmarkPutThenCursor makes a cursor after each new key, which is the worst that can be asked of the lazy order.
func BenchmarkPutThenCursor(b *testing.B) {
	keys := benchKeys(million/4, false)
	r := inline(make([]byte, 100))
	var table *Table
	var c Cursor
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		n := i & (len(keys) - 1)
		if n == 0 {
			b.StopTimer()
			if table != nil {
				table.Free()
			}
			table = newTable(b, LimitFor(len(keys), 116*len(keys)))
			b.StartTimer()
		}
		table.Put(1, record.Hash(1, keys[n]), keys[n], uint64(n), r)
		c.Reset(table, 1, always)
		c.SeekGE(keys[n])
	}
}

// BenchmarkPutBatch puts batches of 64 over existing keys, as the commit pipeline does: first touch, then write.
func BenchmarkPutBatch(b *testing.B) {
	keys := benchKeys(million/2, false)
	r := inline(make([]byte, 100))
	var table *Table
	var hashes [64]uint64
	var sum uint64
	for i := 0; i < b.N; i++ {
		n := i & (len(keys) - 1)
		if n == 0 {
			b.StopTimer()
			if table != nil {
				table.Free() // before the next one takes memory: pages that were never touched cost a virtual machine dear
			}
			table = filled(b, keys)
			b.StartTimer()
		}
		if n%len(hashes) == 0 {
			for j := range hashes {
				hashes[j] = record.Hash(1, keys[((n+j)*7919)&(len(keys)-1)])
			}
			sum += table.Prefetch(hashes[:])
		}
		table.Put(1, hashes[n%len(hashes)], keys[(n*7919)&(len(keys)-1)], uint64(million+n), r)
	}
}

func BenchmarkNewCursor(b *testing.B) {
	table := filled(b, benchKeys(1000, false))
	b.Run("nothing", func(b *testing.B) {
		var c Cursor
		for b.Loop() {
			c.Reset(table, 2, always)
			c.First()
		}
	})
	b.Run("1000", func(b *testing.B) {
		var c Cursor
		for b.Loop() {
			c.Reset(table, 1, always)
			c.First()
		}
	})
}

func BenchmarkDeleteRange(b *testing.B) {
	b.ReportAllocs()
	table, err := New(1 << 20)
	if err != nil {
		b.Fatal(err)
	}
	key := make([]byte, 16)
	n := uint64(0)
	for b.Loop() {
		if n++; n%RangeLimit == 0 {
			table.Free()
			if table, err = New(1 << 20); err != nil {
				b.Fatal(err)
			}
		}
		binary.BigEndian.PutUint64(key, n*0x9E3779B97F4A7C15)
		binary.BigEndian.PutUint64(key[8:], n*0x9E3779B97F4A7C15+1000)
		table.DeleteRange(1, key[:8], key[8:], n)
	}
	table.Free()
}
