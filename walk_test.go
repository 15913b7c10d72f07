package pando

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pandodb/pando/vfs/memfs"
)

// TestWalksOverSettledAndUnsettled: long stretches of settled pairs, with some that lie apart or expire, are walked over in any order
// beside newer pairs, changed ones and deleted ones, as a sorted list says.
func TestWalksOverSettledAndUnsettled(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for _, odd := range []int{1, 20} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%t", odd, apart), func(t *testing.T) { walksOverSettledAndUnsettled(t, odd, apart) })
		}
	}
}

// walksOverSettledAndUnsettled has fewer pairs that cannot be decoded with others the higher odd is. Those others lie apart, or those few do.
func walksOverSettledAndUnsettled(t *testing.T, odd int, apart bool) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	db, err := Open("db", &Options{FS: memfs.New(), MemoryBytes: 8 << 20, Profile: Relaxed, ValueThreshold: 256})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := map[string][]byte{}
	put := func(i int) {
		key, value := fmt.Appendf(nil, "some prefix %06d", i), fmt.Appendf(nil, "value %d %d", i, rng.Uint32())
		if (i%(13*odd) == 0) != apart {
			value = bytes.Repeat(value, 30) // lies apart
		}
		if i%(17*odd) == 0 {
			err = db.Default().PutExpiring(key, value, time.Now().Add(time.Hour))
		} else {
			err = db.Put(key, value)
		}
		if err != nil {
			t.Fatal(err)
		}
		want[string(key)] = value
	}
	for i := range 3000 {
		put(i)
	}
	walksAbout(t, db, 20, rng, want) // over a memtable alone
	if err := db.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		put(rng.IntN(3300))
		key := fmt.Appendf(nil, "some prefix %06d", rng.IntN(3000))
		if err := db.Delete(key); err != nil {
			t.Fatal(err)
		}
		delete(want, string(key))
	}
	walksAbout(t, db, 20, rng, want)
	for _, odd := range []int{2, 7, 5000} {
		walkWanted(t, db.Iter(&IterOptions{Lower: []byte("some prefix 000003"), Upper: []byte("some prefix 0029")}), odd, want)
	}

	for range 4000 { // from here on more keys have changed than have not
		put(rng.IntN(3300))
		if key := fmt.Appendf(nil, "some prefix %06d", rng.IntN(3300)); rng.IntN(2) == 0 {
			if err := db.Delete(key); err != nil {
				t.Fatal(err)
			}
			delete(want, string(key))
		}
	}
	walksAbout(t, db, 20, rng, want)
	walkWanted(t, db.Iter(&IterOptions{Lower: []byte("some prefix 000003"), Upper: []byte("some prefix 0029")}), 2, want)
	walksOverDeleted(t, db, rng, put, want)
}

// walksOverDeleted has many tombstones in front of settled pairs, and hardly anything else.
func walksOverDeleted(t *testing.T, db *DB, rng *rand.Rand, put func(int), want map[string][]byte) {
	t.Helper()
	if err := db.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 1200 { // a third of the keys, hardly any others among them
		key := fmt.Appendf(nil, "some prefix %06d", rng.IntN(3600))
		if err := db.Delete(key); err != nil {
			t.Fatal(err)
		}
		delete(want, string(key))
		if i%100 == 50 {
			put(rng.IntN(3300))
		}
		if i%300 == 150 {
			walksAbout(t, db, 1, rng, want)
		}
	}
	walksAbout(t, db, 20, rng, want)
	walkWanted(t, db.Iter(&IterOptions{Lower: []byte("some prefix 000003"), Upper: []byte("some prefix 0029")}), 2, want)
}

// walkWanted: a walk that passes over pairs shows those that are left, keys and values, and asks about each pair once.
func walkWanted(t *testing.T, it *Iterator, odd int, want map[string][]byte) {
	t.Helper()
	defer it.Close()
	wanted := func(value []byte) bool { return int(value[len(value)-1])%odd == 0 }
	keys := slices.Sorted(maps.Keys(want))
	keys = slices.DeleteFunc(keys, func(key string) bool { return key < "some prefix 000003" || key >= "some prefix 0029" })
	asked := 0
	for _, key := range keys {
		if !wanted(want[key]) {
			continue
		}
		if !it.NextWanted(func(value []byte) bool { asked++; return wanted(value) }) {
			t.Fatalf("the walk ended before %s: %v", key, it.Err())
		}
		if string(it.Key()) != key || !bytes.Equal(it.Value(), want[key]) {
			t.Fatalf("at %s %.20q instead of %s %.20q", it.Key(), it.Value(), key, want[key])
		}
	}
	if it.NextWanted(func(value []byte) bool { asked++; return wanted(value) }) || it.Err() != nil || asked != len(keys) {
		t.Errorf("at %s at the end, asked about %d of %d pairs: %v", it.Key(), asked, len(keys), it.Err())
	}
}

// walksAbout moves so many iterators about.
func walksAbout(t *testing.T, db *DB, count int, rng *rand.Rand, want map[string][]byte) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(want))
	for range count {
		walkAbout(t, db.Iter(nil), rng, keys, want)
	}
}

// walkAbout moves an iterator about at random, and checks each pair.
func walkAbout(t *testing.T, it *Iterator, rng *rand.Rand, keys []string, want map[string][]byte) {
	at := -1
	check := func(what string, ok bool) {
		if there := at >= 0 && at < len(keys); ok != there {
			t.Fatalf("%s to %d: %v, %v", what, at, ok, it.Err())
		} else if there && (string(it.Key()) != keys[at] || !bytes.Equal(it.Value(), want[keys[at]])) {
			t.Fatalf("%s to %d: %s = %.30s, want %s = %.30s", what, at, it.Key(), it.Value(), keys[at], want[keys[at]])
		}
	}
	for range 30 {
		switch rng.IntN(4) {
		case 0:
			key := fmt.Sprintf("some prefix %06d", rng.IntN(3300))
			at, _ = slices.BinarySearch(keys, key)
			check("seek", it.SeekGE([]byte(key)))
		case 1:
			for n := rng.IntN(200); n > 0 && at < len(keys); n-- {
				at++
				check("next", it.Next())
			}
		case 2:
			for n := rng.IntN(200); n > 0 && at >= 0; n-- {
				at--
				check("prev", it.Prev())
			}
		case 3:
			key := fmt.Sprintf("some prefix %06d", rng.IntN(3300))
			at, _ = slices.BinarySearch(keys, key)
			at--
			check("seek below", it.SeekLT([]byte(key)))
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStoppedWalks: a walk that is stopped in the midst of pairs that it has decoded already shows the one that it stands on until it is moved,
// and no further one.
func TestStoppedWalks(t *testing.T) {
	db, err := Open("db", &Options{FS: memfs.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := range 100 {
		if err := db.Put(fmt.Appendf(nil, "%03d", i), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	const unsettled, both, settled = 0, 1, 2
	for _, state := range []int{unsettled, settled, both} {
		switch state {
		case settled:
			if err := db.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		case both:
			for i := 0; i < 100; i += 3 {
				if err := db.Put(fmt.Appendf(nil, "%03d", i), []byte("new")); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, back := range []bool{false, true} {
			snap := db.Snapshot()
			it := snap.Iter(nil)
			step := it.Next
			if back {
				step = it.Prev
			}
			for n := range 10 {
				if !step() {
					t.Fatalf("state %d, back %v: the walk ended after %d pairs: %v", state, back, n, it.Err())
				}
			}
			key, value := string(it.Key()), string(it.Value())
			snap.Close()
			if string(it.Key()) != key || string(it.Value()) != value || it.Err() != nil {
				t.Errorf("state %d, back %v: at %q %q, it shows %q %q after the end of the snapshot: %v", state, back, key, value, it.Key(), it.Value(), it.Err())
			}
			if step() || it.Next() || it.Prev() || it.Key() != nil || it.Value() != nil || it.Valid() || it.Err() == nil {
				t.Errorf("state %d, back %v: at %q after the end of the snapshot: %v", state, back, it.Key(), it.Err())
			}
			it.Close()
		}
	}
}
