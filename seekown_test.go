package pando

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// An iterator may be told to seek what it shows itself, where its page has to be given up for another one too.
func TestSeekingTheKeyOfTheIteratorItself(t *testing.T) {
	db := small(t, t.TempDir(), Options{Profile: Bench})
	rng := rand.New(rand.NewPCG(1, 2))
	var keys []string
	b := db.NewBatch()
	value := make([]byte, 120)
	for range 40_000 { // many times what fits into memory, under keys that begin with nothing in common
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		key := binary.BigEndian.AppendUint64(nil, rng.Uint64())
		must(t, b.Put(key, value[:60+rng.IntN(60)]))
		keys = append(keys, string(key))
	}
	must(t, db.Write(b))
	slices.Sort(keys)
	var r Reader
	must(t, r.Open(db))
	for range 4000 {
		at := 1 + rng.IntN(len(keys)-2)
		it := r.Iter(db.Default(), nil, nil)
		if !it.SeekGE([]byte(keys[at])) || !it.SeekLT(it.Key()) || string(it.Key()) != keys[at-1] {
			t.Fatalf("below record %d: %x instead of %x, %v", at, it.Key(), keys[at-1], it.Err())
		}
		if !it.SeekGE(it.Key()) || string(it.Key()) != keys[at-1] {
			t.Fatalf("at record %d: %x instead of %x, %v", at-1, it.Key(), keys[at-1], it.Err())
		}
		must(t, it.Close())
	}
}
