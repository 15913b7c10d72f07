package pando_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestKeysThatShareLongBeginnings: leaves store what their keys have in common once. Keys that do not have it come between them, in
// batches that make leaves and in single changes that make deltas, and no leaf becomes larger than what can be read.
func TestKeysThatShareLongBeginnings(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for _, leaf := range []int{4 << 10, 32 << 10, 256 << 10} {
		t.Run(fmt.Sprint(leaf), func(t *testing.T) {
			const seed = 1
			r, fs, want := rand.New(rand.NewPCG(seed, uint64(leaf))), memfs.New(), map[string][]byte{}
			beginnings := []string{"a", "b", strings.Repeat("long", 1000), strings.Repeat("long", 999) + "lonh", strings.Repeat("lonh", 1020)}
			open := func() (*pando.DB, *pando.Keyspace) {
				db, err := pando.Open("/db", &pando.Options{FS: fs, MemoryBytes: 8 << 20})
				if err != nil {
					t.Fatal(err)
				}
				ks, err := db.Keyspace("x", &pando.KeyspaceOptions{LeafBytes: leaf})
				if err != nil {
					t.Fatal(err)
				}
				return db, ks
			}
			for range 6 {
				db, ks := open()
				strange := []byte("lo" + strings.Repeat("n", r.IntN(3)))
				want[string(strange)] = []byte("v")
				if err := ks.Put(strange, []byte("v")); err != nil {
					t.Fatal(err)
				}
				if err := db.Checkpoint(t.Context()); err != nil { // a delta: nothing is in memory yet
					t.Fatalf("seed %d: %v", seed, err)
				}
				for range 6 {
					begin := beginnings[r.IntN(len(beginnings))]
					err := db.Update(func(tx *pando.Tx) error {
						for range 1 + r.IntN(600) {
							if r.IntN(50) == 0 {
								begin = beginnings[r.IntN(len(beginnings))]
							}
							key, value := binary.BigEndian.AppendUint16([]byte(begin), uint16(r.IntN(1<<16))), make([]byte, r.IntN(30))
							want[string(key)] = value
							if err := tx.In(ks).Put(key, value); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
				if err := db.Close(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			db, ks := open()
			defer db.Close()
			for _, key := range slices.Sorted(maps.Keys(want)) { // those of a leaf one after the other
				if got, err := ks.Get([]byte(key)); err != nil || !bytes.Equal(got, want[key]) {
					t.Fatalf("seed %d: key of %d bytes: %d bytes, %v", seed, len(key), len(got), err)
				}
			}
			if n, err := ks.Count(nil, nil); err != nil || n != int64(len(want)) {
				t.Fatalf("seed %d: %d keys, %v, want %d", seed, n, err, len(want))
			}
		})
	}
}
