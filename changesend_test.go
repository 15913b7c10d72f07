package pando

import (
	"context"
	"fmt"
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
