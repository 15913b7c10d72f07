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
	db, err := pando.Open("db", &pando.Options{FS: fs, Profile: profile, MemoryBytes: 1 << 20, ValueThreshold: 100, SyncInterval: time.Millisecond, KeepChanges: 256 << 10})
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
	time.Sleep(chaosTime)
	done := make(chan error, 2)
	go func() { done <- db.Close() }()
	go func() { done <- db.Close() }()
	for range 2 {
		ends(t, "Close", done)
	}
	wg.Wait()
}

// anything does one of the actions.
func anything(ctx context.Context, db *pando.DB, rng *rand.Rand) error {
	c := call{ctx: ctx, db: db, rng: rng, key: fmt.Appendf(nil, "key%03d", rng.IntN(200)), value: make([]byte, rng.IntN(300))}
	return carryOut(draw(rng, actions), c)
}

// action is something that goroutines do at once; weight says how often it comes.
type action[F any] struct {
	name   string
	weight int
	do     F
}

// carryOut does it, and says what it was that failed.
func carryOut[C any](a *action[func(C) error], c C) error {
	if err := a.do(c); err != nil {
		return fmt.Errorf("%s: %w", a.name, err)
	}
	return nil
}

// draw draws one of some actions.
func draw[F any](rng *rand.Rand, actions []action[F]) *action[F] {
	total := 0
	for i := range actions {
		total += actions[i].weight
	}
	n := rng.IntN(total)
	for i := range actions {
		if n -= actions[i].weight; n < 0 {
			return &actions[i]
		}
	}
	panic("unreachable")
}

// ends fails the test where what is on its way ends with an error, or not at all.
func ends(t *testing.T, what string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(3 * time.Minute):
		t.Fatalf("%s: that does not end", what)
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

// recorder is the history of several clients.
type recorder struct {
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// note carries out what a client asks for, and notes what came of it unless that is an error.
func (r *recorder) note(client int, input any, carry func() (output any, err error)) error {
	call := r.clock.Add(1)
	output, err := carry()
	end := r.clock.Add(1)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: input, Call: call, Output: output, Return: end})
	return nil
}

// check checks that one order of all operations explains what they returned.
func (r *recorder) check(t *testing.T, model porcupine.Model, seed uint64) {
	t.Helper()
	if !porcupine.CheckOperations(model, r.ops) {
		t.Errorf("seed %d: the history of %d operations is not linearizable", seed, len(r.ops))
	}
}

func history(t *testing.T, profile pando.Profile, seed uint64) {
	db := open(t, memfs.New(), profile)
	defer db.Close()
	var h recorder
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
				if err := h.note(c, i, func() (any, error) { return carry(db, i) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	wg.Wait()
	h.check(t, model, seed)
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
