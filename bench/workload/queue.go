package workload

import (
	"bytes"
	"fmt"
	"time"

	"github.com/pandodb/pando/bench/engine"
)

// queue is a queue in an ordered store, after what task and message queues do in one: entries are put at the end and taken from the
// front. What is deleted lies before the first entry that is left. Engines that mark what is deleted find more marks there with each
// step, until they get rid of them.
func queue() []Workload {
	return []Workload{{Name: "queue", About: "1,000 entries wait; each step puts the last one, reads the first and deletes it",
		Class: engine.Relaxed, Stages: []func(*Run) error{queueRun(queueLimit)}}}
}

const (
	queueWaiting = 1000
	// queueLimit ends the steps of engines in which each takes longer than the one before.
	queueLimit = 15 * time.Second
)

func queueRun(limit time.Duration) func(*Run) error {
	return func(r *Run) error {
		if r.Driver.NoOrder {
			return nil // there is no first entry, and no cell
		}
		const name = "queue: put last, read first, delete it"
		d := &Data{KeyBytes: 16, ValueBytes: 100, Ordered: true}
		ops := r.Sizes.Records / 5
		s, err := r.settled(d, queueWaiting, queueWaiting+ops)
		if err != nil {
			return err
		}
		q := &entries{d: d}
		visit := q.visit
		done := 0
		work := func() error {
			err := r.loop(name, ops, 1, sampled, func(w *worker, i int) error { return q.step(w, s, uint64(i), visit) })
			if err != nil {
				return err
			}
			c := &r.Cells[len(r.Cells)-1]
			done, c.Data = int(c.Ops), d.Bytes(int(c.Ops))
			return nil
		}
		if err := r.limited(limit, ops, "steps", work, func() error { return r.settleAfter(name) }); err != nil {
			return err
		}
		return q.left(s, uint64(done))
	}
}

// entries checks that a walk shows one entry after the other.
type entries struct {
	d    *Data
	next uint64
	key  []byte // of the last one that was shown, as it has to be
	err  error
}

func (q *entries) visit(key, value []byte) bool {
	if q.key = q.d.Key(q.key, q.next); bytes.Equal(key, q.key) {
		q.err = q.d.Check(value, q.next)
	} else {
		q.err = fmt.Errorf("entry %d: key %x, want %x", q.next, key, q.key)
	}
	q.next++
	return q.err == nil
}

// step puts the entry behind those that wait, and takes entry i, which is the first.
func (q *entries) step(w *worker, s engine.Store, i uint64, visit engine.Visit) error {
	w.key, w.value = q.d.Key(w.key, i+queueWaiting), q.d.Value(w.value, i+queueWaiting, 0)
	if err := s.Put(w.key, w.value); err != nil {
		return err
	}
	q.next = i
	if err := s.Scan(engine.Scan{Limit: 1}, visit); err != nil {
		return err
	}
	if q.err != nil {
		return q.err
	}
	if q.next != i+1 {
		return fmt.Errorf("entry %d: a walk of one shows %d", i, q.next-i)
	}
	return s.Delete(q.key)
}

// left checks, unmeasured, that those are left that wait after so many steps.
func (q *entries) left(s engine.Store, done uint64) error {
	q.next = done
	if err := s.Scan(engine.Scan{}, q.visit); err != nil {
		return err
	}
	if q.err == nil && q.next != done+queueWaiting {
		q.err = fmt.Errorf("%d entries", q.next-done)
	}
	if q.err != nil {
		return fmt.Errorf("after %d steps %d entries should be left: %w", done, queueWaiting, q.err)
	}
	return nil
}
