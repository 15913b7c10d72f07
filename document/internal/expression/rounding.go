package expression

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// evalCeilFloor is $ceil and $floor.
func evalCeilFloor(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	n, done, err := one(name, v)
	if done {
		return null(), err
	}
	how, rounded := number.Ceiling, math.Ceil
	if name == "$floor" {
		how, rounded = number.Floor, math.Floor
	}
	switch {
	case n.IsDecimal():
		d := n.Decimal().Quantize(0, how)
		if d.IsInf() || d.Exponent() != 0 { // as the server has it
			d, _ = number.ParseDecimal("NaN")
		}
		return st.number(number.FromDecimal(d))
	case n.IsInteger():
		return v, nil
	}
	return st.double(rounded(n.Float64()))
}

const (
	leastPlaces = -20
	mostPlaces  = 100
)

// evalRound is $round and $trunc.
func evalRound(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	how := number.HalfEven
	if name == "$trunc" {
		how = number.Truncate
	}
	if isNullish(values[0]) {
		return null(), nil
	}
	n, ok := number.Of(values[0])
	if !ok {
		return bsoncore.Value{}, mongoerror.New(51081, "%s only supports numeric types, not %s", name, typeName(values[0]))
	}
	places := int64(0)
	if len(values) == 2 {
		if isNullish(values[1]) {
			return null(), nil
		}
		var err error
		if places, err = roundingPlaces(name, values[1]); err != nil {
			return bsoncore.Value{}, err
		}
	}
	switch {
	case n.IsDecimal():
		return st.number(number.FromDecimal(n.Decimal().Quantize(int(places), how)))
	case n.Type() == bsoncore.TypeDouble:
		return st.double(roundDouble(n, int(places), how))
	case places >= 0:
		return values[0], nil
	}
	i, exact := n.Decimal().Quantize(int(places), how).Int64()
	if !exact {
		return bsoncore.Value{}, mongoerror.New(51080,
			"invalid conversion from Decimal128 result in %s resulting from arguments: [%s, %d]", name, n, places)
	}
	if n.Type() == bsoncore.TypeInt32 {
		return st.number(number.Int(i))
	}
	return st.number(number.Int64(i))
}

func roundDouble(n number.Number, places int, how number.Rounding) float64 {
	f := n.Float64()
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return f
	case places == 0 && how == number.Truncate:
		return math.Trunc(f)
	case places == 0:
		return math.RoundToEven(f)
	}
	return n.FullDecimal().Quantize(places, how).Float64()
}

func roundingPlaces(name string, v bsoncore.Value) (int64, error) {
	n, ok := number.Of(v)
	if !ok {
		return 0, mongoerror.New(16004, "can't convert from BSON type %s to long", typeName(v))
	}
	places, exact := n.Int64()
	switch {
	case !exact && n.Type() == bsoncore.TypeDouble && (n.IsNaN() || places == math.MaxInt64 || places == math.MinInt64):
		return 0, mongoerror.New(31109, "Can't coerce out of range value %s to long", n)
	case !exact || places != int64(int32(places)):
		return 0, mongoerror.New(51082, "precision argument to  %s must be a integral value", name)
	case places < leastPlaces || places > mostPlaces:
		return 0, mongoerror.New(51083, "cannot apply %s with precision value %d value must be in [%d, %d]", name, places, leastPlaces, mostPlaces)
	}
	return places, nil
}

// evalBits is $bitAnd, $bitOr and $bitXor.
func evalBits(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	result, operate := number.Int32(0), number.Or
	switch name {
	case "$bitAnd":
		result, operate = number.Int32(-1), number.And
	case "$bitXor":
		operate = number.Xor
	}
	for _, v := range values {
		if isNullish(v) {
			return null(), nil
		}
		n, ok := number.Of(v)
		if ok {
			result, ok = number.Bits(result, n, operate)
		}
		if !ok {
			return bsoncore.Value{}, mongoerror.New(mongoerror.TypeMismatch, "%s only supports int and long operands.", name)
		}
	}
	return st.number(result)
}

func evalBitNot(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	if isNullish(v) {
		return null(), nil
	}
	n, ok := number.Of(v)
	if ok {
		n, ok = number.Bits(n, number.Int32(-1), number.Xor)
	}
	if !ok {
		return bsoncore.Value{}, mongoerror.New(mongoerror.TypeMismatch, "%s only supports int and long, not: %s.", name, typeName(v))
	}
	return st.number(n)
}

// angle is one of the trigonometric functions: of doubles, and the range that its argument must be in.
type angle struct {
	of       func(float64) float64
	low      float64
	high     float64
	interval string
}

// openInterval is the domain of functions that take everything but the infinities.
const openInterval = "(-inf,inf)"

func angleOf(name string) angle {
	infinite := math.Inf(1)
	switch name {
	case "$sin":
		return angle{math.Sin, -infinite, infinite, openInterval}
	case "$cos":
		return angle{math.Cos, -infinite, infinite, openInterval}
	case "$tan":
		return angle{math.Tan, -infinite, infinite, openInterval}
	case "$asin":
		return angle{math.Asin, -1, 1, "[-1,1]"}
	case "$acos":
		return angle{math.Acos, -1, 1, "[-1,1]"}
	case "$atan":
		return angle{math.Atan, -infinite, infinite, "[-inf,inf]"}
	case "$sinh":
		return angle{math.Sinh, -infinite, infinite, "[-inf,inf]"}
	case "$cosh":
		return angle{math.Cosh, -infinite, infinite, "[-inf,inf]"}
	case "$tanh":
		return angle{math.Tanh, -infinite, infinite, "[-inf,inf]"}
	case "$asinh":
		return angle{math.Asinh, -infinite, infinite, "[-inf,inf]"}
	case "$acosh":
		return angle{math.Acosh, 1, infinite, "[1,inf]"}
	case "$atanh":
		return angle{math.Atanh, -1, 1, "[-1,1]"}
	case "$degreesToRadians":
		return angle{func(f float64) float64 { return f * (math.Pi / 180) }, -infinite, infinite, "[-inf,inf]"}
	}
	return angle{func(f float64) float64 { return f * (180 / math.Pi) }, -infinite, infinite, "[-inf,inf]"}
}

func evalTrigonometric(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	n, done, err := one(name, v)
	if done {
		return null(), err
	}
	a := angleOf(name)
	if f := n.Float64(); f < a.low || f > a.high || a.interval == openInterval && n.IsInf() {
		return bsoncore.Value{}, mongoerror.New(50989, "cannot apply %s to %s, value must be in %s", name, n, a.interval)
	}
	if !n.IsDecimal() {
		return st.double(a.of(n.Float64()))
	}
	switch d := n.Decimal(); name {
	case "$degreesToRadians":
		return st.decimal(d.Radians)
	case "$radiansToDegrees":
		return st.decimal(d.Degrees)
	default:
		return st.decimal(func() number.Decimal { return d.Trigonometric(name[1:]) })
	}
}

func evalAtan2(st *state, name string, a, b bsoncore.Value) (bsoncore.Value, error) {
	x, first := number.Of(a)
	y, second := number.Of(b)
	switch {
	case isNullish(a) || first && isNullish(b):
		return null(), nil
	case !first:
		return bsoncore.Value{}, mongoerror.New(51044, "%s only supports numeric types, not %s", name, typeName(a))
	case !second:
		return bsoncore.Value{}, mongoerror.New(51045, "%s only supports numeric types, not %s", name, typeName(b))
	case x.IsDecimal() || y.IsDecimal():
		return st.decimal(func() number.Decimal { return x.Decimal().Atan2(y.Decimal()) })
	}
	return st.double(math.Atan2(x.Float64(), y.Float64()))
}
