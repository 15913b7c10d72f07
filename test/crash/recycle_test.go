package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// longValues is a workload that replaces a few long values again and again, so that the files of those that are dead are used again.
// The device writes back what it likes meanwhile.
func longValues(seed uint64, n int, base *memfs.FS) []commit {
	rng := rand.New(rand.NewPCG(seed, 6))
	var list []commit
	maintain := func(name string, do func(*pando.DB) error) { list = append(list, commit{name, do, nil}) }
	for range n {
		switch p := rng.IntN(40); {
		case p < 2:
			maintain("checkpoint", func(db *pando.DB) error { return db.Checkpoint(context.Background()) })
		case p < 4:
			maintain("sync", func(db *pando.DB) error { return db.Sync() })
		case p < 5:
			maintain("backup", func(db *pando.DB) error { return db.Backup(context.Background(), "backup") })
		case p < 8:
			policy := memfs.Policy{Unsynced: memfs.Random, Seed: rng.Uint64(), Torn: 512, Reordered: rng.IntN(2) == 0}
			maintain("write back", func(*pando.DB) error {
				base.WriteBack(policy)
				return nil
			})
		case p < 10:
			k := fmt.Sprint("long", rng.IntN(6))
			list = append(list, commit{"delete", func(db *pando.DB) error { return db.Delete([]byte(k)) }, func(s state) { delete(s, k) }})
		default:
			k, v := fmt.Sprint("long", rng.IntN(6)), value(rng, 30_000+rng.IntN(40_000))
			list = append(list, commit{"put", func(db *pando.DB) error { return db.Put([]byte(k), []byte(v)) }, func(s state) { s[k] = v }})
		}
	}
	return list
}

// A file that is used again for other values makes no difference to what a crash leaves.
func TestCrashWithRecycledFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for _, profile := range []pando.Profile{pando.Durable, pando.Relaxed, pando.Bench} {
		t.Run(profile.String(), func(t *testing.T) {
			n := 1
			if *deep {
				n = 20
			}
			for i := range n {
				seed := *seedFlag + uint64(i)
				base := memfs.New()
				cam := crashEverywhere(t, profile, seed, longValues(seed, 150, base), base)
				if recycled := cam.renames.Load(); recycled < 3 {
					t.Errorf("seed %d: %d files were used again", seed, recycled)
				}
			}
		})
	}
}
