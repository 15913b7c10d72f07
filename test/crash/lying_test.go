package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// liar is a file system on a device that confirms syncs and does nothing, some of the time.
type liar struct {
	*memfs.FS
	mu    sync.Mutex
	rng   *rand.Rand
	often int // in a hundred
}

func (l *liar) lies() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(100) < l.often
}

func (l *liar) SyncDir(dir string) error {
	if l.lies() {
		return nil
	}
	return l.FS.SyncDir(dir)
}

func (l *liar) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &lyingFile{f, l}, nil
}

func (l *liar) Create(name string) (vfs.File, error)        { return l.wrap(l.FS.Create(name)) }
func (l *liar) Open(name string) (vfs.File, error)          { return l.wrap(l.FS.Open(name)) }
func (l *liar) OpenReadWrite(name string) (vfs.File, error) { return l.wrap(l.FS.OpenReadWrite(name)) }

type lyingFile struct {
	vfs.File
	l *liar
}

func (f *lyingFile) Sync() error {
	if f.l.lies() {
		return nil
	}
	return f.File.Sync()
}

// TestLyingSyncs cuts the power of a device that lied. What was acknowledged may be gone then; but every answer is one that was right
// once, or an error that says that there is damage, and what is left can be salvaged.
func TestLyingSyncs(t *testing.T) {
	n := 6
	if *deep {
		n = 300
	}
	outcomes := map[string]int{}
	for i := range n {
		seed := *seedFlag + uint64(i)
		rng := rand.New(rand.NewPCG(seed, 7))
		dev := &liar{FS: memfs.New(), rng: rand.New(rand.NewPCG(seed, 8)), often: []int{5, 30, 100}[i%3]}
		o := options(nil, pando.Profile(i%2)) // Durable and Relaxed
		o.FS = dev
		db, err := pando.Open("db", o)
		if err != nil {
			t.Fatal(err)
		}
		ever := map[string]map[string]bool{}
		for at, c := range workload(seed, 120) {
			if c.to != nil {
				now := state{}
				c.to(now)
				for k, v := range now {
					if ever[k] == nil {
						ever[k] = map[string]bool{}
					}
					ever[k][v] = true
				}
			}
			if err := c.do(db); err != nil {
				t.Fatalf("seed %d: %d %s: %v", seed, at, c.name, err)
			}
			if rng.IntN(8) == 0 {
				policy := images(rng.Uint64())[rng.IntN(6)]
				what, err := afterLies(t.Context(), dev.CrashImage(policy), ever)
				if outcomes[what]++; err != nil {
					t.Errorf("seed %d, after %d %s, policy %+v: %v", seed, at, c.name, policy, err)
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v", outcomes)
}

// afterLies opens what a power cut has left, and reads everything.
func afterLies(ctx context.Context, image *memfs.FS, ever map[string]map[string]bool) (what string, err error) {
	copied := image.KillImage()
	db, err := pando.Open("db", options(image, pando.Durable))
	if err != nil {
		switch {
		case errors.Is(err, pando.ErrCorrupt):
			return "does not open", salvages(ctx, copied)
		case errors.Is(err, pando.ErrNotDatabase) && segmentsOf(copied) == 0:
			return "is gone", nil
		}
		return "", fmt.Errorf("open: %w", err)
	}
	rep, err := db.Check(ctx)
	if err != nil {
		return "", errors.Join(err, db.Close())
	}
	if what = "opens"; rep.Err() != nil {
		what = "opens with damage"
	}
	if e := rep.Err(); e != nil && !errors.Is(e, pando.ErrCorrupt) {
		err = fmt.Errorf("check: %w", e)
	}
	for k, values := range ever {
		v, e := db.Get([]byte(k))
		switch {
		case e == nil && !values[string(v)]:
			err = errors.Join(err, fmt.Errorf("%s has %d bytes that it never had", k, len(v)))
		case e != nil && !errors.Is(e, pando.ErrNotFound) && !errors.Is(e, pando.ErrCorrupt):
			err = errors.Join(err, e)
		}
	}
	if rep.Err() != nil {
		err = errors.Join(err, salvages(ctx, copied))
	}
	if e := db.Put([]byte("more"), []byte("value")); e != nil {
		err = errors.Join(err, fmt.Errorf("put: %w", e))
	}
	if e := db.Close(); e != nil && !errors.Is(e, pando.ErrCorrupt) {
		err = errors.Join(err, e)
	}
	return what, err
}

func segmentsOf(image *memfs.FS) int {
	names, _ := image.List("db/segments") // none where there is no such directory
	return len(names)
}

// salvages makes a new database of what is left, which is whole, or says that there is nothing.
func salvages(ctx context.Context, image *memfs.FS) error {
	if _, err := pando.Salvage(ctx, "db", "saved", options(image, pando.Durable)); err != nil {
		if errors.Is(err, pando.ErrCorrupt) || errors.Is(err, pando.ErrNotFound) || errors.Is(err, pando.ErrNotDatabase) {
			return nil
		}
		return fmt.Errorf("salvage: %w", err)
	}
	db, err := pando.Open("saved", options(image, pando.Durable))
	if err != nil {
		return fmt.Errorf("what was salvaged: %w", err)
	}
	rep, err := db.Check(ctx)
	if err == nil {
		err = rep.Err()
	}
	return errors.Join(err, db.Close())
}
