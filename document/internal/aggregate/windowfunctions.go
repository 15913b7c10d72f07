package aggregate

import (
	"context"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/scratch"
)

// rankState is $rank, $denseRank and $documentNumber.
type rankState struct {
	f           *windowFunction
	docs        *scratch.Tape
	collation   *collation.Collation
	last        value
	rank, dense int64
}

func (s *rankState) take(document) error { return nil }

func (s *rankState) at(_ context.Context, i int64) (value, error) {
	if s.f.op == "$documentNumber" {
		return shortest(i + 1), nil
	}
	doc, err := s.docs.At(i)
	if err != nil {
		return value{}, err
	}
	// Values are compared, not what they are sorted by: null and a missing value are two, and so are arrays with the same least element.
	v, err := s.f.x.Eval(doc)
	if err != nil {
		return value{}, err
	}
	if i == 0 || order.Compare(v, s.last, s.collation) != 0 {
		s.rank, s.dense = i+1, s.dense+1
		s.last = clone(v)
	}
	if s.f.op == "$rank" {
		return shortest(s.rank), nil
	}
	return shortest(s.dense), nil
}

// chosen evaluates its argument on one document of those around, and on no other.
type chosen struct {
	f    *windowFunction
	docs *scratch.Tape
}

func (s *chosen) take(document) error { return nil }

// eval returns a value of its own: that of a tape is gone when the other functions have looked at theirs.
func (s *chosen) eval(i int64) (value, error) {
	doc, err := s.docs.At(i)
	if err != nil {
		return value{}, err
	}
	v, err := s.f.argument.Eval(doc)
	return clone(v), err
}

// shiftState is $shift.
type shiftState struct{ chosen }

func (s *shiftState) at(_ context.Context, i int64) (value, error) {
	at := saturate(i, s.f.by)
	if at < 0 || at >= s.docs.Len() {
		return s.f.fallback, nil
	}
	return s.eval(at)
}

// endState is $first and $last.
type endState struct {
	chosen
	window
}

func (s *endState) take(doc document) error {
	if s.x == nil {
		return nil
	}
	v, err := s.f.x.Eval(doc)
	if err != nil {
		return err
	}
	return s.x.add(v)
}

func (s *endState) at(_ context.Context, i int64) (value, error) {
	first, last, err := s.around(i, s.docs.Len())
	switch {
	case err != nil:
		return value{}, err
	case first == last:
		return null(), nil
	case s.f.op == "$first":
		return s.eval(first)
	}
	return s.eval(last - 1)
}

// movingState is $expMovingAvg.
type movingState struct {
	inputs
	average number.Number // a decimal, which it is computed as
	have    bool
	decimal bool // the result is, as one of the values was
}

func (s *movingState) at(_ context.Context, i int64) (value, error) {
	v, err := s.first.at(i)
	if err != nil {
		return value{}, err
	}
	n, ok := number.Of(v)
	if !ok {
		return s.result(), nil
	}
	s.decimal = s.decimal || n.IsDecimal()
	n = n.Widen(bsoncore.TypeDecimal128)
	if s.have {
		rest := number.Subtract(number.Int32(1), s.f.alpha)
		n = number.Add(number.Multiply(n, s.f.alpha), number.Multiply(s.average, rest))
	}
	s.average, s.have = n, true
	return s.result(), nil
}

func (s *movingState) result() value {
	switch {
	case !s.have:
		return null()
	case s.decimal:
		return s.average.Value()
	}
	return doubleValue(s.average.Float64())
}

// locfState is $locf: the last observation is carried forward.
type locfState struct {
	inputs
	last kept
}

func (s *locfState) at(_ context.Context, i int64) (value, error) {
	v, err := s.first.at(i)
	if err != nil {
		return value{}, err
	}
	if !isNullish(v) {
		s.last.set(v)
	}
	if s.last.v.Type == 0 {
		return null(), nil
	}
	return s.last.v, nil
}

// fillState is $linearFill.
type fillState struct {
	inputs
	left, right   int64 // the documents with values around
	begun, closed bool
}

func (s *fillState) at(_ context.Context, i int64) (value, error) {
	v, err := s.first.at(i)
	if err != nil {
		return value{}, err
	}
	if !isNullish(v) && !isNumber(v) {
		return value{}, notFillable(v)
	}
	x, err := s.xAt(i)
	if err != nil {
		return value{}, err
	}
	if i > 0 {
		if before, err := s.xAt(i - 1); err != nil || order.Equal(x.Value(), before.Value(), nil) {
			return value{}, orRepeated(err)
		}
	}
	if !isNullish(v) {
		s.left, s.begun = i, true
		return clone(v), nil
	}
	if !s.begun {
		return null(), nil
	}
	if s.right <= i {
		if err := s.findRight(i); err != nil {
			return value{}, err
		}
	}
	if s.closed {
		return null(), nil
	}
	return s.between(x)
}

func notFillable(v value) error {
	return mongoerror.New(mongoerror.TypeMismatch, "Value to be filled must be numeric or nullish, but found %s", mongoerror.TypeName(v.Type))
}

func orRepeated(err error) error {
	if err != nil {
		return err
	}
	return mongoerror.New(mongoerror.Code(6050106), "There can be no repeated values in the sort field when using $linearFill")
}

// findRight finds the next document with a value.
func (s *fillState) findRight(i int64) error {
	n := s.docs.Len()
	for s.right = i + 1; s.right < n; s.right++ {
		v, err := s.first.at(s.right)
		if err != nil {
			return err
		}
		if !isNullish(v) {
			return nil
		}
	}
	s.closed = true
	return nil
}

func (s *fillState) between(x number.Number) (value, error) {
	var xs, ys [2]number.Number
	for k, i := range []int64{s.left, s.right} {
		v, err := s.first.at(i)
		if err != nil {
			return value{}, err
		}
		n, ok := number.Of(v)
		if !ok {
			return value{}, notFillable(v)
		}
		ys[k] = n
		if xs[k], err = s.xAt(i); err != nil {
			return value{}, err
		}
	}
	slope := number.Divide(number.Subtract(ys[1], ys[0]), number.Subtract(xs[1], xs[0]))
	return number.Add(ys[0], number.Multiply(number.Subtract(x, xs[0]), slope)).Value(), nil
}

// xAt returns the sort field as a number.
func (s *fillState) xAt(i int64) (number.Number, error) {
	v, err := s.x.at(i)
	if err != nil {
		return number.Number{}, err
	}
	if v.Type == bsoncore.TypeDateTime {
		return number.Int64(v.DateTime()), nil
	}
	n, ok := number.Of(v)
	if !ok {
		return n, mongoerror.New(mongoerror.TypeMismatch, "Cannot calculate $linearFill: the sort field must be numeric or a date, but found: %s", mongoerror.TypeName(v.Type))
	}
	return n, nil
}

// covariance is $covariancePop and $covarianceSamp, computed in one pass (Welford's method for pairs), of decimals in decimals.
type covariance struct {
	sample     bool
	pairs      float64 // of finite numbers; others are in beyond
	x, y       number.Sum
	products   number.Sum
	isInfinite bool // or no number
	beyond     number.Sum
}

func (c *covariance) add(in *inputs, i int64) error {
	v, err := in.first.at(i)
	if err != nil {
		return err
	}
	x, okX := number.Of(v)
	if v, err = in.second.at(i); err != nil {
		return err
	}
	y, okY := number.Of(v)
	switch {
	case !okX || !okY:
	case !isFinite(x) || !isFinite(y):
		c.isInfinite = true
		for _, n := range []number.Number{x, y} {
			if n.IsNaN() {
				c.beyond.Add(number.Double(math.NaN()))
			} else if n.IsInf() {
				c.beyond.Add(n)
			}
		}
	default:
		before := number.Divide(c.x.Result(), number.Double(max(c.pairs, 1)))
		c.pairs++
		c.x.Add(x)
		c.y.Add(y)
		if c.pairs > 1 {
			after := number.Divide(c.y.Result(), number.Double(c.pairs))
			c.products.Add(number.Multiply(number.Subtract(x, before), number.Subtract(y, after)))
		}
	}
	return nil
}

func isFinite(n number.Number) bool { return !n.IsNaN() && !n.IsInf() }

func (c *covariance) result() (value, error) {
	n := c.pairs
	if c.sample {
		n--
	}
	switch {
	case n <= 0:
		return null(), nil
	case c.pairs == 1:
		return number.Double(0).Value(), nil
	case c.isInfinite:
		all := c.beyond
		all.Merge(&c.products)
		return all.Result().Value(), nil
	}
	return number.Divide(c.products.Result(), number.Double(n)).Value(), nil
}

func (c *covariance) reset() { *c = covariance{sample: c.sample} }

// position is the sort field as the x of a function: dates in the function's unit.
func (f *windowFunction) position(v value) (number.Number, error) {
	switch {
	case v.Type == bsoncore.TypeDateTime && f.unit == "":
		if f.op == "$integral" {
			return number.Number{}, mongoerror.New(mongoerror.Code(5423902), "$integral (with no 'unit') expects the sortBy field to be numeric")
		}
		return number.Number{}, mongoerror.New(mongoerror.Code(5624901), "%s where the sortBy is a Date requires a 'unit'", f.op)
	case v.Type == bsoncore.TypeDateTime:
		return number.Int64(v.DateTime()), nil
	case f.unit != "":
		code := mongoerror.Code(5624900)
		if f.op == "$integral" {
			code = 5423901
		}
		return number.Number{}, mongoerror.New(code, "%s with 'unit' expects the sortBy field to be a Date", f.op)
	}
	n, ok := number.Of(v)
	if !ok && f.op == "$integral" {
		return n, notIntegrable()
	}
	if !ok {
		return n, mongoerror.New(mongoerror.Code(5624902), "%s where the sortBy is not a number or a date: %s", f.op, mongoerror.TypeName(v.Type))
	}
	return n, nil
}

func notIntegrable() error {
	return mongoerror.New(mongoerror.Code(5423900), "The input value of $integral window function must be a vector of 2 value, the first value must be numeric or date type and the second must be numeric.")
}

// point returns x and y of a document.
func (s *slidingState) point(i int64) (x, y number.Number, err error) {
	v, err := s.xs().at(i)
	if err != nil {
		return x, y, err
	}
	if x, err = s.f.position(v); err != nil {
		return x, y, err
	}
	if v, err = s.ys().at(i); err != nil {
		return x, y, err
	}
	if v.Type == bsoncore.TypeDateTime && s.f.op == "$derivative" {
		return x, number.Int64(v.DateTime()), nil
	}
	y, ok := number.Of(v)
	switch {
	case ok:
		return x, y, nil
	case s.f.op == "$integral":
		return x, y, notIntegrable()
	}
	return x, y, mongoerror.New(mongoerror.Code(5624903), "$derivative input must be a number and not null or missing, but found: %s", mongoerror.TypeName(v.Type))
}

func (s *slidingState) xs() *column { return s.inputs.x }
func (s *slidingState) ys() *column { return &s.inputs.first }

// derivativeState is $derivative: the slope between the ends of the window.
type derivativeState struct{ *slidingState }

func (s *derivativeState) at(_ context.Context, i int64) (value, error) {
	first, last, err := s.around(i, s.docs.Len())
	if err != nil || first == last {
		return null(), err
	}
	x0, y0, err := s.point(first)
	if err != nil {
		return value{}, err
	}
	x1, y1, err := s.point(last - 1)
	if err != nil {
		return value{}, err
	}
	dx := number.Subtract(x1, x0)
	if dx.Sign() == 0 {
		return null(), nil
	}
	slope := number.Divide(number.Subtract(y1, y0), dx)
	if s.f.unit != "" { // in this order, as a time in units may have a fraction that no double has, and a decimal slope is exact beyond that
		slope = number.Multiply(slope, number.Double(s.f.unitMillis))
	}
	return slope.Value(), nil
}

// integralState is $integral: the sum of the trapezoids of the window. While a window only grows they are added to those of the last one.
type integralState struct {
	*slidingState
	scale  scale
	sum    number.Number
	x0, y0 number.Number // the last point
}

func (s *integralState) at(ctx context.Context, i int64) (value, error) {
	first, last, err := s.around(i, s.docs.Len())
	if err != nil || first == last {
		return null(), err
	}
	if first != s.from || last < s.to {
		s.from, s.to = first, first
	}
	for ; s.to < last; s.to++ {
		if s.n++; s.n%pollEvery == 0 && ctx.Err() != nil {
			return value{}, ctx.Err()
		}
		x, y, err := s.point(s.to)
		if err != nil {
			return value{}, err
		}
		if s.to == s.from {
			s.sum = number.Int32(0)
		} else {
			area := number.Divide(number.Multiply(number.Subtract(x, s.x0), number.Add(y, s.y0)), number.Double(2))
			s.scale.note(area.Value())
			s.sum = number.Add(s.sum, area)
		}
		s.x0, s.y0 = x, y
	}
	sum := s.sum
	if !s.f.bounds.lower.unbounded {
		sum = s.scale.applied(sum)
	}
	if s.f.unit != "" {
		sum = number.Divide(sum, number.Double(s.f.unitMillis))
	}
	return sum.Value(), nil
}
