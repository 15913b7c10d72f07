package fault

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// What the device has failed to give back may be there again, also where it counted as damaged after a while, and then the cleaner goes on
// with the segment in which it lies.
func TestCleanerGoesOnWhenTheDeviceDoes(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout pando.Layout
		rounds int
		pause  time.Duration // behind each
	}{
		{"a moment", pando.Tree, 3, 0}, {"long", pando.Tree, 40, 30 * time.Second},
		{"a moment in a hash table", pando.Hash, 3, 0}, {"long in a hash table", pando.Hash, 40, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &cleanedSector{sectorRun: &sectorRun{T: t, fs: &sectors{FS: memfs.New()}, want: map[string][]byte{}}}
				r.run(c.layout, c.rounds, c.pause)
			})
		})
	}
}

// cleanedSector is a database in whose first segment a sector cannot be read for a while.
type cleanedSector struct {
	*sectorRun
	k *pando.Keyspace
}

func (r *cleanedSector) run(layout pando.Layout, rounds int, pause time.Duration) {
	r.open(layout)
	for i := range 3000 {
		r.put(i, 0)
	}
	r.checkpoint()
	r.close()
	r.open(layout) // nothing is in memory
	defer r.close()
	first := r.segments()[0]
	r.fs.fails(func(name string, from, to int64) bool { return filepath.Base(name) == first && leaf(name, from, to) })
	lost := map[int]bool{}
	for i := range 3000 {
		if _, err := r.k.Get(key(i)); err != nil {
			lost[i] = true
		}
	}
	for round := range rounds {
		for i := range 3000 {
			if !lost[i] && (round < 3 || i%100 == 0) { // little is left of the segment but what cannot be read
				r.put(i, 1+round)
			}
		}
		r.checkpoint()
		time.Sleep(pause)
	}
	if !slices.Contains(r.segments(), first) || len(lost) == 0 {
		r.Fatalf("%d keys are lost; segments: %v", len(lost), r.segments())
	}
	r.fs.fails(nil)
	time.Sleep(2 * time.Minute) // the cleaner comes back
	for i := range 2 {
		r.put(i, -1)
		r.checkpoint()
	}
	if slices.Contains(r.segments(), first) {
		r.Errorf("the device works again, and there are still of the segments %v: %s", r.segments(), first)
	}
	for i := range 3000 {
		if _, err := r.k.Get(key(i)); err != nil {
			r.Errorf("key %d: %v", i, err)
		}
	}
}

func key(i int) []byte { return fmt.Appendf(nil, "key%05d", i) }

func (r *cleanedSector) open(layout pando.Layout) {
	r.sectorRun.open()
	var err error
	if r.k, err = r.db.Keyspace("k", &pando.KeyspaceOptions{Layout: layout}); err != nil {
		r.Fatal(err)
	}
}

func (r *cleanedSector) close() {
	if err := r.db.Close(); err != nil {
		r.Error(err)
	}
}

func (r *cleanedSector) put(i, round int) {
	if err := r.k.Put(key(i), noise(fmt.Sprint(i, round))[:60]); err != nil {
		r.Fatal(err)
	}
}

func (r *cleanedSector) checkpoint() {
	if err := r.db.Checkpoint(ctx); err != nil {
		r.Fatal(err)
	}
}
