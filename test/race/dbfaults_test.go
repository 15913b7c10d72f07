package race

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pandodb/pando"
)

// TestEverythingWhereTheDeviceFails is TestEverythingAtOnce on a device that fails now and then: see TestStoreDoesEverythingWhereTheDeviceFails.
func TestEverythingWhereTheDeviceFails(t *testing.T) {
	for i := range uint64(*faultSeeds) {
		seed := *faultSeed + i
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := &faultyDB{faultyRun: faultyRun{t: t, seed: seed, device: newDevice(seed), profile: []pando.Profile{pando.Durable, pando.Durable, pando.Relaxed}[seed%3]}}
			for range 2 {
				r.call(r.comeUp())
				r.noLeaks()
				r.calm()
				r.interrupt()
				if r.lookAtAll(r.comeUp()); t.Failed() {
					return
				}
			}
		})
	}
}

// faultyDB is a database on a device that fails, and what witnesses know of it.
type faultyDB struct {
	faultyRun
	written [3][10]struct{ sure, tried uint64 }
}

func (r *faultyDB) open() (*pando.DB, error) {
	return pando.Open("db", &pando.Options{FS: r.fs, Profile: r.profile, MemoryBytes: 1 << 20, ValueThreshold: 100, SyncInterval: time.Millisecond, KeepChanges: 256 << 10})
}

// comeUp opens the database.
func (r *faultyDB) comeUp() *pando.DB { return comeUp(&r.faultyRun, r.open) }

// call calls the database from many goroutines while faults come and go, and closes it in the midst of that.
func (r *faultyDB) call(db *pando.DB) {
	var callers sync.WaitGroup
	for g := range uint64(8) {
		callers.Go(func() {
			rng := r.fork(g)
			for {
				err := anything(context.Background(), db, rng)
				switch {
				case errors.Is(err, pando.ErrClosed):
					return
				case err == nil, errors.Is(err, pando.ErrNotFound), errors.Is(err, pando.ErrConflict), errors.Is(err, pando.ErrDropped), errors.Is(err, pando.ErrTxDone):
				case !r.excuses("", err):
					return
				}
			}
		})
	}
	for n := range r.written {
		callers.Go(func() { r.witness(db, n, r.fork(uint64(100+n))) })
	}
	r.strikeAndClose(db.Close, &callers)
}

func witnessKey(side string, n, i int) []byte { return fmt.Appendf(nil, "%s%d/%d", side, n, i) }

// witness writes two keys together, higher numbers each time, until the database is closed.
func (r *faultyDB) witness(db *pando.DB, n int, rng *rand.Rand) {
	for {
		i := rng.IntN(len(r.written[n]))
		w := &r.written[n][i]
		w.tried++
		value := binary.BigEndian.AppendUint64(nil, w.tried)
		if rng.IntN(4) == 0 {
			value = append(value, make([]byte, rng.IntN(3000))...)
		}
		err := r.writeBoth(db, witnessKey("left", n, i), witnessKey("right", n, i), value, rng.IntN(3))
		if err == nil {
			w.sure = w.tried
		}
		if errors.Is(err, pando.ErrClosed) || err != nil && !errors.Is(err, pando.ErrConflict) && !r.excuses("", err) {
			return
		}
	}
}

func (r *faultyDB) writeBoth(db *pando.DB, left, right, value []byte, way int) error {
	put := func(w interface{ Put(key, value []byte) error }) error {
		return errors.Join(w.Put(left, value), w.Put(right, value))
	}
	switch way {
	case 0:
		return db.Update(func(tx *pando.Tx) error { return put(tx) })
	case 1:
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := put(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	b := db.NewBatch()
	defer b.Reset()
	if err := put(b); err != nil {
		return err
	}
	return db.Write(b)
}

// lookAtAll looks at what the witnesses have written, and closes the database.
func (r *faultyDB) lookAtAll(db *pando.DB) {
	r.t.Helper()
	for n := range r.written {
		for i := range r.written[n] {
			left, err := db.Get(witnessKey("left", n, i))
			right, err2 := db.Get(witnessKey("right", n, i))
			if err := errors.Join(err, err2); err != nil && !errors.Is(err, pando.ErrNotFound) {
				r.fail("get: %v", err)
			}
			is := uint64(0)
			if len(left) >= 8 {
				is = binary.BigEndian.Uint64(left)
			}
			w := &r.written[n][i]
			if !bytes.Equal(left, right) || is < w.sure || is > w.tried {
				r.fail("%d of witness %d is %d, and should be from %d to %d; the same twice: %v", i, n, is, w.sure, w.tried, bytes.Equal(left, right))
			}
			w.sure = is
		}
	}
	ctx := context.Background()
	if err := db.Checkpoint(ctx); err != nil { // a root slot that was torn is made anew
		r.fail("checkpoint: %v", err)
	}
	report, err := db.Check(ctx)
	if err := errors.Join(err, report.Err(), db.Close()); err != nil {
		r.fail("check and close: %v", err)
	}
	r.noLeaks()
}
