package aggregate

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/scratch"
)

// state makes the function's state for a partition with an id.
func (f *windowFunction) state(c *windowCursor, p *partition, id value) (windowState, error) {
	switch f.op {
	case "$rank", "$denseRank", "$documentNumber":
		return &rankState{f: f, docs: p.docs, collation: c.o.Collation}, nil
	case "$shift":
		return &shiftState{chosen{f, p.docs}}, nil
	case "$first", "$last":
		s := &endState{chosen{f, p.docs}, window{bounds: &f.bounds}}
		if f.bounds.ranged {
			s.x = &column{c.tape(p)}
		}
		return s, nil
	}
	in := inputs{f: f, docs: p.docs, first: column{c.tape(p)}}
	switch f.op {
	case "$expMovingAvg":
		return &movingState{inputs: in}, nil
	case "$locf":
		return &locfState{inputs: in}, nil
	case "$linearFill":
		in.x = &column{c.tape(p)}
		return &fillState{inputs: in}, nil
	case "$covariancePop", "$covarianceSamp":
		in.second = &column{c.tape(p)}
	case "$derivative", "$integral":
		in.x = &column{c.tape(p)}
	}
	if f.bounds.ranged && in.x == nil {
		in.x = &column{c.tape(p)}
	}
	slides := !f.bounds.lower.unbounded
	if slides && (f.op == "$stdDevPop" || f.op == "$stdDevSamp") {
		return &deviationState{inputs: in, window: window{bounds: &f.bounds, x: in.x}}, nil
	}
	s := &slidingState{inputs: in, window: window{bounds: &f.bounds, x: in.x}}
	switch f.op {
	case "$covariancePop", "$covarianceSamp":
		s.accumulate = &covariance{sample: f.op == "$covarianceSamp"}
	case "$derivative":
		return &derivativeState{s}, nil
	case "$integral":
		return &integralState{slidingState: s}, nil
	default:
		if f.a.keys != nil {
			s.keys = c.tape(p)
		}
		a, err := f.a.accumulator(id)
		if err != nil {
			return nil, err
		}
		if slides {
			slide(a, f.op)
		}
		s.accumulate = single{a}
		if m, ok := a.(mergeable); ok && slides {
			s.queue = newWindowQueue(m, c.o.memory()/accumulatorCost)
		}
	}
	return s, nil
}

// inputs is what a function needs of each document, in columns.
type inputs struct {
	f      *windowFunction
	docs   *scratch.Tape
	first  column
	second *column
	x      *column       // the sort field
	keys   *scratch.Tape // sort keys of $top and the like
	key    []byte
}

func (in *inputs) take(doc document) error {
	columns := []struct {
		e *expression.Expression
		c *column
	}{{in.f.argument, &in.first}, {in.f.second, in.second}, {in.f.x, in.x}}
	for _, c := range columns {
		if c.c == nil {
			continue
		}
		v, err := c.e.Eval(doc)
		if err != nil {
			return err
		}
		if err := c.c.add(v); err != nil {
			return err
		}
	}
	if in.keys == nil {
		return nil
	}
	var err error
	if in.key, err = in.f.a.key(in.key[:0], doc); err != nil {
		return err
	}
	return in.keys.Append(in.key)
}

// window finds the first and the last document of each window.
type window struct {
	bounds      *bounds
	x           *column
	first, last int64 // of ranges: where the last window was
}

// around returns the window of document i among n: the documents from first up to and without last.
func (w *window) around(i, n int64) (first, last int64, err error) {
	b := w.bounds
	if !b.ranged {
		first, last = 0, n
		if !b.lower.unbounded {
			first = min(max(saturate(i, b.lower.offset), 0), n)
		}
		if !b.upper.unbounded {
			last = min(max(saturate(i, b.upper.offset)+1, 0), n)
		}
		return first, max(first, last), nil
	}
	v, err := w.x.at(i)
	if err != nil {
		return 0, 0, err
	}
	v = clone(v)
	if err := b.check(v); err != nil {
		return 0, 0, err
	}
	switch {
	case b.lower.current: // the document itself, not those of the same value
		w.first = i
	case !b.lower.unbounded:
		low, err := b.lower.from(v, b.unit)
		if err != nil {
			return 0, 0, err
		}
		w.first, err = w.advance(w.first, n, func(o value) bool { return order.Compare(o, low, nil) < 0 })
		if err != nil {
			return 0, 0, err
		}
	}
	switch {
	case b.upper.current:
		w.last = i + 1
	case b.upper.unbounded:
		w.last = n
	default:
		high, err := b.upper.from(v, b.unit)
		if err != nil {
			return 0, 0, err
		}
		w.last, err = w.advance(w.last, n, func(o value) bool { return order.Compare(o, high, nil) <= 0 })
		if err != nil {
			return 0, 0, err
		}
	}
	return w.first, max(w.first, w.last), nil
}

func saturate(i, offset int64) int64 {
	if offset > 0 && i > (1<<62)-offset || offset > 1<<62 {
		return 1 << 62
	}
	if offset < -(1 << 62) {
		return -(1 << 62)
	}
	return i + offset
}

// advance moves on while the sort field is beyond.
func (w *window) advance(i, n int64, beyond func(v value) bool) (int64, error) {
	for ; i < n; i++ {
		v, err := w.x.at(i)
		if err != nil {
			return 0, err
		}
		if !beyond(v) {
			break
		}
	}
	return i, nil
}

// check refuses values of the sort field that have no distance.
func (b *bounds) check(v value) error {
	switch {
	case b.unit != "" && v.Type != bsoncore.TypeDateTime:
		return mongoerror.New(mongoerror.Code(5429513), "Expected the sortBy field to be a Date, but it was %s", mongoerror.TypeName(v.Type))
	case b.unit == "" && v.Type == bsoncore.TypeDateTime:
		return mongoerror.New(mongoerror.Code(5429413), "For windows that involve date or time ranges, a unit must be provided.")
	case b.unit == "" && !isNumber(v):
		return mongoerror.New(mongoerror.Code(5429414), "Expected the sortBy field to be a number, but it was %s", mongoerror.TypeName(v.Type))
	}
	return nil
}

// from returns the end of a window around v.
func (b *bound) from(v value, unit string) (value, error) {
	if unit != "" {
		ms, err := expression.DateAdd("$setWindowFields", v.DateTime(), b.offset, unit, time.UTC)
		return dateValue(ms), err
	}
	n, _ := number.Of(v)
	return number.Add(n, b.delta).Value(), nil
}

// windowAccumulator is an accumulator over a window.
type windowAccumulator interface {
	add(in *inputs, i int64) error
	result() (value, error)
	reset()
}

// single is an accumulator of one argument.
type single struct{ accumulator }

func (s single) add(in *inputs, i int64) error {
	v, err := in.first.at(i)
	if err != nil {
		return err
	}
	var key []byte
	if in.keys != nil {
		if key, err = in.keys.At(i); err != nil {
			return err
		}
		if v.Type == 0 {
			v = null()
		}
	}
	_, err = s.accumulator.add(key, v)
	return err
}

// slidingState is an accumulator over windows: those that only grow are added to, others are gone through anew.
type slidingState struct {
	inputs
	window
	accumulate windowAccumulator
	from, to   int64 // what is accumulated
	n          int64
	queue      *windowQueue // instead of accumulate, where the windows lose documents
}

func (s *slidingState) at(ctx context.Context, i int64) (value, error) {
	first, last, err := s.around(i, s.docs.Len())
	if err != nil {
		return value{}, err
	}
	if s.queue != nil && last-first <= s.queue.most {
		v, err := s.queue.move(ctx, &s.inputs, first, last)
		return s.shortened(v), err
	}
	if first != s.from || last < s.to {
		s.accumulate.reset()
		s.from, s.to = first, first
	}
	for ; s.to < last; s.to++ {
		if s.n++; s.n%pollEvery == 0 && ctx.Err() != nil {
			return value{}, ctx.Err()
		}
		if err := s.accumulate.add(&s.inputs, s.to); err != nil {
			return value{}, err
		}
	}
	v, err := s.accumulate.result()
	if s.f.bounds.lower.unbounded {
		return v, err
	}
	return s.shortened(v), err
}

// shortened is v, a sum as short as can be: MongoDB has it so for windows that lose documents.
func (s *slidingState) shortened(v value) value {
	if s.f.op == "$sum" && v.Type == bsoncore.TypeInt64 {
		return shortest(v.Int64())
	}
	return v
}
