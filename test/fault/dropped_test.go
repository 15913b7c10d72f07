package fault

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The leaves of a dropped keyspace are read for the values apart that have to be freed. Many of them that the device fails to read keep
// everything from settling for no longer than one would.
func TestDroppedKeyspaceThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSectorRun(t)
		defer func() {
			if err := r.db.Close(); err != nil {
				t.Error(err)
			}
		}()
		segments := func() []string {
			names, err := r.fs.List(filepath.Join("db", "segments"))
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		before := segments()
		gone, err := r.db.Keyspace("gone", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5000 {
			if err := gone.Put(fmt.Appendf(nil, "key%05d", i), bytes.Repeat(noise(fmt.Sprint(i)), 2)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.db.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		r.reopen() // nothing is in memory
		its := slices.DeleteFunc(segments(), func(name string) bool { return slices.Contains(before, name) })
		leaf := func(from, to int64) bool { return to-from > 2000 } // the node above them is shorter
		r.fs.fails(func(name string, from, to int64) bool {
			return slices.Contains(its, filepath.Base(name)) && leaf(from, to)
		})
		if err := r.db.DropKeyspace("gone"); err != nil {
			t.Fatal(err)
		}
		if err := r.db.Checkpoint(ctx); !errors.Is(err, errDevice) {
			t.Fatalf("a moment later: %v", err)
		}
		time.Sleep(time.Minute) // the worker tries again and again
		r.write("new", 0, 100)
		if err := r.db.Checkpoint(ctx); err != nil {
			t.Fatalf("a minute later: %v", err)
		}
		if n := r.readable(); n != len(r.want) {
			t.Errorf("%d of %d keys can be read", n, len(r.want))
		}
	})
}
