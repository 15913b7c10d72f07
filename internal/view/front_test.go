package view

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pandodb/pando/internal/memtable"
	"github.com/pandodb/pando/internal/record"
)

// TestWalkOverMemtables: over several memtables with keys of any length, many of which are in more than one of them, a walk shows the
// newest record of each key that is not a tombstone, in order, and can turn anywhere.
func TestWalkOverMemtables(t *testing.T) {
	for tables := 1; tables <= 4; tables++ {
		for seed := range uint64(20) {
			t.Run(fmt.Sprint(tables, " ", seed), func(t *testing.T) { walkOverMemtables(t, tables, rand.New(rand.NewPCG(seed, 7))) })
		}
	}
}

func walkOverMemtables(t *testing.T, tables int, rng *rand.Rand) {
	v := &View{env: new(Environment)}
	want := map[string]string{}
	seq := uint64(0)
	common := bytes.Repeat([]byte("k"), rng.IntN(20))
	for range tables {
		m, err := memtable.New(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		v.Tables = slices.Insert(v.Tables, 0, NewTable(m))
		for range 1 + rng.IntN(400) {
			seq++
			key := append(bytes.Clone(common), fmt.Sprintf("%0*d", 1+3*rng.IntN(5), rng.IntN(600))...)
			r := record.Record{Kind: record.Inline, Value: fmt.Append(nil, seq)}
			want[string(key)] = string(r.Value)
			if rng.IntN(3) == 0 {
				r = record.Record{Kind: record.Tombstone}
				delete(want, string(key))
			}
			m.Put(1, record.Hash(1, key), key, seq, r)
		}
	}
	keys := slices.Sorted(maps.Keys(want))
	var upper []byte
	if rng.IntN(2) == 0 && len(keys) > 0 {
		upper = []byte(keys[rng.IntN(len(keys))])
		keys = keys[:slices.Index(keys, string(upper))]
	}

	it := v.NewIterator(&IteratorOptions{Keyspace: 1, Seq: seq, Upper: upper, Stop: new(Stop), Hid: new(atomic.Bool)})
	check := func(ok bool, at int) {
		t.Helper()
		if ok != (at >= 0 && at < len(keys)) {
			t.Fatalf("at %d of %d: %v", at, len(keys), ok)
		}
		if ok && (string(it.Key()) != keys[at] || string(it.Value()) != want[keys[at]]) {
			t.Fatalf("at %d: %q %q, want %q %q", at, it.Key(), it.Value(), keys[at], want[keys[at]])
		}
	}
	for at := range len(keys) + 1 {
		check(it.Next(), at)
	}
	for range 10 {
		from := fmt.Appendf(bytes.Clone(common), "%d", rng.IntN(700))
		at, _ := slices.BinarySearch(keys, string(from))
		check(it.SeekGE(from), at)
		step, by := it.Next, 1
		for range 100 {
			switch rng.IntN(12) {
			case 0:
				step, by = it.Next, 1
			case 1:
				step, by = it.Prev, -1
			}
			at = max(-1, min(at+by, len(keys)))
			check(step(), at)
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
}
