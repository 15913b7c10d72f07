// Package race lets many goroutines do everything at once: to be run with -race, and with histories that have to be
// linearizable.
package race

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, fs *memfs.FS, profile pando.Profile) *pando.DB {
	db, err := pando.Open("db", &pando.Options{FS: fs, Profile: profile, MemoryBytes: 1 << 20, ValueThreshold: 100, SyncInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// TestEverythingAtOnce runs all kinds of calls from many goroutines, and closes the database in the middle of them.
func TestEverythingAtOnce(t *testing.T) {
	for profile := pando.Durable; profile <= pando.Bench; profile++ {
		t.Run(profile.String(), func(t *testing.T) {
			fs := memfs.New()
			for range 3 {
				chaos(t, fs, profile)
			}
			db := open(t, fs, profile)
			r, err := db.Check(context.Background())
			if err == nil {
				err = r.Err()
			}
			if err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func chaos(t *testing.T, fs *memfs.FS, profile pando.Profile) {
	db := open(t, fs, profile)
	ctx := context.Background()
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 7))
			for {
				err := anything(ctx, db, rng)
				if errors.Is(err, pando.ErrClosed) {
					return
				}
				switch {
				case err == nil, errors.Is(err, pando.ErrNotFound), errors.Is(err, pando.ErrConflict), errors.Is(err, pando.ErrDropped), errors.Is(err, pando.ErrTxDone):
				default:
					t.Errorf("%v", err)
					return
				}
			}
		})
	}
	time.Sleep(400 * time.Millisecond)
	done := make(chan error, 2)
	go func() { done <- db.Close() }()
	go func() { done <- db.Close() }()
	for range 2 {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("Close hangs")
		}
	}
	wg.Wait()
}

func anything(ctx context.Context, db *pando.DB, rng *rand.Rand) error {
	k := fmt.Appendf(nil, "key%03d", rng.IntN(200))
	v := make([]byte, rng.IntN(300))
	second := func(_ any, err error) error { return err }
	switch rng.IntN(24) {
	case 0, 1, 2, 3, 4:
		return db.Put(k, v)
	case 5:
		return db.Delete(k)
	case 6:
		return db.DeleteRange(k, append(k, '5'))
	case 7, 8, 9:
		return second(db.Get(k))
	case 10:
		return second(db.Count(k, nil))
	case 11:
		for range db.Range(k, nil) {
		}
		return second(db.Has(k))
	case 12:
		s := db.Snapshot()
		defer s.Close()
		it := s.Iter(nil)
		defer it.Close()
		for range 50 {
			if !it.Next() {
				break
			}
			_ = it.Value()
			if !it.Prev() {
				it.SeekGE(k)
			}
			it.Next()
		}
		return it.Err()
	case 13:
		b := db.NewBatch()
		defer b.Reset()
		for range 20 {
			if err := b.Put(k, v); err != nil {
				return err
			}
		}
		return db.Write(b)
	case 14:
		return db.Update(func(tx *pando.Tx) error {
			if err := tx.Put(k, v); err != nil {
				return err
			}
			return second(tx.Get(k))
		})
	case 15:
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := errors.Join(tx.Put(k, v), second(tx.Count(nil, k))); err != nil {
			return err
		}
		return tx.Commit()
	case 16:
		if rng.IntN(4) == 0 {
			return db.Checkpoint(ctx)
		}
		return db.Sync()
	case 17:
		if rng.IntN(10) == 0 {
			return db.Compact(ctx, pando.CompactOptions{})
		}
		return second(db.Check(ctx))
	case 18:
		ks, err := db.Keyspace(fmt.Sprint("space", rng.IntN(3)), nil)
		if err != nil {
			return err
		}
		if rng.IntN(3) == 0 {
			return db.DropKeyspace(ks.Name())
		}
		return errors.Join(ks.Put(k, v), second(ks.Count(nil, nil)))
	case 19:
		for _, err := range db.Changes(ctx, pando.ChangesOptions{From: db.LastSeq()}) {
			if err != nil && !errors.Is(err, pando.ErrChangesGone) {
				return err
			}
		}
		return nil
	case 20:
		_ = db.Metrics()
		return second(db.Keyspaces())
	case 21:
		return second(db.CompareAndSet(k, nil, v))
	case 22:
		r, err := db.OpenValue(k)
		if err != nil {
			return err
		}
		defer r.Close()
		if n, err := r.ReadAt(make([]byte, r.Size()), 0); err != nil && n < int(r.Size()) {
			return err
		}
		return nil
	default:
		if rng.IntN(20) == 0 {
			return db.Backup(ctx, fmt.Sprint("backup", rng.Uint64()))
		}
		return second(db.Default().Expiry(k))
	}
}

// in and out describe one operation on a handful of registers.
type in struct {
	op   string // get, put, add (a transaction over two keys), both (a snapshot of two keys)
	a, b int
	v    int
}

type out struct {
	a, b     int
	conflict bool
}

const registers = 3

var model = porcupine.Model{
	Init: func() any { return [registers]int{} },
	Step: func(state, input, output any) (bool, any) {
		s, i, o := state.([registers]int), input.(in), output.(out)
		switch i.op {
		case "get":
			return s[i.a] == o.a, s
		case "put":
			s[i.a] = i.v
			return true, s
		case "both":
			return s[i.a] == o.a && s[i.b] == o.b, s
		default:
			if o.conflict {
				return true, s
			}
			ok := s[i.a] == o.a && s[i.b] == o.b
			s[i.a], s[i.b] = o.b, i.v
			return ok, s
		}
	},
	DescribeOperation: func(i, o any) string { return fmt.Sprintf("%+v -> %+v", i, o) },
}

func TestLinearizable(t *testing.T) {
	for profile := pando.Durable; profile <= pando.Bench; profile++ {
		t.Run(profile.String(), func(t *testing.T) {
			for seed := range uint64(4) {
				history(t, profile, seed)
			}
		})
	}
}

func history(t *testing.T, profile pando.Profile, seed uint64) {
	db := open(t, memfs.New(), profile)
	defer db.Close()
	var clock atomic.Int64
	var mu sync.Mutex
	var ops []porcupine.Operation
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := db.Checkpoint(context.Background()); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	var clients sync.WaitGroup
	for c := range 6 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(c)))
			for n := range 120 {
				i := in{op: []string{"get", "put", "both", "update", "optimistic"}[rng.IntN(5)], a: rng.IntN(registers), v: c*1000 + n + 1}
				i.b = (i.a + 1) % registers
				call := clock.Add(1)
				o, err := carry(db, i)
				end := clock.Add(1)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				ops = append(ops, porcupine.Operation{ClientId: c, Input: i, Call: call, Output: o, Return: end})
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	close(stop)
	wg.Wait()
	if r := porcupine.CheckOperationsTimeout(model, ops, 20*time.Second); r != porcupine.Ok {
		t.Errorf("seed %d: history of %d operations: %v", seed, len(ops), r)
	}
}

func carry(db *pando.DB, i in) (o out, err error) {
	name := func(n int) []byte { return fmt.Appendf(nil, "register%d", n) }
	read := func(r interface {
		Get(key []byte) ([]byte, error)
	}, n int) int {
		v, e := r.Get(name(n))
		if errors.Is(e, pando.ErrNotFound) {
			return 0
		}
		x, e2 := strconv.Atoi(string(v))
		if e != nil || e2 != nil {
			err = errors.Join(err, e, e2)
		}
		return x
	}
	swap := func(tx *pando.Tx) error {
		o.a, o.b = read(tx, i.a), read(tx, i.b)
		return errors.Join(err, tx.Put(name(i.a), fmt.Append(nil, o.b)), tx.Put(name(i.b), fmt.Append(nil, i.v)))
	}
	switch i.op {
	case "get":
		o.a = read(db, i.a)
	case "put":
		err = db.Put(name(i.a), fmt.Append(nil, i.v))
	case "both":
		s := db.Snapshot()
		o.a, o.b = read(s, i.a), read(s, i.b)
		err = errors.Join(err, s.Close())
	case "update":
		err = db.Update(swap)
	case "optimistic":
		tx, e := db.Begin(true)
		if e != nil {
			return o, e
		}
		err = swap(tx)
		if err == nil {
			err = tx.Commit()
		}
		if errors.Is(err, pando.ErrConflict) {
			o, err = out{conflict: true}, nil
		}
		_ = tx.Rollback()
	}
	return o, err
}
