package pando

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// fillJSON stores records that have much in common, as records of one collection do.
func fillJSON(t *testing.T, k *Keyspace, n, version int) {
	t.Helper()
	b := k.db.NewBatch().In(k)
	for i := range n {
		v := fmt.Sprintf(`{"_id": "user%07d", "version": %d, "email": "user%d@mail.example", "name": {"first": "F%x", "last": "L%x"}, "active": %t, "score": %d, "note": %q}`,
			i, version, i*7919, i*31, i*37, i%3 == 0, i*i%1000, strings.Repeat("well ", i*i%17))
		if err := b.Put(fmt.Appendf(nil, "user%07d", i), []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.db.Write(b); err != nil {
		t.Fatal(err)
	}
}

// Compact gives the smallest files with zstd and a dictionary, which later checkpoints and the next open go on using.
func TestCompactWithDictionary(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	ctx := context.Background()
	dir := t.TempDir()
	zstd := Zstd
	db := small(t, dir, Options{Profile: Relaxed})
	k, err := db.Keyspace("users", &KeyspaceOptions{Compression: &zstd})
	if err != nil {
		t.Fatal(err)
	}
	const n = dictionaryRecords
	for version := range 3 {
		fillJSON(t, k, n, version)
	}
	if err := db.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	before := db.Metrics()
	var done, total int64
	if err := db.Compact(ctx, CompactOptions{Progress: func(d, all int64) { done, total = d, all }}); err != nil {
		t.Fatal(err)
	}
	if done != total || total == 0 {
		t.Errorf("progress ended at %d of %d", done, total)
	}
	after := db.Metrics()
	if k.ks.DictionaryID() == 0 || after.LiveBytes >= before.LiveBytes || after.SegmentBytes > after.LiveBytes*11/10 {
		t.Errorf("dictionary %d; live %d -> %d bytes, files %d -> %d", k.ks.DictionaryID(), before.LiveBytes, after.LiveBytes, before.SegmentBytes, after.SegmentBytes)
	}
	t.Logf("live %d -> %d bytes, files %d -> %d", before.LiveBytes, after.LiveBytes, before.SegmentBytes, after.SegmentBytes)
	for round := range 3 {
		if err := k.Put(fmt.Appendf(nil, "user%07d", 5+round), []byte("changed")); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = small(t, dir, Options{Profile: Relaxed})
		if k, err = db.Keyspace("users", nil); err != nil {
			t.Fatal(err)
		}
		if k.ks.DictionaryID() == 0 {
			t.Error("the dictionary is forgotten")
		}
		if c, err := k.Count(nil, nil); c != n || err != nil {
			t.Fatalf("%d pairs, %v", c, err)
		}
		seen := 0
		for range k.Range(nil, nil) {
			seen++
		}
		if seen != n || k.Err() != nil {
			t.Fatalf("%d pairs seen, %v", seen, k.Err())
		}
		if r, err := db.Check(ctx); err != nil || r.Err() != nil {
			t.Fatalf("%v, %v", err, r.Err())
		}
		if err := db.Compact(ctx, CompactOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Records that are alike at the same places are compacted by columns, which need no dictionary. What changes later is stored as the
// keyspace says.
func TestCompactByColumns(t *testing.T) {
	ctx := context.Background()
	fsys := memfs.New()
	zstd := Zstd
	open := func() (*DB, *Keyspace) {
		db, err := Open("db", &Options{FS: fsys, Profile: Relaxed, MemoryBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		k, err := db.Keyspace("flights", &KeyspaceOptions{Compression: &zstd})
		if err != nil {
			t.Fatal(err)
		}
		return db, k
	}
	db, k := open()
	const n = 50_000
	value := func(i int) []byte {
		return fmt.Appendf(nil, "%04x%02d%c%08d", i*7919%4096, i%60, 'a'+i*i%7, 1_000_000+i*60)
	}
	put := func(from, to, step int) {
		for i := from; i < to; i += step {
			if err := k.Put(fmt.Appendf(nil, "%08d", i), value(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(what string) {
		i := 0
		for key, v := range k.Range(nil, nil) {
			if string(key) != fmt.Sprintf("%08d", i) || string(v) != string(value(i)) {
				t.Fatalf("%s: record %d is %q: %q", what, i, key, v)
			}
			i++
		}
		if i != n || k.Err() != nil {
			t.Fatalf("%s: %d records, %v", what, i, k.Err())
		}
		if r, err := db.Check(ctx); err != nil || r.Err() != nil {
			t.Fatalf("%s: %v, %v", what, err, r.Err())
		}
	}
	put(0, n, 1)
	if err := db.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	before := db.Metrics().LiveBytes
	if err := db.Compact(ctx, CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := db.Metrics().LiveBytes; after > before*2/3 || k.ks.DictionaryID() != 0 {
		t.Errorf("live %d -> %d bytes, dictionary %d", before, after, k.ks.DictionaryID())
	}
	check("compacted")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db, k = open()
	check("opened again")
	put(0, n, 1000)
	if err := db.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	check("changed")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
