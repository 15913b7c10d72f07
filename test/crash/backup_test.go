package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// unlinked is a file system without links.
type unlinked struct{ vfs.FS }

func (unlinked) Link(string, string) error { return errors.ErrUnsupported }

// A backup that is interrupted is the earlier one, or the new one, or says that it is neither, and the next backup mends it. It once
// passed for a database that had lost its root.
func TestCrashDuringBackup(t *testing.T) {
	for _, links := range []bool{true, false} {
		for _, earlier := range []bool{false, true} {
			t.Run(fmt.Sprintf("links=%v/earlier=%v", links, earlier), func(t *testing.T) { crashDuringBackup(t, links, earlier) })
		}
	}
}

func crashDuringBackup(t *testing.T, links, earlier bool) {
	base := memfs.New()
	rng := rand.New(rand.NewPCG(*seedFlag, 14))
	old, fresh := state{}, state{}
	open := func(fsys vfs.FS) *pando.DB {
		t.Helper()
		o := options(nil, pando.Durable)
		if o.FS = fsys; !links {
			o.FS = unlinked{fsys}
		}
		db, err := pando.Open("db", o)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open(base)
	fill := func(n int) {
		for range n {
			k, v := key(rng), value(rng, length(rng))
			fresh[k] = v
			if err := db.Put([]byte(k), []byte(v)); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(100)
	if earlier {
		old = maps.Clone(fresh)
		if err := db.Backup(context.Background(), "backup"); err != nil {
			t.Fatal(err)
		}
		fill(100)
		if err := db.Compact(context.Background(), pando.CompactOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(fsys *faultfs.FS) error {
		db := open(fsys)
		return errors.Join(db.Backup(context.Background(), "backup"), db.Close())
	}
	seen := map[string]int{}
	cuts(t, base, run, func(image *memfs.FS) error {
		what, err := lookAtBackup(image, old, fresh, earlier)
		if err != nil {
			return err
		}
		seen[what]++
		db := open(image)
		if err := errors.Join(db.Backup(context.Background(), "backup"), db.Close()); err != nil {
			return fmt.Errorf("the next backup, behind one that was %s: %w", what, err)
		}
		if what, err = lookAtBackup(image, nil, fresh, true); what != "new" {
			return fmt.Errorf("the next backup is %s: %w", what, err)
		}
		return nil
	})
	if seen["new"] == 0 || seen["unfinished"] == 0 || earlier && seen["old"] == 0 {
		t.Errorf("backups were %v", seen)
	}
}

// lookAtBackup says what a backup is: the old one, the new one, unfinished or absent.
func lookAtBackup(image *memfs.FS, old, fresh state, earlier bool) (string, error) {
	o := options(image, pando.Durable)
	o.ReadOnly = true
	db, err := pando.Open("backup", o)
	switch {
	case errors.Is(err, pando.ErrUnfinished):
		return "unfinished", nil
	case !earlier && (errors.Is(err, pando.ErrNotFound) || errors.Is(err, pando.ErrNotDatabase)):
		return "absent", nil
	case err != nil:
		return "damaged", err
	}
	got, err := read(db)
	if report, failed := db.Check(context.Background()); failed == nil {
		err = errors.Join(err, report.Err())
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return "damaged", err
	}
	switch {
	case maps.Equal(got, fresh):
		return "new", nil
	case earlier && maps.Equal(got, old):
		return "old", nil
	}
	return "wrong", fmt.Errorf("it has %d pairs of %d", len(got), len(fresh))
}
