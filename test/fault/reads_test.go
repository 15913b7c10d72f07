package fault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// readings are the calls that tell something about what is stored, and the opening of what would be told.
var readings = faultfs.Ops(faultfs.OpOpen, faultfs.OpOpenReadWrite, faultfs.OpList, faultfs.OpStat, faultfs.OpReadAt, faultfs.OpSize)

// stored is a database that a crash has left: most of it has settled, in two keyspaces and with long values, the rest is in the log.
type stored struct {
	image *memfs.FS
	pairs map[string][]byte // of both keyspaces
	keys  []string          // sorted
}

func content(i int) []byte {
	n := 90
	if i%10 == 0 {
		n = 5000
	}
	return bytes.Repeat(fmt.Appendf(nil, "%06d,", i), n/7+1)
}

func makeStored() (stored, error) {
	s := stored{image: memfs.New(), pairs: map[string][]byte{}}
	db, err := pando.Open("db", &pando.Options{FS: s.image, MemoryBytes: 1 << 20, ValueThreshold: 500, KeepChanges: 1 << 20})
	if err != nil {
		return s, err
	}
	ks, err := db.Keyspace("other", nil)
	if err != nil {
		return s, errors.Join(err, db.Close())
	}
	for i := range 1200 {
		k, v := fmt.Sprintf("key%06d", i), content(i)
		s.pairs[k], s.keys = v, append(s.keys, k)
		err = errors.Join(err, db.Put([]byte(k), v), ks.Put([]byte(k), v))
		if i == 900 {
			err = errors.Join(err, db.Checkpoint(ctx))
		}
	}
	left := s.image.KillImage()
	err = errors.Join(err, db.Close())
	s.image = left
	return s, err
}

// readers are what is asked of an open database; each answers right, or with an error.
var readers = map[string]func(s stored, db *pando.DB) error{
	"get": func(s stored, db *pando.DB) error { return s.get(db, maps.Keys(s.pairs)) },
	"walk": func(s stored, db *pando.DB) error {
		ks, err := db.Keyspace("other", nil)
		if err != nil {
			return err
		}
		for _, back := range []bool{false, true} {
			it, n := ks.Iter(nil), 0
			step := it.Next
			if back {
				step = it.Prev
			}
			for step() {
				want := s.pairs[string(it.Key())]
				got := it.Value()
				if it.Err() != nil {
					break
				}
				if !bytes.Equal(got, want) {
					return errors.Join(fmt.Errorf("%w: %s has %d bytes, want %d", errWrong, it.Key(), len(got), len(want)), it.Close())
				}
				n++
			}
			err := it.Err()
			if err == nil && n != len(s.pairs) {
				err = fmt.Errorf("%w: a walk ends after %d of %d pairs and says nothing", errWrong, n, len(s.pairs))
			}
			if err = errors.Join(err, it.Close()); err != nil {
				return err
			}
		}
		return nil
	},
	"count": func(s stored, db *pando.DB) error {
		n, err := db.Count([]byte("key0001"), []byte("key0011"))
		if err == nil && n != 1000 {
			err = fmt.Errorf("%w: count says %d", errWrong, n)
		}
		if err != nil {
			return err
		}
		k, _, err := db.Nth(nil, nil, 1001)
		if err == nil && string(k) != "key001001" {
			err = fmt.Errorf("%w: the pair number 1001 is %s", errWrong, k)
		}
		return err
	},
	"streams": func(s stored, db *pando.DB) error {
		r, err := db.OpenValue([]byte("key001000"))
		if err != nil {
			return err
		}
		got, err := io.ReadAll(r)
		if err == nil && !bytes.Equal(got, content(1000)) {
			err = fmt.Errorf("%w: a stream of %d bytes", errWrong, len(got))
		}
		return errors.Join(err, r.Close())
	},
	"changes": func(s stored, db *pando.DB) error {
		for _, err := range db.Changes(ctx, pando.ChangesOptions{From: db.OldestChange()}) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"check": func(s stored, db *pando.DB) error {
		rep, err := db.Check(ctx)
		if err == nil {
			err = rep.Err()
		}
		return err
	},
	"backup":  func(s stored, db *pando.DB) error { return db.Backup(ctx, "backup") },
	"compact": func(s stored, db *pando.DB) error { return db.Compact(ctx, pando.CompactOptions{}) },
	"salvage": func(s stored, db *pando.DB) error { return nil }, // of the closed database: see readOnce
}

var errWrong = errors.New("a wrong answer")

// firstOf keeps the first error, so that a thousand reads do not join a thousand.
func firstOf(first, next error) error {
	if first != nil {
		return first
	}
	return next
}

// TestEveryReadFails fails each call that reads once, and each from one on, under everything that reads. The answer is right, or an
// error which says what happened, and afterwards nothing is open, and everything is still there.
func TestEveryReadFails(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	s, err := makeStored()
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]faultfs.Rule{
		"once":      {Ops: readings},
		"from then": {Ops: readings, Times: -1},
		"short":     {Ops: faultfs.Ops(faultfs.OpReadAt), Fault: faultfs.ShortRead},
		"denied":    {Ops: faultfs.Ops(faultfs.OpOpen, faultfs.OpOpenReadWrite, faultfs.OpList, faultfs.OpStat), Err: fs.ErrPermission},
	}
	for name, ask := range readers {
		for kind, rule := range faults {
			for _, readOnly := range []bool{false, true} {
				if readOnly && (name == "backup" || name == "changes" || name == "compact" || name == "salvage") {
					continue // those write, or tell of writes
				}
				t.Run(fmt.Sprintf("%s/%s/readOnly=%v", name, kind, readOnly), func(t *testing.T) {
					step, stride := usualReadStep, 1000
					if *deep {
						step, stride = 1, 40
					}
					for k := len(name) % step; ; k += step {
						rule.Skip = k
						hit, err := readOnce(s, name, ask, rule, readOnly)
						if err != nil {
							t.Fatalf("call %d: %v", k, err)
						}
						if !hit {
							return
						}
						if k > 100 { // of the thousands of reads of leaves a sample
							k += stride
						}
					}
				})
			}
		}
	}
}

// says accepts an error of a read that failed: it names the cause, and is no damage.
func says(err error, rule faultfs.Rule) error {
	cause := rule.Err
	if cause == nil {
		cause = faultfs.ErrInjected
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errWrong):
		return err
	case errors.Is(err, pando.ErrCorrupt):
		return fmt.Errorf("a failed read is called damage: %w", err)
	case errors.Is(err, pando.ErrNotFound), errors.Is(err, pando.ErrNotDatabase):
		return fmt.Errorf("a failed read is called absence: %w", err)
	case errors.Is(err, cause), errors.Is(err, pando.ErrFailed):
		return nil
	}
	return fmt.Errorf("an error that says nothing of its cause: %w", err)
}

func readOnce(s stored, name string, ask func(stored, *pando.DB) error, rule faultfs.Rule, readOnly bool) (hit bool, err error) {
	base := s.image.CrashImage(memfs.Policy{Unsynced: memfs.All})
	ffs := faultfs.New(base)
	o := &pando.Options{FS: ffs, MemoryBytes: 1 << 20, ValueThreshold: 500, KeepChanges: 1 << 20, ReadOnly: readOnly}
	ffs.Set(rule)
	if name == "salvage" {
		_, err := pando.Salvage(ctx, "db", "salvaged", &pando.Options{FS: ffs, MemoryBytes: 1 << 20})
		hit = ffs.Triggered() > 0
		ffs.Set()
		if leaks := ffs.Leaks(); len(leaks) > 0 {
			return hit, fmt.Errorf("left open (after %w): %v", err, leaks)
		}
		return hit, nil // a file that cannot be read is lost to a salvage: the report says so
	}
	db, err := pando.Open("db", o)
	if err == nil {
		err = ask(s, db)
		hit = ffs.Triggered() > 0
		if err != nil && !hit {
			return hit, errors.Join(fmt.Errorf("without a fault: %w", err), db.Close())
		}
		if e := says(err, rule); e != nil {
			return hit, errors.Join(e, db.Close())
		}
		ffs.Set()
		if e := stillThere(s, db); e != nil {
			return hit, errors.Join(fmt.Errorf("afterwards (behind %v): %w", err, e), db.Close())
		}
		if e := db.Close(); e != nil && !errors.Is(e, pando.ErrFailed) {
			return hit, fmt.Errorf("close (behind %v): %w", err, e)
		}
	} else {
		hit = ffs.Triggered() > 0
		ffs.Set()
		if !hit {
			return hit, fmt.Errorf("open without a fault: %w", err)
		}
		if e := says(err, rule); e != nil {
			return hit, fmt.Errorf("open: %w", e)
		}
	}
	if leaks := ffs.Leaks(); len(leaks) > 0 {
		return hit, fmt.Errorf("left open (behind %v): %v", err, leaks)
	}
	if !hit && name != "compact" { // what lies there was read: it is the same for all kinds of faults
		return hit, nil
	}
	o.ReadOnly = false
	if db, err = pando.Open("db", o); err != nil {
		return hit, fmt.Errorf("reopen: %w", err)
	}
	return hit, errors.Join(stillThere(s, db), db.Close())
}

// get reads all pairs, in the order of some keys, and goes on behind what cannot be read.
func (s stored) get(db *pando.DB, keys iter.Seq[string]) (all error) {
	for k := range keys {
		got, err := db.Get([]byte(k))
		if want := s.pairs[k]; err == nil && !bytes.Equal(got, want) {
			return fmt.Errorf("%w: %s has %d bytes, want %d", errWrong, k, len(got), len(want))
		}
		all = firstOf(all, err)
	}
	ok, err := db.Has([]byte("key000000x"))
	if ok {
		return fmt.Errorf("%w: what was never put is there", errWrong)
	}
	return firstOf(all, err)
}

// stillThere reads all pairs of both keyspaces.
func stillThere(s stored, db *pando.DB) error {
	if err := s.get(db, slices.Values(s.keys)); err != nil { // in their order a page is read once
		return err
	}
	return readers["walk"](s, db)
}
