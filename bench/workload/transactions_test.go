package workload

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/bench/engine"
)

// View needs no copy: nothing is written meanwhile.
func (m *memory) View(fn func(engine.Reader) error) error { return fn(m) }

// Update works in a copy, and does the same to the store when it commits.
func (m *memory) Update(fn func(engine.Transaction) error) error {
	m.mu.Lock()
	before := slices.Clone(*m.records)
	own := slices.Clone(before)
	tx := &memoryTransaction{memory: memory{fault: m.fault, records: &own, gets: m.gets, puts: m.puts}, before: &memory{fault: m.fault, records: &before}}
	m.mu.Unlock()
	err := fn(tx)
	m.gets = tx.gets
	switch {
	case err != nil && m.fault != keptFailure, m.fault == lostCommit:
		return err
	}
	return errors.Join(err, m.Write(tx.ops))
}

// memoryTransaction is an update of such an engine.
type memoryTransaction struct {
	memory
	before *memory
	ops    []engine.Op
}

func (t *memoryTransaction) Put(key, value []byte) error {
	return t.write(engine.Op{Key: key, Value: value})
}

func (t *memoryTransaction) Delete(key []byte) error {
	return t.write(engine.Op{Key: key, Delete: true})
}

func (t *memoryTransaction) write(op engine.Op) error {
	t.ops = append(t.ops, op)
	if t.fault == blindUpdate {
		return nil
	}
	return t.memory.Write([]engine.Op{op})
}

func (t *memoryTransaction) Scan(s engine.Scan, visit engine.Visit) error {
	if t.fault == blindWalk {
		return t.before.Scan(s, visit)
	}
	return t.memory.Scan(s, visit)
}

// An engine that has not done all steps when the time is up has marked cells, of what it did.
func TestQueuesAndTransactionsEndInTime(t *testing.T) {
	for name, run := range map[string]func(*Run) error{"queue": queueRun(1), "transactions": transactionsRun(1)} {
		w := Workload{Name: name, Class: engine.Relaxed, Stages: []func(*Run) error{run}}
		for _, c := range cellsOf(t, w, faultyDriver(sound)) {
			reads := strings.HasPrefix(c.Name, "read") // which are a sample
			if c.Failed != "" || strings.HasPrefix(c.Cut, "0 of ") == reads || c.Ops != 0 || c.Data != 0 {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// storeOnly is an engine without transactions.
type storeOnly struct{ engine.Store }

// An engine without transactions has cells that say so, and nothing else is wrong with it.
func TestWithoutTransactions(t *testing.T) {
	d := faultyDriver(sound)
	open := d.Open
	d.Open = func(o engine.Options) (engine.Store, error) {
		if !o.Transactions {
			t.Error("the engine is not told of the transactions")
		}
		s, err := open(o)
		return storeOnly{s}, err
	}
	cells := cellsOf(t, transactions()[0], d)
	for _, c := range cells {
		if c.Failed != engine.ErrUnsupported.Error() {
			t.Errorf("%s: %q", c.Name, c.Failed)
		}
	}
	if len(cells) != 4 {
		t.Errorf("%d cells", len(cells))
	}
}
