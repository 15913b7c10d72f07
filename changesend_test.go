package pando

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// The changes end at what was the newest one when they were asked for, also where the loop itself writes.
func TestChangesEndWhereTheyWereAskedFor(t *testing.T) {
	db := openMem(t, memfs.New(), Options{KeepChanges: 1 << 20})
	for i := range 10 {
		must(t, db.Put(fmt.Append(nil, i), nil))
	}
	n := 0
	for c, err := range db.Changes(context.Background(), ChangesOptions{}) {
		must(t, err)
		must(t, db.Put(append([]byte("seen "), c.Key...), nil))
		if n++; n > 10 {
			t.Fatal("the loop sees what it writes")
		}
	}
	if n != 10 {
		t.Errorf("%d changes", n)
	}
}

// The changes of a keyspace tell its name, also when it was dropped and the database opened again since, wherever the loop begins.
func TestChangesOfAKeyspaceThatWasDroppedEarlier(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{KeepChanges: 1 << 20})
	for _, name := range []string{"gone", "stays"} {
		ks, err := db.Keyspace(name, nil)
		must(t, err)
		must(t, ks.Put([]byte("key"), nil))
	}
	must(t, db.DropKeyspace("gone"))
	must(t, db.Close())
	want := []string{"create gone", "put gone", "create stays", "put stays", "drop gone"}
	for from := range len(want) {
		db := openMem(t, fsys, Options{KeepChanges: 1 << 20})
		var got []string
		for c, err := range db.Changes(context.Background(), ChangesOptions{From: uint64(from + 1)}) {
			must(t, err)
			got = append(got, fmt.Sprint(c.Kind, " ", c.Keyspace))
		}
		if !slices.Equal(got, want[from:]) {
			t.Errorf("from %d: %q", from+1, got)
		}
		must(t, db.Close())
	}
}
