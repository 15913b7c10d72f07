package pando

import (
	"fmt"
	"testing"
	"context"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, &Options{Profile: Relaxed, MemoryBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n := 100000
	for i := range n {
		if err := db.Put(fmt.Appendf(nil, "key%08d", i*7919%n), fmt.Appendf(nil, "value%d", i)); err != nil {
			t.Fatal(i, err)
		}
	}
	check := func() {
		t.Helper()
		c, err := db.Count(nil, nil)
		if err != nil || c != int64(n) {
			t.Fatal(c, err)
		}
		i := 0
		for k := range db.Range(nil, nil) {
			if string(k) != fmt.Sprintf("key%08d", i) {
				t.Fatal(i, string(k))
			}
			i++
		}
		if db.Err() != nil || i != n {
			t.Fatal(i, db.Err())
		}
		for i := range n {
			if _, err := db.Get(fmt.Appendf(nil, "key%08d", i)); err != nil {
				t.Fatal(i, err)
			}
		}
	}
	check()
	if err := db.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	check()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db, err = Open(dir, &Options{Profile: Relaxed, MemoryBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	check()
	db.Close()
}
