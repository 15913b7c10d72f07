package number

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Sum is a running sum as $sum and $add have it: integers are added exactly, doubles with the error of each addition carried
// along, decimals as decimals; the result has the widest type that was added. The zero Sum is the int32 0.
//
// The last digit of a sum of doubles depends on the order of the additions and on how errors are carried along, so both are as
// in MongoDB: numbers are added one after the other, and only integers in front of everything else as their sum.
type Sum struct {
	t        bsoncore.Type
	integers int64 // the sum while there are integers alone that fit; 0 from then on
	moved    bool  // what is no decimal goes to doubles
	doubles  compensated
	decimals Decimal
	decimal  bool // decimals has a value
}

// Add adds n.
func (s *Sum) Add(n Number) {
	s.t = Widest(s.t, n.t)
	switch n.t {
	case bsoncore.TypeInt32:
		if s.moved {
			s.doubles.add(float64(n.int()))
			return
		}
		s.addInt(n.int())
	case bsoncore.TypeInt64:
		s.addInt(n.int())
	case bsoncore.TypeDouble:
		s.move()
		s.doubles.add(n.double())
	case bsoncore.TypeDecimal128:
		if !s.decimal {
			s.decimals, s.decimal = n.decimal(), true
			return
		}
		s.decimals = s.decimals.Add(n.decimal())
	}
}

func (s *Sum) addInt(i int64) {
	if !s.moved {
		sum := s.integers + i
		if (s.integers < 0) != (i < 0) || (sum < 0) == (i < 0) {
			s.integers = sum
			return
		}
		s.move()
	}
	s.doubles.addInt(i)
}

// move makes the integers the first of the doubles.
func (s *Sum) move() {
	if !s.moved {
		s.doubles.addInt(s.integers)
		s.integers, s.moved = 0, true
	}
}

// AddValue adds v if it is a number, and does nothing otherwise.
func (s *Sum) AddValue(v bsoncore.Value) (added bool) {
	n, ok := Of(v)
	if ok {
		s.Add(n)
	}
	return ok
}

// Merge adds all that o has added.
func (s *Sum) Merge(o *Sum) {
	t := Widest(s.t, o.t)
	if o.integers != 0 {
		s.addInt(o.integers)
	}
	if o.moved {
		s.move()
		if r := o.doubles.result(); math.IsNaN(r) || math.IsInf(r, 0) { // the two halves are no numbers then
			s.doubles.add(r)
		} else {
			s.doubles.add(o.doubles.sum)
			if o.doubles.rest != 0 {
				s.doubles.add(o.doubles.rest)
			}
		}
	}
	if o.decimal {
		s.Add(FromDecimal(o.decimals))
	}
	s.t = t
}

// Result returns the sum.
func (s *Sum) Result() Number {
	switch s.t {
	case 0:
		return Int32(0)
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		i, exact := s.exact()
		switch {
		case !exact:
			return Double(s.Float64())
		case s.t == bsoncore.TypeInt32:
			return Int(i)
		default:
			return Int64(i)
		}
	case bsoncore.TypeDouble:
		return Double(s.Float64())
	}
	return FromDecimal(s.Decimal())
}

// exact returns the sum of integers alone if it fits.
func (s *Sum) exact() (i int64, ok bool) {
	if !s.moved {
		return s.integers, true
	}
	d := s.nonDecimal()
	i, ok = d.Int64()
	return i, ok
}

// Whole returns the sum rounded to a whole number, as $add has it of dates; ok is false when there is none of 64 bits.
func (s *Sum) Whole() (i int64, ok bool) {
	switch {
	case s.decimal:
		return FromDecimal(s.Decimal().Quantize(0, HalfEven)).Int64()
	case !s.moved:
		return s.integers, true
	}
	return s.doubles.whole()
}

// Float64 returns the sum as a double.
func (s *Sum) Float64() float64 {
	switch {
	case s.decimal:
		return s.Decimal().Float64()
	case !s.moved:
		return float64(s.integers)
	}
	return s.doubles.result()
}

// Decimal returns the sum as a decimal.
func (s *Sum) Decimal() Decimal {
	if !s.decimal {
		return s.nonDecimal()
	}
	return s.decimals.Add(s.nonDecimal())
}

func (s *Sum) nonDecimal() Decimal {
	if !s.moved {
		return DecimalFromInt(s.integers)
	}
	r := s.doubles.result()
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return fullDecimal(r)
	}
	total := fullDecimal(s.doubles.sum)
	if s.doubles.rest != 0 {
		total = total.Add(fullDecimal(s.doubles.rest))
	}
	return total
}

// compensated is a sum of doubles as two of them: the double that is nearest to it, and what is missing there (Dekker, "A
// floating-point technique for extending the available precision", 1971).
type compensated struct {
	sum, rest float64
	plain     float64 // the sum as it is without all this: what infinities and NaN leave
}

func (c *compensated) add(x float64) {
	c.plain += x
	// What was missing joins the addend first: of the two it is the smaller, mostly, so that this error needs fewer steps.
	joined := x + c.rest
	left := c.rest - (joined - x)
	t := c.sum + joined
	before := t - joined
	after := t - before
	c.rest = left + ((c.sum - before) + (joined - after))
	c.sum = t
}

// addInt adds an integer exactly: both of its halves are doubles.
func (c *compensated) addInt(i int64) {
	upper := i / (1 << 32) * (1 << 32)
	c.add(float64(i - upper))
	c.add(float64(upper))
}

func (c *compensated) result() float64 {
	if math.IsNaN(c.sum) {
		return c.plain
	}
	return c.sum
}

// whole rounds both halves, the second with the fraction of the first.
func (c *compensated) whole() (i int64, ok bool) {
	switch {
	case c.sum == 0x1p63: // one more than there is: what is missing has to lead back
		return math.MaxInt64 + (int64(math.Round(c.rest)) + 1), c.rest < -0.5
	case !(c.sum >= -0x1p63 && c.sum < 0x1p63) || c.sum == -0x1p63 && c.rest <= -0.5:
		return 0, false
	}
	whole := math.Round(c.sum)
	return int64(whole) + int64(math.Round((c.sum-whole)+c.rest)), true
}

// Average is a running mean as $avg has it: a double, or a decimal when one was added. The zero Average has no result.
type Average struct {
	sum   Sum
	count int64
}

// AddValue adds v if it is a number, and does nothing otherwise.
func (a *Average) AddValue(v bsoncore.Value) {
	if a.sum.AddValue(v) {
		a.count++
	}
}

// Scale makes the mean that of a sum with at least the digits of a decimal zero.
func (a *Average) Scale(zero Decimal) {
	if a.sum.decimal {
		a.sum.decimals = a.sum.decimals.Add(zero)
	}
}

// Merge adds all that o has added.
func (a *Average) Merge(o *Average) {
	a.sum.Merge(&o.sum)
	a.count += o.count
}

// Result returns the mean; ok is false when nothing was added, which MongoDB answers with null.
func (a *Average) Result() (n Number, ok bool) {
	switch {
	case a.count == 0:
		return Number{}, false
	case a.sum.decimal:
		return FromDecimal(a.sum.Decimal().Divide(DecimalFromInt(a.count))), true
	default:
		return Double(a.sum.Float64() / float64(a.count)), true
	}
}

// Deviation is a running standard deviation of doubles (Welford, "Note on a method for calculating corrected sums of squares
// and products", 1962). The zero Deviation has no result.
type Deviation struct {
	count      int64
	mean, rest float64
}

// AddValue adds v if it is a number, and does nothing otherwise.
func (d *Deviation) AddValue(v bsoncore.Value) {
	n, ok := Of(v)
	if !ok {
		return
	}
	x := n.Float64()
	d.count++
	if delta := x - d.mean; delta != 0 {
		d.mean += delta / float64(d.count)
		d.rest += delta * (x - d.mean)
	}
}

// Population returns the standard deviation of all values; ok is false when there is none.
func (d *Deviation) Population() (f float64, ok bool) {
	if d.count == 0 {
		return 0, false
	}
	return math.Sqrt(d.rest / float64(d.count)), true
}

// Sample returns the standard deviation of a sample; ok is false when it has less than two values.
func (d *Deviation) Sample() (f float64, ok bool) {
	if d.count < 2 {
		return 0, false
	}
	return math.Sqrt(d.rest / float64(d.count-1)), true
}
