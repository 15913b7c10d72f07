package aggregate

import (
	"context"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/number"
)

// scale is the least exponent of all decimals that were in a window. A sum from which decimals were taken away again keeps the digits that
// they brought, as MongoDB subtracts what leaves a window. The nil scale knows of none.
type scale struct {
	least int
	some  bool
}

func (s *scale) note(v value) {
	if s == nil || v.Type != bsoncore.TypeDecimal128 {
		return
	}
	if n, ok := number.Of(v); ok && !n.IsNaN() && !n.IsInf() {
		if e := n.Decimal().Exponent(); !s.some || e < s.least {
			s.least, s.some = e, true
		}
	}
}

// zero is a zero with the digits.
func (s *scale) zero() number.Decimal {
	if !s.some {
		return number.DecimalZero(0)
	}
	return number.DecimalZero(s.least)
}

// applied is n, with the digits if it is a decimal.
func (s *scale) applied(n number.Number) number.Number {
	if s == nil || !s.some || !n.IsDecimal() {
		return n
	}
	return number.Add(n, number.FromDecimal(s.zero()))
}

// slide prepares an accumulator for windows that lose documents.
func slide(a accumulator, op string) {
	switch a := a.(type) {
	case *extremeAccumulator:
		a.later = op == "$max"
	case *sumAccumulator:
		a.scale = new(scale)
	case *averageAccumulator:
		a.scale = new(scale)
	case *rankedAccumulator:
		a.later = true
	}
}

// deviationState is $stdDevPop and $stdDevSamp over windows that lose documents: what leaves is taken back from the sums, with the rounding
// errors that MongoDB's results show. The formula is the one-pass update of Youngs and Cramer, "Some results relevant to choice of sum and
// sum-of-product algorithms", 1971, in both directions.
type deviationState struct {
	inputs
	window
	from, to int64 // what is accumulated
	count    int64
	infinite int64 // how many are no finite numbers
	sum      number.Sum
	squares  number.Sum // of the differences from the mean
}

func (s *deviationState) at(ctx context.Context, i int64) (value, error) {
	first, last, err := s.around(i, s.docs.Len())
	if err != nil {
		return value{}, err
	}
	// Nothing of the old window is left. MongoDB goes from one range of documents to the next all the same, by way of those in between.
	if first >= s.to && (!s.bounds.ranged || first == last || s.from == s.to) {
		s.from, s.to = first, first
		s.clear()
		s.infinite = 0
	}
	for n := 1; s.to < last; s.to, n = s.to+1, n+1 {
		if n%pollEvery == 0 && ctx.Err() != nil {
			return value{}, ctx.Err()
		}
		if err := s.update(s.to, 1); err != nil {
			return value{}, err
		}
	}
	for ; s.from < first; s.from++ {
		if err := s.update(s.from, -1); err != nil {
			return value{}, err
		}
	}
	return s.result(), nil
}

// clear forgets the finite numbers.
func (s *deviationState) clear() { s.count, s.sum, s.squares = 0, number.Sum{}, number.Sum{} }

// update adds a document when direction is 1, and takes it back when it is -1.
func (s *deviationState) update(i, direction int64) error {
	v, err := s.inputs.first.at(i)
	if err != nil {
		return err
	}
	n, ok := number.Of(v)
	switch {
	case !ok:
		return nil
	case n.IsNaN() || n.IsInf():
		s.infinite += direction
		return nil
	case s.count+direction == 0:
		s.clear()
		return nil
	case s.count == 0:
		s.count = 1
		s.sum.Add(n)
		return nil
	}
	x := float64(s.count)*n.Float64() - s.sum.Result().Float64()
	s.count += direction
	s.sum.Add(number.Double(n.Float64() * float64(direction)))
	s.squares.Add(number.Double(x * x * float64(direction) / float64(s.count*(s.count-direction))))
	return nil
}

func (s *deviationState) result() value {
	n := s.count
	if s.f.op == "$stdDevSamp" {
		n--
	}
	squares := s.squares.Result().Float64()
	switch {
	case n <= 0 || s.infinite > 0: // where documents only come, the latter is NaN
		return null()
	case squares < 0 || s.count == 1 && s.f.op == "$stdDevPop":
		s.squares = number.Sum{} // a rounding error, as large as what has left the window, shall not cover up what comes
		return int32Value(0)
	}
	return doubleValue(math.Sqrt(squares / float64(n)))
}
