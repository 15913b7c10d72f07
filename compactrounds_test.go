package pando

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// These databases have a budget of so little that one Compact takes several rounds.

// compactable is a database with records in a tree, in a hash table, and apart from their keys, a third of all of which was overwritten.
type compactable struct {
	fs   *memfs.FS
	o    Options
	db   *DB
	want map[string]map[string][]byte // by keyspace
}

func newCompactable(t *testing.T, o Options) *compactable {
	t.Helper()
	c := &compactable{fs: memfs.New(), want: map[string]map[string][]byte{"tree": {}, "table": {}, "long": {}}}
	o.FS, o.Profile = c.fs, Relaxed
	c.o = o
	c.db = openIn(t, c.fs, o)
	chacha := rand.NewChaCha8([32]byte{1})
	rng := rand.New(chacha)
	for _, of := range []struct {
		name      string
		layout    Layout
		n, length int
	}{{"tree", Tree, compactableRecords, 800}, {"table", Hash, compactableRecords / 4, 500}, {"long", Tree, compactableRecords / 60, 10_000}} {
		k, err := c.db.Keyspace(of.name, &KeyspaceOptions{Layout: of.layout})
		must(t, err)
		for i := range of.n + of.n/3 {
			key, value := fmt.Sprintf("%08d", rng.IntN(of.n)), make([]byte, of.length)
			_, _ = chacha.Read(value[:len(value)/8]) // of more there is no dictionary that helps
			copy(value[len(value)*3/4:], fmt.Sprintf("%s %s %d: what all of them have in common", key, of.name, i))
			c.want[of.name][key] = value
			must(t, k.Put([]byte(key), value))
		}
	}
	must(t, c.db.Checkpoint(context.Background()))
	return c
}

func openIn(t *testing.T, fsys *memfs.FS, o Options) *DB {
	t.Helper()
	o.FS = fsys
	db, err := Open("db", &o)
	must(t, err)
	return db
}

// holds fails the test where a database does not hold what it should, or is damaged.
func (c *compactable) holds(t *testing.T, db *DB, when string) {
	t.Helper()
	for name, want := range c.want {
		k, err := db.Keyspace(name, nil)
		must(t, err)
		for _, key := range slices.Sorted(maps.Keys(want)) { // those of a leaf one after the other
			if got, err := k.Get([]byte(key)); err != nil || !bytes.Equal(got, want[key]) {
				t.Fatalf("%s: %s %s: %d bytes, %v", when, name, key, len(got), err)
			}
		}
		if n, err := k.Count(nil, nil); err != nil || n != int64(len(want)) {
			t.Fatalf("%s: %s has %d records of %d, %v", when, name, n, len(want), err)
		}
	}
	if r, err := db.Check(context.Background()); err != nil || r.Err() != nil {
		t.Fatalf("%s: %v, %v", when, err, r.Err())
	}
}

// hasDictionary fails the test where the leaves of the tree were compressed without one.
func hasDictionary(t *testing.T, db *DB) {
	t.Helper()
	k, err := db.Keyspace("tree", nil)
	must(t, err)
	if k.ks.DictionaryID() == 0 {
		t.Error("there is no dictionary")
	}
}

// What fills up while a Compact is under way settles before its end: writers get past one memtable after the other.
func TestWritersGetPastMemtablesWhileCompactRuns(t *testing.T) {
	c := newCompactable(t, Options{MemoryBytes: 1 << 20, Compression: None})
	defer c.db.Close()
	k, err := c.db.Keyspace("tree", nil)
	must(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	filled, settled := 0, 0
	// From within a round nobody may wait for another one, so this fills a memtable, and another one when that has settled.
	err = c.db.Compact(context.Background(), CompactOptions{Progress: func(done, total int64) {
		if done == total || settled == compactableTables || c.db.Metrics().MemtableCount > 1 {
			return
		}
		settled = filled
		for n := 0; n%50 > 0 || c.db.Metrics().MemtableCount == 1; n++ { // which takes as long as many writes
			key, value := fmt.Sprintf("%08d", rng.IntN(30_000)), fmt.Appendf(nil, "written meanwhile: %d", rng.Uint64())
			c.want["tree"][key] = value
			if err := k.Put([]byte(key), value); err != nil {
				t.Fatal(err)
			}
		}
		filled++
	}})
	must(t, err)
	if settled < 3 {
		t.Errorf("%d memtables settled while Compact ran", settled)
	}
	t.Logf("%d memtables settled while Compact ran", settled)
	c.holds(t, c.db, "with what was written meanwhile")
}

// What several rounds make is as small as what one makes, which a larger budget has, and so do others that begin where one was broken off.
func TestCompactInRoundsIsAsSmallAsInOne(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for _, codec := range roundsCodecs {
		sizes, rounds := map[string]int64{}, map[string]int64{}
		for name, memory := range map[string]int64{"one": 128 << 20, "several": 1 << 20, "after one broken off": 1 << 20} {
			c := newCompactable(t, Options{MemoryBytes: memory, Compression: None})
			if strings.HasPrefix(name, "after") {
				ctx, cancel := context.WithCancel(context.Background())
				err := c.db.Compact(ctx, CompactOptions{Compression: codec, Progress: func(done, total int64) {
					if done > total/2 {
						cancel()
					}
				}})
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("a Compact that was broken off: %v", err)
				}
				must(t, c.db.Close())
				c.db = openIn(t, c.fs, c.o)
			}
			before := c.db.Metrics().Checkpoints
			last := int64(-1)
			must(t, c.db.Compact(context.Background(), CompactOptions{Compression: codec, Progress: func(done, total int64) {
				if done < last || done > total {
					t.Fatalf("progress of %d to %d of %d", last, done, total)
				}
				last = done
			}}))
			rounds[name] = c.db.Metrics().Checkpoints - before
			must(t, c.db.Close())
			c.db = openIn(t, c.fs, c.o)
			c.holds(t, c.db, name)
			sizes[name] = c.db.Metrics().SegmentBytes
			if codec == Zstd {
				hasDictionary(t, c.db)
			}
			must(t, c.db.Close())
		}
		t.Logf("%v: bytes %v, rounds %v", codec, sizes, rounds)
		for name, size := range sizes {
			if one := sizes["one"]; size > one+one/100 {
				t.Errorf("%v: %d bytes after %s, %d after one round", codec, size, name, one)
			}
			if name != "one" && rounds[name] < 3 || rounds["one"] > 1 {
				t.Errorf("%v, %s: %d rounds", codec, name, rounds[name])
			}
		}
	}
}

// Wherever a crash ends a Compact, what there was is there; and so it is wherever its context does.
func TestCompactThatDoesNotGetToItsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	c := newCompactable(t, Options{MemoryBytes: 1 << 20, Compression: None})
	defer c.db.Close()
	rng := rand.New(rand.NewPCG(5, 6))
	var images []*memfs.FS
	next := int64(0)
	before := c.db.Metrics().Checkpoints
	must(t, c.db.Compact(context.Background(), CompactOptions{Compression: Zstd, Progress: func(done, total int64) {
		if done < next {
			return
		}
		next += total / compactImages
		image := c.fs.KillImage()
		if len(images)%2 == 0 {
			image = c.fs.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: rng.Uint64(), Reordered: true})
		}
		images = append(images, image)
	}}))
	if rounds := c.db.Metrics().Checkpoints - before; rounds < 3 {
		t.Errorf("%d rounds", rounds)
	}
	hasDictionary(t, c.db)
	for i, image := range images {
		db := openIn(t, image, c.o)
		c.holds(t, db, fmt.Sprint("image ", i))
		ctx, cancel := context.WithCancel(context.Background())
		end := rng.Int64N(5)
		err := db.Compact(ctx, CompactOptions{Compression: Zstd, Progress: func(done, total int64) {
			if done >= total/5*end {
				cancel()
			}
		}})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("image %d: %v", i, err)
		}
		cancel()
		must(t, db.Put([]byte("another"), nil)) // the checkpoint that comes next has to know which dictionaries are in use
		must(t, db.Close())
		db = openIn(t, image, c.o)
		c.holds(t, db, fmt.Sprint("image ", i, ", compacted in part"))
		must(t, db.Close())
	}
}

// Close need not wait until a Compact has come to its end: it waits for the round that runs, and what there was is there.
func TestCloseEndsCompact(t *testing.T) {
	c := newCompactable(t, Options{MemoryBytes: 1 << 20, Compression: None})
	closed := make(chan error)
	var most, all int64
	err := c.db.Compact(context.Background(), CompactOptions{Progress: func(done, total int64) {
		if most == 0 {
			go func() { closed <- c.db.Close() }()
			for err := error(nil); !errors.Is(err, ErrClosed); _, err = c.db.Get([]byte("k")) {
				runtime.Gosched()
			}
		}
		most, all = max(most, done), total
	}})
	if !errors.Is(err, ErrClosed) || most >= all {
		t.Errorf("compacted %d of %d bytes, %v", most, all, err)
	}
	must(t, <-closed)
	db := openIn(t, c.fs, c.o)
	c.holds(t, db, "after a close")
	must(t, db.Close())
}

// Before its first round, and between them, Compact goes over all that there is, which may take as long as many rounds. Close ends that at once.
func TestCloseEndsCompactBetweenRounds(t *testing.T) {
	c := newCompactable(t, Options{MemoryBytes: 1 << 20, Compression: None})
	closed := make(chan error)
	asked := &asks{Context: t.Context(), at: 3, then: func() {
		go func() { closed <- c.db.Close() }()
		for err := error(nil); err == nil; _, err = c.db.Has(nil) {
			runtime.Gosched()
		}
	}}
	wantErr(t, "Compact", c.db.Compact(asked, CompactOptions{}), ErrClosed)
	must(t, <-closed)
	if asked.n > asked.at+1 {
		t.Errorf("Compact has gone on for %d steps", asked.n-asked.at)
	}
	c.db = openIn(t, c.fs, c.o)
	c.holds(t, c.db, "closed before the first round")
	must(t, c.db.Close())
}

// asks is a context that does something when it is asked for its error for the time at, and counts how often it is.
type asks struct {
	context.Context
	n, at int
	then  func()
}

func (a *asks) Err() error {
	if a.n++; a.n == a.at {
		a.then()
	}
	return a.Context.Err()
}
