package pando

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// heapBytes is how much memory of the Go heap is in use.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // what pools hold goes with the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// fillWords stores records that are made of the same words, which columns do not make shorter.
func fillWords(t *testing.T, k *Keyspace, n int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 400)
	for i := range words {
		words[i] = fmt.Sprintf("%x ", rng.Uint64())
	}
	for i := range n {
		var value []byte
		for range 4 + rng.IntN(6) {
			value = append(value, words[rng.IntN(len(words))]...)
		}
		must(t, k.PutUnsynced(fmt.Appendf(nil, "%08d", i), value))
	}
}

// Each Compact with zstd trains a dictionary. The coders of those before are let go, though a snapshot may still read what was compressed
// with them, and they themselves with the last one that may.
func TestMemoryDoesNotGrowWithTheNumberOfCompactions(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	ctx := context.Background()
	zstd := Zstd
	db := small(t, t.TempDir(), Options{Profile: Relaxed})
	k, err := db.Keyspace("users", &KeyspaceOptions{Compression: &zstd})
	must(t, err)
	const n, compactions = 16_000, dictionaryCompactions
	fillWords(t, k, n)
	var snapshots []*Snapshot
	var dictionaries []uint32
	var before int64
	for version := range compactions {
		must(t, db.Compact(ctx, CompactOptions{}))
		dictionaries = append(dictionaries, k.ks.DictionaryID())
		snapshots = append(snapshots, db.Snapshot())
		must(t, k.Put([]byte("00000001"), fmt.Append(nil, version)))
		if version == 1 {
			before = heapBytes()
		}
	}
	if first, last := dictionaries[0], dictionaries[compactions-1]; first == 0 || last != first+compactions-1 {
		t.Fatalf("dictionaries %d: not one for each compaction", dictionaries)
	}
	// The encoder of one dictionary takes more than 10 MB.
	if grown := heapBytes() - before; grown > 4<<20 {
		t.Errorf("the heap has grown by %d bytes in %d compactions", grown, compactions-2)
	}
	for i, s := range snapshots {
		got, err := s.In(k).Count(nil, nil)
		if err != nil || got != n {
			t.Errorf("snapshot %d: %d pairs, %v", i, got, err)
		}
		pairs := 0
		for range s.In(k).Range(nil, nil) {
			pairs++
		}
		if pairs != n || s.Err() != nil {
			t.Errorf("snapshot %d: %d pairs are read, %v", i, pairs, s.Err())
		}
		must(t, s.Close())
	}
	must(t, db.Checkpoint(ctx)) // now the views of before are gone, too
	noDamage(t, db)
}

// A dictionary that only a snapshot still reads keeps its number, also when it is of an earlier run of the program. The next Compact once
// took that number for another dictionary, and failed as long as the snapshot was open.
func TestDictionaryOfAnEarlierRunThatASnapshotReads(t *testing.T) {
	fsys, zstd := memfs.New(), Zstd
	db := openMem(t, fsys, Options{})
	fill := func(db *DB, name string) *Keyspace {
		k, err := db.Keyspace(name, &KeyspaceOptions{Compression: &zstd})
		must(t, err)
		fillWords(t, k, 8000)
		must(t, db.Compact(t.Context(), CompactOptions{}))
		if k.ks.DictionaryID() == 0 {
			t.Fatalf("%s has no dictionary", name)
		}
		return k
	}
	fill(db, "first")
	must(t, db.Close())
	db = openMem(t, fsys, Options{})
	first, err := db.Keyspace("first", nil)
	must(t, err)
	snap := db.Snapshot()
	must(t, db.DropKeyspace("first"))
	must(t, db.Checkpoint(t.Context()))
	fill(db, "second")
	pairs := 0
	for range snap.In(first).Range(nil, nil) {
		pairs++
	}
	if pairs != 8000 || snap.Err() != nil {
		t.Errorf("the snapshot shows %d pairs, %v", pairs, snap.Err())
	}
	must(t, snap.Close())
	noDamage(t, db)
}
