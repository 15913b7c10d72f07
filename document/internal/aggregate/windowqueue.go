package aggregate

import (
	"context"

	"github.com/pandodb/pando/document/internal/order"
)

// mergeable is an accumulator whose partial results can be put together, the earlier one first.
type mergeable interface {
	accumulator
	empty() mergeable
	merge(later mergeable)
}

func (a *sumAccumulator) empty() mergeable { return &sumAccumulator{scale: a.scale} }
func (a *sumAccumulator) merge(later mergeable) {
	if o, ok := later.(*sumAccumulator); ok {
		a.sum.Merge(&o.sum)
	}
}

func (a *averageAccumulator) empty() mergeable { return &averageAccumulator{scale: a.scale} }
func (a *averageAccumulator) merge(later mergeable) {
	if o, ok := later.(*averageAccumulator); ok {
		a.average.Merge(&o.average)
	}
}

func (a *extremeAccumulator) empty() mergeable {
	return &extremeAccumulator{sign: a.sign, later: a.later, collation: a.collation}
}

func (a *extremeAccumulator) merge(later mergeable) {
	o, ok := later.(*extremeAccumulator)
	if !ok || o.v.Type == 0 {
		return
	}
	if a.v.Type != 0 {
		if c := order.Compare(o.v, a.v, a.collation) * a.sign; c < 0 || c == 0 && !a.later {
			return
		}
	}
	a.set(o.v)
}

// windowQueue accumulates windows that gain documents at their end and lose them at their beginning, in amortised constant
// time, by two stacks (a known way to make a queue of an aggregation without an inverse): for the older documents it has the
// partial results from each of them up to the middle, for the younger ones a single result.
type windowQueue struct {
	of      mergeable
	most    int64       // documents of a window, for the sake of memory
	first   int64       // of the window
	middle  int64       // where the younger ones begin
	last    int64       // behind the window
	older   []mergeable // older[i] is the result of first+i up to the middle, counted from the time when they were made
	from    int64       // the document of older[0]
	younger mergeable
}

func newWindowQueue(of mergeable, most int64) *windowQueue {
	return &windowQueue{of: of, most: most, younger: of.empty()}
}

// move makes the window [first, last) the current one, and returns its result. Neither end may go back.
func (q *windowQueue) move(ctx context.Context, in *inputs, first, last int64) (value, error) {
	if first > q.last { // nothing of the old window is left
		q.first, q.middle, q.last, q.older, q.younger = first, first, first, q.older[:0], q.of.empty()
	}
	add := single{}
	for ; q.last < last; q.last++ {
		if q.last%pollEvery == 0 && ctx.Err() != nil {
			return value{}, ctx.Err()
		}
		add.accumulator = q.younger
		if err := add.add(in, q.last); err != nil {
			return value{}, err
		}
	}
	q.first = first
	if q.first > q.middle {
		if err := q.turn(in); err != nil {
			return value{}, err
		}
	}
	if q.first == q.middle {
		return q.younger.result()
	}
	whole := q.of.empty()
	whole.merge(q.older[q.first-q.from])
	whole.merge(q.younger)
	return whole.result()
}

// turn makes older ones of all documents of the window.
func (q *windowQueue) turn(in *inputs) error {
	n := q.last - q.first
	q.older = append(q.older[:0], make([]mergeable, n)...)
	for i := n - 1; i >= 0; i-- {
		a := q.of.empty()
		if err := (single{a}).add(in, q.first+i); err != nil {
			return err
		}
		if i+1 < n {
			a.merge(q.older[i+1])
		}
		q.older[i] = a
	}
	q.from, q.middle, q.younger = q.first, q.last, q.of.empty()
	return nil
}
