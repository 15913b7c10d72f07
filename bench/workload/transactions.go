package workload

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pandodb/pando/bench/engine"
)

// transactions is what programs do all day with a store whose every access is in a transaction: short ones, one after the other. One
// operation is a transaction.
func transactions() []Workload {
	return []Workload{{Name: "transactions", About: "short transactions one after the other; one operation is a transaction",
		Class: engine.Relaxed, Stages: []func(*Run) error{transactionsRun(transactionsLimit)}}}
}

const (
	// transactionPuts is how many records a large update puts, and how many it walks over.
	transactionPuts = 10
	// transactionsLimit ends the loops of engines to which a small update is a large effort.
	transactionsLimit = 7 * time.Second
)

func transactionsRun(limit time.Duration) func(*Run) error {
	return func(r *Run) error {
		d, n := recordData(), r.Sizes.Records
		r.transactions = true
		s, err := r.settled(d, n, 2*n)
		if err != nil {
			return err
		}
		x := &transacting{r: r, d: d, s: s, limit: limit, newest: make([]uint32, n)}
		x.walk.x = x
		var ok bool
		if x.t, ok = s.(engine.Transactor); !ok {
			x.t = noTransactions{}
		}
		r.readLimit = limit // reads are a sample anyway
		return steps(
			func() error { return x.reads("read transaction: one get", n/2, 1) },
			func() error { return x.reads("read transaction: ten gets", n/10, 10) },
			func() error { return x.getsAndPuts("update transaction: get and put", n/5) },
			x.givenUp,
			func() error {
				if r.Driver.NoOrder {
					return nil // it cannot walk, and has no such cell
				}
				return x.putsAndWalks("update transaction: ten puts, read back, walk of ten", n/20)
			},
			x.left,
		)
	}
}

// noTransactions stands for an engine that has none.
type noTransactions struct{}

// View does not exist.
func (noTransactions) View(func(engine.Reader) error) error { return engine.ErrUnsupported }

// Update does not exist.
func (noTransactions) Update(func(engine.Transaction) error) error { return engine.ErrUnsupported }

// transacting is what the steps have in common. The functions that run in transactions are made once for a loop: to make one for each
// transaction would be part of the cell.
type transacting struct {
	r       *Run
	d       *Data
	s       engine.Store
	t       engine.Transactor
	limit   time.Duration // of updates
	newest  []uint32      // the version of each record
	version uint32        // of what the last update puts
	own     []uint64      // records that the update has put which is open, if that reads them
	walk    versionWalk
}

func (x *transacting) random(w *worker) uint64 { return w.rng.Uint64N(uint64(len(x.newest))) }

// check says what is wrong with a value of record i, whose version is known.
func (x *transacting) check(value []byte, i uint64) error {
	if err := x.d.Check(value, i); err != nil {
		return err
	}
	want := x.newest[i]
	if slices.Contains(x.own, i) {
		want = x.version
	}
	if got := Version(value); got != uint64(want) {
		return fmt.Errorf("record %d: version %d, want %d", i, got, want)
	}
	return nil
}

// get reads one record and checks it, and its version. The worker has its key then.
func (x *transacting) get(w *worker, from engine.Reader, i uint64) error {
	if err := w.read(from, x.d, i); err != nil {
		return err
	}
	return x.check(w.got, i)
}

// reads gets so many records at random in each transaction.
func (x *transacting) reads(name string, ops, gets int) error {
	var w *worker
	fn := func(from engine.Reader) error {
		for range gets {
			if err := x.get(w, from, x.random(w)); err != nil {
				return err
			}
		}
		return nil
	}
	return x.r.loop(name, ops, 1, sampled, func(its *worker, _ int) error {
		w = its
		return x.t.View(fn)
	})
}

// updates are transactions of one kind, each of so many puts, with what is put off added.
func (x *transacting) updates(name string, ops, puts int, one func(w *worker, i int) error) error {
	work := func() error {
		if err := x.r.loop(name, ops, 1, sampled, one); err != nil {
			return err
		}
		c := &x.r.Cells[len(x.r.Cells)-1]
		c.Data = x.d.Bytes(int(c.Ops) * puts)
		return nil
	}
	return x.r.limited(x.limit, ops, "transactions", work, func() error { return x.r.settleAfter(name) })
}

// getsAndPuts read a record at random and put its next version.
func (x *transacting) getsAndPuts(name string, ops int) error {
	var w *worker
	var i uint64
	fn := func(t engine.Transaction) error {
		if err := x.get(w, t, i); err != nil {
			return err
		}
		w.value = x.d.Value(w.value, i, uint64(x.version))
		return t.Put(w.key, w.value)
	}
	return x.updates(name, ops, 1, func(its *worker, _ int) error {
		w, i = its, x.random(its)
		x.version++
		err := x.t.Update(fn)
		if err == nil {
			x.newest[i] = x.version
		}
		return err
	})
}

// putsAndWalks put ten records at random, get two of them, and walk from a third one on.
func (x *transacting) putsAndWalks(name string, ops int) error {
	var w *worker
	records, short := make([]uint64, transactionPuts), 0
	pick := func(k int) uint64 {
		records[k] = x.random(w)
		return records[k]
	}
	visit := x.walk.visit
	fn := func(t engine.Transaction) error {
		for _, op := range w.ops {
			if err := t.Put(op.Key, op.Value); err != nil {
				return err
			}
		}
		for _, i := range []uint64{records[0], records[transactionPuts-1]} {
			if err := x.get(w, t, i); err != nil {
				return err
			}
		}
		x.walk.begin()
		middle := transactionPuts / 2
		if err := t.Scan(engine.Scan{From: w.ops[middle].Key, Limit: transactionPuts}, visit); err != nil {
			return err
		}
		return x.walk.shows(records[middle], transactionPuts)
	}
	err := x.updates(name, ops, transactionPuts, func(its *worker, _ int) error {
		w = its
		x.version++
		w.batchOf(x.d, transactionPuts, uint64(x.version), pick)
		x.own = records
		err := x.t.Update(fn)
		x.own = nil
		if err != nil {
			return err
		}
		for _, i := range records {
			x.newest[i] = x.version
		}
		if x.walk.n < transactionPuts {
			short++
		}
		return nil
	})
	if err == nil && short > shortScans(ops, transactionPuts, len(x.newest)) {
		err = fmt.Errorf("%s: %d of %d walks ended early", name, short, ops)
	}
	return err
}

// versionWalk checks all records of a walk, and their versions.
type versionWalk struct {
	x     *transacting
	first uint64 // record
	last  uint64 // head of a key
	n     int
	key   []byte // as it has to be
	err   error
}

func (w *versionWalk) begin() { w.n, w.err = 0, nil }

func (w *versionWalk) visit(key, value []byte) bool {
	head, i := binary.BigEndian.Uint64(key), w.x.d.Index(key)
	w.key = w.x.d.Key(w.key, i)
	switch {
	case i >= uint64(len(w.x.newest)) || !bytes.Equal(key, w.key):
		w.err = fmt.Errorf("walk: key %x, which no record has", key)
	case w.n > 0 && head <= w.last:
		w.err = fmt.Errorf("walk: key %x after %016x", key, w.last)
	default:
		w.err = w.x.check(value, i)
	}
	if w.n == 0 {
		w.first = i
	}
	w.n++
	w.last = head
	return w.err == nil
}

// shows says what is wrong with a walk from a record on that is there.
func (w *versionWalk) shows(first uint64, limit int) error {
	if w.err == nil && (w.n == 0 || w.n > limit || w.first != first) {
		w.err = fmt.Errorf("walk: %d records from %d on, want up to %d from %d on", w.n, w.first, limit, first)
	}
	return w.err
}

var errGivenUp = errors.New("given up")

// givenUp checks, unmeasured, that an update reads what it has put, and that nothing of it stays when it fails.
func (x *transacting) givenUp() error {
	w := &worker{}
	x.version++
	x.own = []uint64{0}
	err := x.t.Update(func(t engine.Transaction) error {
		w.key, w.value = x.d.Key(w.key, 0), x.d.Value(w.value, 0, uint64(x.version))
		if err := t.Put(w.key, w.value); err != nil {
			return err
		}
		if err := x.get(w, t, 0); err != nil {
			return err
		}
		return errGivenUp
	})
	x.own = nil
	if errors.Is(err, engine.ErrUnsupported) {
		return nil
	}
	if !errors.Is(err, errGivenUp) {
		return fmt.Errorf("an update that gives up: %w", cmp.Or(err, errors.New("committed")))
	}
	if err := x.get(w, x.s, 0); err != nil {
		return fmt.Errorf("after an update that gave up: %w", err)
	}
	return nil
}

// left checks, unmeasured, that every record has the version that was put last.
func (x *transacting) left() error {
	if x.r.Driver.NoOrder {
		w := &worker{}
		for i := range uint64(len(x.newest)) {
			if err := x.get(w, x.s, i); err != nil {
				return fmt.Errorf("after all transactions: %w", err)
			}
		}
		return nil
	}
	x.walk.begin()
	if err := x.s.Scan(engine.Scan{}, x.walk.visit); err != nil {
		return err
	}
	if x.walk.err == nil && x.walk.n != len(x.newest) {
		x.walk.err = fmt.Errorf("%d records, want %d", x.walk.n, len(x.newest))
	}
	if x.walk.err != nil {
		return fmt.Errorf("after all transactions: %w", x.walk.err)
	}
	return nil
}
