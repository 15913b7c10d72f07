package pando

import (
	"context"
	"fmt"
	"testing"
)

// fillJSON stores records that have much in common, as records of one collection do.
func fillJSON(t *testing.T, k *Keyspace, n, version int) {
	t.Helper()
	b := k.db.NewBatch().In(k)
	for i := range n {
		v := fmt.Sprintf(`{"_id": "user%07d", "version": %d, "email": "user%d@mail.example", "name": {"first": "F%x", "last": "L%x"}, "active": %t, "score": %d}`,
			i, version, i*7919, i*31, i*37, i%3 == 0, i*i%1000)
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
	ctx := context.Background()
	dir := t.TempDir()
	zstd := Zstd
	db := small(t, dir, Options{Profile: Relaxed})
	k, err := db.Keyspace("users", &KeyspaceOptions{Compression: &zstd})
	if err != nil {
		t.Fatal(err)
	}
	const n = 30_000
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
