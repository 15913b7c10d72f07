package pando

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pandodb/pando/vfs/memfs"
)

// hashKeyspace makes a keyspace without order, or opens it.
func hashKeyspace(t *testing.T, db *DB) *Keyspace {
	t.Helper()
	k, err := db.Keyspace("hash", &KeyspaceOptions{Layout: Hash})
	must(t, err)
	return k
}

// hashStates is states for a keyspace without order, with what is in it: pairs that are written once, written again, deleted and expired,
// some of whose values lie apart.
func hashStates(t *testing.T, test func(t *testing.T, db *DB, k *Keyspace, want map[string]string)) {
	want := map[string]string{}
	states(t, func(db *DB, from, to int) {
		if from == 0 {
			clear(want)
		}
		if err := fillHash(db, want, from, to); err != nil {
			panic(err)
		}
	}, func(t *testing.T, db *DB) { test(t, db, hashKeyspace(t, db), want) })
}

func fillHash(db *DB, want map[string]string, from, to int) error {
	k, err := db.Keyspace("hash", &KeyspaceOptions{Layout: Hash})
	for i := from; i < to && err == nil; i++ {
		key, value := fmt.Sprintf("k%03d", i*37%100), fmt.Sprint("value ", i)
		if i%7 == 0 {
			value = string(bytes.Repeat([]byte(value), 200)) // lies apart
		}
		want[key] = value
		switch err = k.Put([]byte(key), []byte(value)); {
		case err == nil && i%5 == 4: // what was written some time before may have settled
			again := fmt.Sprintf("k%03d", max(i-13, 0)*37%100)
			want[again] = "again"
			err = k.Put([]byte(again), []byte("again"))
		case err == nil && i%11 == 10:
			gone := fmt.Sprintf("k%03d", max(i-39, 0)*37%100)
			delete(want, gone)
			err = k.Delete([]byte(gone))
		case err == nil && i%13 == 0:
			delete(want, key)
			err = k.PutExpiring([]byte(key), []byte("expired"), time.Now().Add(-time.Minute))
		}
	}
	return err
}

// orderless is what reads a keyspace without order.
type orderless interface {
	Get(key []byte) ([]byte, error)
	GetTo(dst, key []byte) ([]byte, error)
	Has(key []byte) (bool, error)
	Iter(o *IterOptions) *Iterator
	Count(lo, hi []byte) (int64, error)
	Nth(lo, hi []byte, n int64) (key, value []byte, err error)
	Err() error
}

// showsAll checks that a reader shows exactly the pairs of want, by key and by walks.
func showsAll(t *testing.T, what string, r orderless, want map[string]string) {
	t.Helper()
	for i := range 100 {
		key := fmt.Sprintf("k%03d", i)
		v, there := want[key]
		got, err := r.GetTo([]byte("before "), []byte(key))
		has, hasErr := r.Has([]byte(key))
		if has != there || hasErr != nil || there && (err != nil || string(got) != "before "+v) || !there && !errors.Is(err, ErrNotFound) {
			t.Fatalf("%s: %s is %.40q, %v, %v, %v, want %.40q, %v", what, key, got, err, has, hasErr, v, there)
		}
	}
	for name, bounds := range map[string]*IterOptions{"nil": nil, "open": {}, "empty": {Lower: []byte{}}, "keys": {KeysOnly: true}, "once": {Once: true}} {
		walksOverAll(t, what+", "+name, r.Iter(bounds), want, bounds != nil && bounds.KeysOnly)
	}
	if n, err := r.Count(nil, nil); err != nil || n != int64(len(want)) {
		t.Errorf("%s: counts %d, %v, want %d", what, n, err, len(want))
	}
}

// walksOverAll walks to the end, back to the start, and about.
func walksOverAll(t *testing.T, what string, it *Iterator, want map[string]string, keysOnly bool) {
	t.Helper()
	defer it.Close()
	var keys []string
	check := func(ok bool, at int) {
		t.Helper()
		if there := at >= 0 && at < len(keys); ok != there || it.Valid() != there || there && string(it.Key()) != keys[at] {
			t.Fatalf("%s: at %d: %v, %v, %q, %v", what, at, ok, it.Valid(), it.Key(), it.Err())
		}
		if ok && (keysOnly && it.Value() != nil || !keysOnly && string(it.Value()) != want[keys[at]]) {
			t.Fatalf("%s: %q is %.40q, want %.40q, %v", what, it.Key(), it.Value(), want[keys[at]], it.Err())
		}
	}
	for it.Next() {
		keys = append(keys, string(it.Key()))
		check(true, len(keys)-1)
	}
	must(t, it.Err())
	if !slices.Equal(slices.Sorted(slices.Values(keys)), slices.Sorted(maps.Keys(want))) {
		t.Fatalf("%s: %q, want %d keys", what, keys, len(want))
	}
	for at := len(keys) - 1; at >= 0; at-- {
		check(it.Prev(), at)
	}
	check(it.Prev(), -1)
	at := -1
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		switch rng.IntN(20) {
		case 0:
			at = 0
			check(it.First(), at)
		case 1:
			at = len(keys) - 1
			check(it.Last(), at)
		default:
			step, n := 1-2*rng.IntN(2), rng.IntN(4)
			for range n {
				if at += step; step > 0 {
					at = min(at, len(keys))
					check(it.Next(), at)
				} else {
					at = max(at, -1)
					check(it.Prev(), at)
				}
			}
		}
	}
}

// refusesOrder checks that everything which needs an order is refused.
func refusesOrder(t *testing.T, what string, r orderless) {
	t.Helper()
	key := []byte("k")
	errs := map[string]error{}
	for name, o := range map[string]*IterOptions{"lower": {Lower: key}, "upper": {Upper: key}, "empty": {Upper: []byte{}}} {
		it := r.Iter(o)
		if it.Next() || it.Prev() || it.First() || it.Last() || it.Valid() {
			t.Errorf("%s: a walk with a bound moves", what)
		}
		errs[name] = errors.Join(it.Err())
		must(t, it.Close())
	}
	for name, seek := range map[string]func(*Iterator, []byte) bool{"SeekGE": (*Iterator).SeekGE, "SeekLT": (*Iterator).SeekLT} {
		it := r.Iter(nil)
		it.Next()
		if seek(it, key) || it.Valid() || it.Key() != nil || it.Next() {
			t.Errorf("%s: %s finds something", what, name)
		}
		errs[name] = it.Err()
		it.Close()
	}
	_, errs["count"] = r.Count(key, nil)
	_, errs["count to"] = r.Count(nil, key)
	_, _, errs["nth"] = r.Nth(nil, nil, 0)
	for name, err := range errs {
		wantErr(t, what+", "+name, err, ErrNoOrder)
		if err != nil && !bytes.Contains([]byte(err.Error()), []byte(`keyspace "hash", whose layout is hash`)) {
			t.Errorf("%s, %s: %v does not name the keyspace", what, name, err)
		}
	}
}

func TestHashReads(t *testing.T) {
	hashStates(t, func(t *testing.T, db *DB, k *Keyspace, want map[string]string) {
		snap := db.Snapshot()
		defer snap.Close()
		showsAll(t, "keyspace", k, want)
		refusesOrder(t, "keyspace", k)
		showsAll(t, "snapshot", snap.In(k), want)
		refusesOrder(t, "snapshot", snap.In(k))
		must(t, db.View(func(tx *Tx) error {
			showsAll(t, "view", tx.In(k), want)
			refusesOrder(t, "view", tx.In(k))
			return nil
		}))
		must(t, k.DeleteRange(nil, nil))
		showsAll(t, "emptied", k, nil)
		must(t, k.Put([]byte("k003"), []byte("new")))
		showsAll(t, "filled again", k, map[string]string{"k003": "new"})
		must(t, db.Checkpoint(context.Background()))
		showsAll(t, "settled again", k, map[string]string{"k003": "new"})
		showsAll(t, "snapshot from before", snap.In(k), want)
	})
}

// TestHashLoops is about loops over Range and its likes.
func TestHashLoops(t *testing.T) {
	hashStates(t, func(t *testing.T, db *DB, k *Keyspace, want map[string]string) {
		var there, back []string
		for key, value := range k.Range(nil, nil) {
			there = append(there, string(key))
			if string(value) != want[string(key)] {
				t.Errorf("%s is %.40q", key, value)
			}
		}
		for key := range k.RangeReverse(nil, nil) {
			back = append(back, string(key))
		}
		slices.Reverse(back)
		if len(there) != len(want) || !slices.Equal(there, back) {
			t.Errorf("%q one way, %q the other", there, back)
		}
		for _, p := range [][]byte{nil, {}} {
			n := 0
			for range k.Prefix(p) {
				n++
			}
			if n != len(want) {
				t.Errorf("the empty prefix has %d pairs of %d", n, len(want))
			}
		}
		must(t, k.Err())
		for range k.Prefix([]byte("k")) {
			t.Error("a prefix has a pair")
		}
		wantErr(t, "prefix", k.Err(), ErrNoOrder)
		for name, run := range map[string]func(func(*Tx) error) error{"view": db.View, "update": db.Update} {
			wantErr(t, name, run(func(tx *Tx) error {
				for range tx.In(k).Range([]byte("k"), nil) {
					t.Error("a range has a pair")
				}
				return nil
			}), ErrNoOrder)
		}
	})
}

// TestHashReader is about what a Reader asks in groups.
func TestHashReader(t *testing.T) {
	hashStates(t, func(t *testing.T, db *DB, k *Keyspace, want map[string]string) {
		var r Reader
		must(t, r.Open(db, k))
		defer r.Close()
		var keys, values List
		var all [][]byte
		for key := range want {
			keys.Append([]byte(key))
		}
		must(t, r.GetMany(&values, k, &keys, 0, keys.Len()))
		for i := range keys.Len() {
			if string(values.At(i)) != want[string(keys.At(i))] {
				t.Errorf("%s is %.40q", keys.At(i), values.At(i))
			}
		}
		for i := range 100 {
			all = append(all, fmt.Appendf(nil, "k%03d", i))
		}
		absent := make([]bool, len(all))
		must(t, r.Absent(absent, k, all))
		for i, key := range all {
			if _, there := want[string(key)]; there == absent[i] {
				t.Errorf("%s: absent is %v", key, absent[i])
			}
		}
		wantErr(t, "a range", r.Iter(k, []byte("k"), nil).Err(), ErrNoOrder)
		n := 0
		for it := r.Iter(k, nil, nil); it.Next(); {
			n++
		}
		if n != len(want) {
			t.Errorf("walks over %d pairs of %d", n, len(want))
		}
	})
}

// TestHashTransactions has a transaction's own writes in front of what is there.
func TestHashTransactions(t *testing.T) {
	hashStates(t, func(t *testing.T, db *DB, k *Keyspace, want map[string]string) {
		before := maps.Clone(want)
		change := func(tx *Tx) {
			tx = tx.In(k)
			for i := range 40 {
				key := fmt.Sprintf("k%03d", i*3%100)
				if want[key] = "of the transaction"; i%4 == 0 {
					delete(want, key)
					must(t, tx.Delete([]byte(key)))
				} else {
					must(t, tx.Put([]byte(key), []byte(want[key])))
				}
				if i%20 == 0 {
					showsAll(t, "own writes", tx, want)
				}
			}
			refusesOrder(t, "transaction", tx)
			wantErr(t, "delete a range", tx.DeleteRange([]byte("k"), nil), ErrNoOrder)
			showsAll(t, "own writes", tx, want)
			showsAll(t, "outside", k, before)
		}
		tx, err := db.Begin(true)
		must(t, err)
		change(tx)
		must(t, tx.Commit())
		showsAll(t, "committed", k, want)
		before = maps.Clone(want)
		must(t, db.Update(func(tx *Tx) error {
			must(t, tx.In(k).DeleteRange(nil, nil))
			clear(want)
			showsAll(t, "emptied", tx.In(k), want)
			change(tx)
			return nil
		}))
		showsAll(t, "updated", k, want)
	})
}

// TestHashConflicts: who has read all of a keyspace depends on all that is written to it, and who has read a key on that.
func TestHashConflicts(t *testing.T) {
	hashStates(t, func(t *testing.T, db *DB, k *Keyspace, want map[string]string) {
		reads := map[string]func(tx *Tx) error{
			"iter": func(tx *Tx) error { return tx.Iter(nil).Close() },
			"count": func(tx *Tx) error {
				_, err := tx.Count(nil, nil)
				return err
			},
			"delete everything": func(tx *Tx) error { return tx.DeleteRange(nil, nil) },
			"get": func(tx *Tx) error {
				_, err := tx.Has([]byte("new"))
				return err
			},
		}
		writes := map[string]func() error{
			"put":    func() error { return k.Put([]byte("new"), nil) },
			"delete": func() error { return k.Delete([]byte("new")) },
			"range":  func() error { return k.DeleteRange(nil, nil) },
			"other":  func() error { return db.Put([]byte("new"), nil) },
		}
		for what, read := range reads {
			for how, write := range writes {
				tx, err := db.Begin(true)
				must(t, err)
				must(t, read(tx.In(k)))
				must(t, tx.In(k).Put([]byte("mine"), nil))
				must(t, write())
				if err := tx.Commit(); (how == "other") != (err == nil) || err != nil && !errors.Is(err, ErrConflict) {
					t.Errorf("%s beside %s: %v", what, how, err)
				}
			}
		}
	})
}

// TestHashRangeDeletes: a range is refused before anything of it gets to the log.
func TestHashRangeDeletes(t *testing.T) {
	hashStates(t, func(t *testing.T, db *DB, k *Keyspace, want map[string]string) {
		last := db.LastSeq()
		for _, b := range [][2][]byte{{[]byte("a"), nil}, {nil, []byte("b")}, {[]byte("a"), []byte("b")}, {nil, {}}} {
			wantErr(t, "keyspace", k.DeleteRange(b[0], b[1]), ErrNoOrder)
			batch := db.NewBatch()
			must(t, batch.In(k).Put([]byte("k001"), nil))
			must(t, batch.Put([]byte("k001"), nil))
			wantErr(t, "batch", batch.In(k).DeleteRange(b[0], b[1]), ErrNoOrder)
			wantErr(t, "write", db.Write(batch), ErrNoOrder)
			wantErr(t, "update", db.Update(func(tx *Tx) error { return tx.In(k).DeleteRange(b[0], b[1]) }), ErrNoOrder)
			must(t, db.Update(func(tx *Tx) error {
				wantErr(t, "update that goes on", tx.In(k).DeleteRange(b[0], b[1]), ErrNoOrder)
				return nil
			}))
		}
		if db.LastSeq() != last {
			t.Error("something of what was refused got to the log")
		}
		showsAll(t, "refused", k, want)
		batch := db.NewBatch()
		must(t, batch.In(k).Put([]byte("k001"), []byte("before")))
		must(t, batch.In(k).DeleteRange([]byte{}, nil))
		must(t, batch.In(k).Put([]byte("k002"), []byte("after")))
		must(t, db.Write(batch))
		showsAll(t, "emptied", k, map[string]string{"k002": "after"})
	})
}

// TestHashUpkeep settles, compacts, checks, backs up, opens and salvages.
func TestHashUpkeep(t *testing.T) {
	ctx, fs, want := context.Background(), memfs.New(), map[string]string{}
	db := openMem(t, fs, Options{})
	must(t, fillHash(db, want, 0, 50))
	must(t, db.Checkpoint(ctx))
	must(t, fillHash(db, want, 50, 100))
	k := hashKeyspace(t, db)
	_, err := db.Keyspace("hash", &KeyspaceOptions{})
	wantErr(t, "as a tree", err, ErrLayout)
	_, err = db.Keyspace("default", &KeyspaceOptions{Layout: Hash})
	wantErr(t, "a tree as a hash table", err, ErrLayout)
	if list, err := db.Keyspaces(); err != nil || len(list) != 2 || list[1].Layout != Hash {
		t.Errorf("keyspaces: %v, %v", list, err)
	}
	for name, do := range map[string]func() error{
		"checkpoint": func() error { return db.Checkpoint(ctx) },
		"compact":    func() error { return db.Compact(ctx, CompactOptions{}) },
		"zstd":       func() error { return db.Compact(ctx, CompactOptions{Compression: Zstd}) },
	} {
		must(t, k.Put([]byte("k005"), []byte(name)))
		want["k005"] = name
		must(t, do())
		showsAll(t, name, k, want)
		r, err := db.Check(ctx)
		must(t, err)
		must(t, r.Err())
	}
	must(t, k.Put([]byte("k005"), []byte("in the log")))
	want["k005"] = "in the log"
	must(t, db.Backup(ctx, "backup"))
	must(t, db.Close())
	for _, dir := range []string{"db", "backup"} {
		report, err := Salvage(ctx, dir, dir+" salvaged", &Options{FS: fs})
		must(t, err)
		must(t, report.Err())
		for _, dir := range []string{dir, dir + " salvaged"} {
			again, err := Open(dir, &Options{FS: fs, ReadOnly: true})
			must(t, err)
			k, err := again.Keyspace("hash", nil)
			must(t, err)
			showsAll(t, dir, k, want)
			refusesOrder(t, dir, k)
			must(t, again.Close())
		}
	}
}

// TestHashHeld: a snapshot whose memtables have settled gets roots of its own, of a keyspace that is dropped meanwhile too.
func TestHashHeld(t *testing.T) {
	hashStates(t, func(t *testing.T, db *DB, k *Keyspace, want map[string]string) {
		want = maps.Clone(want)
		want["k007"] = "of the snapshot"
		must(t, k.Put([]byte("k007"), []byte(want["k007"])))
		snap := db.Snapshot()
		defer snap.Close()
		it := snap.In(k).Iter(nil)
		it.Next()
		for i := range 3 {
			must(t, k.DeleteRange(nil, nil))
			must(t, k.Put(fmt.Appendf(nil, "later %d", i), nil))
			must(t, db.Checkpoint(context.Background()))
		}
		showsAll(t, "snapshot", snap.In(k), want)
		must(t, db.DropKeyspace("hash"))
		for i := range 3 {
			must(t, db.Put(fmt.Append(nil, i), nil))
			must(t, db.Checkpoint(context.Background()))
		}
		showsAll(t, "snapshot of what was dropped", snap.In(k), want)
		n := 1
		for it.Next() {
			n++
		}
		must(t, it.Close())
		if n != len(want) {
			t.Errorf("an iterator shows %d pairs of %d", n, len(want))
		}
	})
}

// TestHashSpilled commits batches and a transaction that do not fit into memory.
func TestHashSpilled(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	k := hashKeyspace(t, db)
	must(t, k.Put([]byte("before"), nil))
	const n = 6000
	value := bytes.Repeat([]byte("v"), 100)
	batch := db.NewBatch()
	must(t, batch.In(k).DeleteRange(nil, nil))
	for i := range n {
		must(t, batch.In(k).Put(fmt.Appendf(nil, "%d", i), value))
	}
	must(t, db.Write(batch))
	count := func(what string, r orderless, want int64) {
		t.Helper()
		if got, err := r.Count(nil, nil); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", what, got, err, want)
		}
		it := r.Iter(nil)
		defer it.Close()
		got := int64(0)
		for it.Next() {
			got++
		}
		if it.Err() != nil || got != want {
			t.Errorf("%s: walks over %d, %v, want %d", what, got, it.Err(), want)
		}
	}
	count("batch", k, n)
	must(t, db.Update(func(tx *Tx) error {
		for i := range n {
			must(t, tx.In(k).Delete(fmt.Appendf(nil, "%d", i)))
			must(t, tx.In(k).Put(fmt.Appendf(nil, "other %d", i), value))
			if i == n/2 {
				count("transaction", tx.In(k), n)
			}
		}
		must(t, tx.In(k).Put([]byte("one more"), value))
		count("transaction", tx.In(k), n+1)
		return nil
	}))
	count("committed", k, n+1)
	must(t, db.Put(nil, nil))
	count("beside another", k, n+1)
	must(t, k.Put([]byte("one more"), nil))
	must(t, k.Put([]byte("two more"), nil))
	count("beside unsettled ones", k, n+2)
}

// TestHashChanges: the change feed tells of a keyspace without order what it tells of others.
func TestHashChanges(t *testing.T) {
	db := openMem(t, memfs.New(), Options{KeepChanges: 1 << 20})
	k := hashKeyspace(t, db)
	must(t, k.Put([]byte("a"), []byte("1")))
	must(t, k.DeleteRange(nil, nil))
	must(t, db.DropKeyspace("hash"))
	var got []ChangeKind
	for c, err := range db.Changes(context.Background(), ChangesOptions{}) {
		must(t, err)
		if c.Keyspace != "hash" || c.Kind == ChangeDeleteRange && (len(c.Key) != 0 || c.End != nil) {
			t.Errorf("%+v", c)
		}
		got = append(got, c.Kind)
	}
	if want := []ChangeKind{ChangeCreate, ChangePut, ChangeDeleteRange, ChangeDrop}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
