package number

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Sum is a running sum as $sum and $add have it: integers are added exactly, doubles with the error of each addition carried
// along, decimals as decimals; the result has the widest type that was added. The zero Sum is the int32 0.
type Sum struct {
	t        bsoncore.Type
	integers int64
	doubles  compensated
	decimals Decimal
	decimal  bool // decimals has a value
}

// Add adds n.
func (s *Sum) Add(n Number) {
	s.t = Widest(s.t, n.t)
	switch n.t {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		i := n.int()
		sum := s.integers + i
		if (s.integers < 0) == (i < 0) && (sum < 0) != (i < 0) {
			s.doubles.addInt(s.integers)
			sum = i
		}
		s.integers = sum
	case bsoncore.TypeDouble:
		s.doubles.add(n.double())
	case bsoncore.TypeDecimal128:
		if !s.decimal {
			s.decimals, s.decimal = n.decimal(), true
			return
		}
		s.decimals = s.decimals.Add(n.decimal())
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
	s.Add(Int64(o.integers))
	s.doubles.add(o.doubles.sum)
	s.doubles.add(o.doubles.compensation)
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
	if s.doubles == (compensated{}) {
		return s.integers, true
	}
	d := s.nonDecimal()
	i, ok = d.Int64()
	return i, ok
}

// Float64 returns the sum as a double.
func (s *Sum) Float64() float64 {
	if s.decimal {
		return s.Decimal().Float64()
	}
	d := s.doubles
	d.addInt(s.integers)
	return d.result()
}

// Decimal returns the sum as a decimal.
func (s *Sum) Decimal() Decimal {
	if !s.decimal {
		return s.nonDecimal()
	}
	return s.decimals.Add(s.nonDecimal())
}

func (s *Sum) nonDecimal() Decimal {
	total := DecimalFromInt(s.integers)
	switch r := s.doubles.result(); {
	case s.doubles == compensated{}:
		return total
	case math.IsNaN(r) || math.IsInf(r, 0):
		return fullDecimal(r)
	}
	total = total.Add(fullDecimal(s.doubles.sum))
	if s.doubles.compensation != 0 {
		total = total.Add(fullDecimal(s.doubles.compensation))
	}
	return total
}

// compensated is a sum of doubles of which the rounding errors are summed beside it (Neumaier, "Rundungsfehleranalyse einiger
// Verfahren zur Summation endlicher Summen", 1974).
type compensated struct {
	sum, compensation float64
	plain             float64 // the sum as it is without all this: what infinities and NaN leave
}

func (c *compensated) add(x float64) {
	c.plain += x
	t := c.sum + x
	part := t - c.sum
	c.compensation += (c.sum - (t - part)) + (x - part)
	c.sum = t
}

// addInt adds an integer exactly: its upper and its lower half are doubles.
func (c *compensated) addInt(i int64) {
	if i == 0 {
		return
	}
	lower := i & (1<<32 - 1)
	c.add(float64(i - lower))
	c.add(float64(lower))
}

func (c *compensated) result() float64 {
	r := c.sum + c.compensation
	if math.IsNaN(r) {
		return c.plain
	}
	return r
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
