package hash

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/vfs/faultfs"
)

// keysOfOneHash are keys whose hashes in the keyspace of the tests have the same first 36 bits: each line those of one hash.
func keysOfOneHash() [][]string {
	return [][]string{
		{"k21456235", "k27044022", "k29094309"}, {"k972353", "k22587567", "k33813658"},
		{"k807767", "k1012480"}, {"k1283489", "k1800427"}, {"k1011946", "k1564421"}, {"k184057", "k529602"}, {"k523001", "k700174"},
		{"k1077050", "k1988375"}, {"k66132", "k154956"}, {"k426582", "k588776"}, {"k376138", "k922316"}, {"k569212", "k743586"},
	}
}

func TestKeysAreAlike(t *testing.T) {
	for _, line := range keysOfOneHash() {
		for _, key := range line[1:] {
			if x, y := keyHash(key), keyHash(line[0]); x&keptBits != y&keptBits || x == y {
				t.Errorf("%s and %s: %016x and %016x", key, line[0], x, y)
			}
		}
	}
}

func keyHash(key string) uint64 { return record.Hash(layouttest.Keyspace, []byte(key)) }

// put changes some keys to a value.
func put(value string, keys ...string) (changes []layout.Change) {
	for _, key := range keys {
		changes = append(changes, layout.Change{Key: []byte(key), Record: layouttest.Inline(value + " of " + key)})
	}
	return changes
}

// remove removes some keys.
func remove(keys ...string) (changes []layout.Change) {
	for _, key := range keys {
		changes = append(changes, layout.Change{Key: []byte(key)})
	}
	return changes
}

// names returns keys of numbers from, from+1, ... before to.
func names(from, to int) (keys []string) {
	for i := from; i < to; i++ {
		keys = append(keys, fmt.Sprintf("name%06d", i))
	}
	return keys
}

// holds expects all of the present root, and of it loaded anew, to be as the model says.
func holds(t *testing.T, w *layouttest.World) {
	t.Helper()
	w.Audit()
	for _, r := range []layout.Root{w.Root, w.Reload()} {
		w.Verify(r, w.Model, w.Now)
		w.Check(r)
		if n, err := r.Count(nil, nil, 0); err != nil || n != int64(len(w.Model)) {
			t.Errorf("%d records, %v; the model has %d", n, err, len(w.Model))
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// TestKeysOfOneHash does each thing that can be done to one of several keys of one hash, with pages of one record and of all of them, in
// memory and not. A delta cannot say which of several it means, so the page has to be written anew.
func TestKeysOfOneHash(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for _, line := range keysOfOneHash()[:3] {
		x, y := line[0], line[1]
		for name, changes := range map[string][]layout.Change{
			"update of the first":  put("new", x),
			"update of the second": put("new", y),
			"update of all":        put("new", line...),
			"delete of the first":  remove(x),
			"delete of the second": remove(y),
			"delete of all":        remove(line...),
			"delete and update":    append(remove(x), put("new", y)...),
			"update and delete":    append(put("new", x), remove(y)...),
		} {
			for _, most := range []int64{2, 512} {
				c := config()
				c.New = func() layout.Layout { return &Hash{most: most, least: most / 4} }
				w := layouttest.NewWorld(t, c, 1, most<<12&(1<<20), 0)
				w.Apply(nil, put("old", names(0, 60)...), layout.ApplyOptions{})
				for _, key := range line {
					w.Apply(nil, put("old", key), layout.ApplyOptions{})
				}
				holds(t, w)
				w.Apply(nil, changes, layout.ApplyOptions{})
				if holds(t, w); t.Failed() {
					t.Fatalf("%s of %v with pages of %d", name, line, most)
				}
			}
		}
	}
}

// TestKeysOfOneHashMove empties the segments in which some of the keys of one hash lie, while other keys of their page change: those that
// come before them in it and those that come behind.
func TestKeysOfOneHashMove(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for seed := range uint64(20) {
		w := layouttest.NewWorld(t, config(), seed, int64(seed%2)<<20, 4<<10)
		w.Apply(nil, put("old", names(0, 100)...), layout.ApplyOptions{})
		for i := range 3 {
			for _, line := range keysOfOneHash() {
				if i < len(line) {
					w.Apply(nil, put("old", line[i]), layout.ApplyOptions{})
				}
			}
		}
		for range 6 {
			victims := w.Segments(func(uint32) bool { return w.Rand.IntN(2) == 0 })
			some := names(0, 120)
			w.Rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			w.Apply(nil, put("new", some[:w.Rand.IntN(8)]...), layout.ApplyOptions{Victims: victims})
			if w.LiesIn(w.Root, victims) {
				t.Error("something still lies in segments that were to be emptied")
			}
			holds(t, w)
		}
	}
}

// TestKeysOfOneHashExpire: what has expired goes when others of its hash change or move, and takes none of them along.
func TestKeysOfOneHashExpire(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	for _, line := range keysOfOneHash() {
		changes := put("old", line...)
		changes[0].Record.Expiry = 2000
		w.Apply(nil, changes, layout.ApplyOptions{})
	}
	w.Apply(nil, put("new", names(0, 10)...), layout.ApplyOptions{Now: 3000, Rewrite: &layout.Stretch{}})
	for _, line := range keysOfOneHash() {
		delete(w.Model, line[0])
	}
	holds(t, w)
}

// TestRandomKeysOfOneHash is a random program over keys of which most have the hash of others.
func TestRandomKeysOfOneHash(t *testing.T) {
	keys := slices.Concat(keysOfOneHash()...)
	for seed := range uint64(12) {
		c := config()
		c.New = func() layout.Layout { return &Hash{most: 1 << (seed % 4 * 3), least: 1} }
		w := layouttest.NewWorld(t, c, seed, int64(seed%3)<<18, 8<<10)
		all := append(slices.Clone(keys), names(0, len(keys)*int(seed%4))...)
		for step := range 40 {
			o := layout.ApplyOptions{MaxDeltas: int(seed%5) * 3}
			var changes []layout.Change
			for range 1 + w.Rand.IntN(10) {
				key := all[w.Rand.IntN(len(all))]
				if w.Rand.IntN(3) == 0 {
					changes = append(changes, remove(key)...)
				} else {
					changes = append(changes, put(fmt.Sprint(step), key)...)
				}
			}
			var ranges []layout.Range
			switch w.Rand.IntN(8) {
			case 0:
				o.Rewrite = &layout.Stretch{}
			case 1, 2:
				bit := w.Rand.Uint32() & 1
				o.Victims = w.Segments(func(id uint32) bool { return id&1 == bit })
			case 3:
				lo := all[w.Rand.IntN(len(all))]
				ranges = []layout.Range{{Lo: []byte(lo), Hi: []byte(lo + "5")}}
			case 4:
				w.Root = w.Reload()
			}
			if w.Apply(ranges, changes, o); w.Rand.IntN(2) == 0 {
				w.Layout.Published(w.Root)
			}
			if holds(t, w); t.Failed() {
				t.Fatalf("step %d of seed %d", step, seed)
			}
		}
	}
}

// TestLastKeysOfOneHashGo: a delta of one change takes away all that there is in a page, so it may be much smaller than the page though the
// keyspace is empty then. What has just been written is not read for that, nor told to be damaged.
func TestLastKeysOfOneHashGo(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	w.Env.Damaged = func(err error) { t.Errorf("damaged: %v", err) }
	w.Env.Dropped = func(err error) { t.Errorf("dropped: %v", err) }
	var keys []string
	for i := range 20 {
		keys = append(keys, string(keyOfOneHash(t, i)))
	}
	w.Apply(nil, put("old", keys...), layout.ApplyOptions{})
	w.Apply(nil, remove(keys...), layout.ApplyOptions{})
	holds(t, w)
}

// TestManyKeysOfOneHashChange: however many keys of one hash change at once, each of their old records is read once.
func TestManyKeysOfOneHashChange(t *testing.T) {
	w, ffs, _ := failing(t)
	var keys []string
	for i := range 300 {
		keys = append(keys, string(keyOfOneHash(t, i)))
	}
	w.Apply(nil, put("old", keys...), layout.ApplyOptions{})
	reads := ffs.Count(faultfs.OpReadAt)
	w.Apply(nil, append(put("new", keys[:100]...), remove(keys[100:200]...)...), layout.ApplyOptions{})
	if reads = ffs.Count(faultfs.OpReadAt) - reads; reads > len(keys)+10 {
		t.Errorf("%d reads for %d records", reads, len(keys))
	}
	holds(t, w)
}
