package crash

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// agree compares what the changes lead to that are kept with what there is. They are all there from the oldest one on.
func agree(db *pando.DB, spaces map[string]*pando.Keyspace) error {
	type place struct{ space, key string }
	told := map[place]string{}
	oldest := db.OldestChange()
	for c, err := range db.Changes(context.Background(), pando.ChangesOptions{From: oldest}) {
		if err != nil {
			return fmt.Errorf("changes from %d: %w", oldest, err)
		}
		switch c.Kind {
		case pando.ChangePut:
			told[place{c.Keyspace, string(c.Key)}] = string(c.Value)
		case pando.ChangeCreate, pando.ChangeDrop:
			for at := range told {
				if at.space == c.Keyspace {
					delete(told, at)
				}
			}
		}
	}
	for at, want := range told {
		ks := spaces[at.space]
		if ks == nil {
			continue // it was dropped before the database was opened: its changes have no name
		}
		if got, err := ks.Get([]byte(at.key)); err != nil || string(got) != want {
			return errors.Join(err, fmt.Errorf("the changes from %d tell of %d bytes in %q/%s, and there are %d",
				oldest, len(want), at.space, at.key, len(got)))
		}
	}
	return nil
}

// A power cut once left the file of a batch larger than memory with nothing in it, which is how one is marked whose load has failed: those who
// read the changes passed over a batch that was committed. So it was where nobody keeps changes, as the file is not synced then.
func TestCrashBehindALargeBatch(t *testing.T) {
	const pairs = 900
	base := memfs.New()
	large := func(i int) []byte { return fmt.Appendf(nil, "large%04d", i) }
	run := func(fsys *faultfs.FS) error {
		o := options(nil, pando.Durable)
		o.FS = fsys
		db, err := pando.Open("db", o)
		if err != nil {
			return err
		}
		b := db.NewBatch()
		err = db.Put([]byte("before"), nil)
		for i := range pairs {
			err = errors.Join(err, b.Put(large(i), make([]byte, 90)))
			err = errors.Join(err, b.Put(fmt.Appendf(nil, "long%04d", i), make([]byte, 600)))
		}
		return errors.Join(err, db.Write(b), db.Put([]byte("behind"), nil), db.Put([]byte("last"), nil), db.Close())
	}
	told, gone := 0, 0
	cuts(t, base, run, func(image *memfs.FS) error {
		o := options(image, pando.Durable)
		o.KeepChanges = 1 << 20
		db, err := pando.Open("db", o)
		if err != nil {
			return err
		}
		_, missing := db.Get(large(0))
		found, passed := 0, false
		err = nil
		for c, e := range db.Changes(context.Background(), pando.ChangesOptions{}) {
			if err = e; err != nil {
				break
			}
			passed = passed || string(c.Key) == "before"
			if string(c.Key[:min(len(c.Key), 5)]) == "large" {
				found++
			}
		}
		switch {
		case errors.Is(err, pando.ErrChangesGone):
			err = nil
			gone++
		case err != nil:
		case missing == nil && passed && found != pairs:
			err = fmt.Errorf("the batch is there, and the changes tell of %d of its %d pairs", found, pairs)
		case missing != nil && found > 0:
			err = fmt.Errorf("the batch is not there, and the changes tell of %d of its pairs", found)
		case found > 0:
			told++
		}
		return errors.Join(err, db.Close())
	})
	if gone == 0 {
		t.Errorf("the batch was told of %d times, and never gone", told)
	}
}
