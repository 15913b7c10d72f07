package expression

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// buildAdd makes $add.
func buildAdd(p *parser, name string, operands []node) (node, error) {
	operands = p.commute(operands, func(st *state, values []bsoncore.Value) (bsoncore.Value, error) { return add(st, name, values) })
	if len(operands) == 2 {
		return &lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) { return addTwo(st, name, operands) }}, nil
	}
	return &stopping{nary{operands, func(st *state, values []bsoncore.Value) (bsoncore.Value, error) { return add(st, name, values) }}}, nil
}

// addTwo adds two operands, the second of which is not evaluated when the first is null.
func addTwo(st *state, name string, operands []node) (bsoncore.Value, error) {
	a, err := operands[0].eval(st)
	if err != nil || isNullish(a) {
		return null(), err
	}
	b, err := operands[1].eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	x, first := number.Of(a)
	y, second := number.Of(b)
	if first && second {
		return st.number(number.Add(x, y))
	}
	return add(st, name, []bsoncore.Value{a, b})
}

// commute puts constants behind the other operands of a commutative operator, and makes one of several.
func (p *parser) commute(operands []node, apply func(st *state, values []bsoncore.Value) (bsoncore.Value, error)) []node {
	var constants, others []node
	for _, n := range operands {
		if _, ok := isConstant(n); ok {
			constants = append(constants, n)
		} else {
			others = append(others, n)
		}
	}
	if len(constants) > 1 && len(others) > 0 {
		if v, err := p.evalConstant(&nary{constants, apply}); err != nil {
			p.later(err)
		} else {
			constants = []node{&constant{v}}
		}
	}
	return append(others, constants...)
}

// add adds numbers, and milliseconds to at most one date.
func add(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	var sum number.Sum
	date := false
	for _, v := range values {
		switch {
		case sum.AddValue(v):
		case v.Type == bsoncore.TypeDateTime && date:
			return bsoncore.Value{}, mongoerror.New(16612, "only one date allowed in an %s expression", name)
		case v.Type == bsoncore.TypeDateTime:
			date = true
			sum.Add(number.Int64(millis(v)))
		case isNullish(v):
			return null(), nil
		default:
			return bsoncore.Value{}, mongoerror.New(16554, "%s only supports numeric or date types, not %s", name, typeName(v))
		}
	}
	if !date {
		return st.number(sum.Result())
	}
	ms, ok := sum.Whole()
	if !ok {
		return bsoncore.Value{}, mongoerror.New(mongoerror.Overflow, "date overflow in %s", name)
	}
	return st.date(ms)
}

// millis returns a date's milliseconds since 1970.
func millis(v bsoncore.Value) int64 {
	ms, _ := v.DateTimeOK()
	return ms
}

func buildMultiply(p *parser, name string, operands []node) (node, error) {
	operands = p.commute(operands, func(st *state, values []bsoncore.Value) (bsoncore.Value, error) { return multiply(st, name, values) })
	return &stopping{nary{operands, func(st *state, values []bsoncore.Value) (bsoncore.Value, error) { return multiply(st, name, values) }}}, nil
}

func multiply(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	product, double := number.Int32(1), 1.0 // the doubles are multiplied from the first operand on
	for _, v := range values {
		n, ok := number.Of(v)
		switch {
		case ok:
			product = number.Multiply(product, n)
			if double *= n.Float64(); product.Type() == bsoncore.TypeDouble {
				product = number.Double(double)
			}
		case isNullish(v):
			return null(), nil
		default:
			return bsoncore.Value{}, mongoerror.New(mongoerror.TypeMismatch, "%s only supports numeric types, not %s", name, typeName(v))
		}
	}
	return st.number(product)
}

func evalSubtract(st *state, name string, a, b bsoncore.Value) (bsoncore.Value, error) {
	x, first := number.Of(a)
	y, second := number.Of(b)
	switch {
	case first && second:
		return st.number(number.Subtract(x, y))
	case isNullish(a) || isNullish(b):
		return null(), nil
	case a.Type == bsoncore.TypeDateTime && b.Type == bsoncore.TypeDateTime:
		return st.number(number.Int64(millis(a) - millis(b))) // which wraps around, as it does in MongoDB
	case a.Type == bsoncore.TypeDateTime && second:
		if y.IsDecimal() {
			y = number.FromDecimal(y.Decimal().Quantize(0, number.HalfEven))
		}
		less, exact := y.Int64() // a double's fraction is cut off
		if y.IsDecimal() && !exact {
			return bsoncore.Value{}, mongoerror.New(mongoerror.DurationOverflow, "date overflow in %s", name)
		}
		if y.IsNaN() || !exact && (less == math.MaxInt64 || less == math.MinInt64) {
			return bsoncore.Value{}, mongoerror.New(31109, "Can't coerce out of range value %s to long", y)
		}
		d := number.Subtract(number.Int64(millis(a)), number.Int64(less))
		if d.Type() != bsoncore.TypeInt64 || less == math.MinInt64 { // which is no other number's negative
			return bsoncore.Value{}, mongoerror.New(mongoerror.DurationOverflow, "date overflow in %s", name)
		}
		ms, _ := d.Int64()
		return st.date(ms)
	case a.Type == bsoncore.TypeDateTime:
		return bsoncore.Value{}, mongoerror.New(mongoerror.TypeMismatch, "can't %s %s from Date", name, typeName(b))
	default:
		return bsoncore.Value{}, mongoerror.New(mongoerror.TypeMismatch, "can't %s %s from %s", name, typeName(b), typeName(a))
	}
}

func evalDivide(st *state, name string, a, b bsoncore.Value) (bsoncore.Value, error) {
	x, first := number.Of(a)
	y, second := number.Of(b)
	switch {
	case first && second && y.IsZero():
		return bsoncore.Value{}, mongoerror.New(mongoerror.BadValue, "can't %s by zero", name)
	case first && second:
		return st.number(number.Divide(x, y))
	case isNullish(a) || isNullish(b):
		return null(), nil
	}
	return bsoncore.Value{}, mongoerror.New(mongoerror.TypeMismatch, "%s only supports numeric types, not %s and %s", name, typeName(a), typeName(b))
}

func evalMod(st *state, name string, a, b bsoncore.Value) (bsoncore.Value, error) {
	x, first := number.Of(a)
	y, second := number.Of(b)
	switch {
	case first && second && y.IsZero() && (x.IsDecimal() || y.IsDecimal()):
		return bsoncore.Value{}, mongoerror.New(5733415, "can't %s by zero", name)
	case first && second && y.IsZero():
		return bsoncore.Value{}, mongoerror.New(16610, "can't %s by zero", name)
	case first && second:
		return st.number(number.Mod(x, y))
	case isNullish(a) || isNullish(b):
		return null(), nil
	}
	return bsoncore.Value{}, mongoerror.New(16611, "%s only supports numeric types, not %s and %s", name, typeName(a), typeName(b))
}

// one returns the number in an operand; done is true when the result is known already: null, or an error.
func one(name string, v bsoncore.Value) (n number.Number, done bool, err error) {
	n, ok := number.Of(v)
	switch {
	case ok:
		return n, false, nil
	case isNullish(v):
		return n, true, nil
	}
	return n, true, mongoerror.New(28765, "%s only supports numeric types, not %s", name, typeName(v))
}

// operand is one of two operands: what it is called, and the code of the error when it is no number.
type operand struct {
	value bsoncore.Value
	role  string
	wrong mongoerror.Code
}

// two is one for two operands.
func two(name string, a, b operand) (x, y number.Number, done bool, err error) {
	if isNullish(a.value) || isNullish(b.value) {
		return x, y, true, nil
	}
	x, first := number.Of(a.value)
	y, second := number.Of(b.value)
	switch {
	case !first:
		return x, y, true, mongoerror.New(a.wrong, "%s's %s must be numeric, not %s", name, a.role, typeName(a.value))
	case !second:
		return x, y, true, mongoerror.New(b.wrong, "%s's %s must be numeric, not %s", name, b.role, typeName(b.value))
	}
	return x, y, false, nil
}

func evalAbs(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	n, done, err := one(name, v)
	if done {
		return null(), err
	}
	switch {
	case n.IsDecimal():
		return st.number(number.FromDecimal(n.Decimal().Abs()))
	case n.Type() == bsoncore.TypeDouble:
		return st.double(math.Abs(n.Float64()))
	}
	i, _ := n.Int64()
	if i == math.MinInt64 {
		return bsoncore.Value{}, mongoerror.New(28680, "can't take %s of long long min", name)
	}
	if i < 0 {
		i = -i
	}
	if n.Type() == bsoncore.TypeInt32 {
		return st.number(number.Int(i))
	}
	return st.number(number.Int64(i))
}

func evalExp(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	n, done, err := one(name, v)
	if done {
		return null(), err
	}
	if n.IsDecimal() {
		return st.decimal(n.Decimal().Exp)
	}
	return st.double(number.Exp(n.Float64()))
}

// evalLogarithm is $ln and $log10.
func evalLogarithm(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	n, done, err := one(name, v)
	if done {
		return null(), err
	}
	if n.IsDecimal() && n.Sign() > 0 {
		if name == "$ln" {
			return st.decimal(n.Decimal().Ln)
		}
		return st.decimal(n.Decimal().Log10)
	}
	switch f := n.Float64(); { // NaN is a double of each type, as in MongoDB
	case f <= 0 && name == "$ln":
		return bsoncore.Value{}, mongoerror.New(28766, "%s's argument must be a positive number, but is %s", name, n)
	case f <= 0:
		return bsoncore.Value{}, mongoerror.New(28761, "%s's argument must be a positive number, but is %s", name, n)
	case name == "$ln":
		return st.double(number.Log(f))
	default:
		return st.double(number.Log10(f))
	}
}

func evalLog(st *state, name string, a, b bsoncore.Value) (bsoncore.Value, error) {
	x, y, done, err := two(name, operand{a, "argument", 28756}, operand{b, "base", 28757})
	if done {
		return null(), err
	}
	if x.IsDecimal() || y.IsDecimal() {
		argument, base := x.Decimal(), y.Decimal()
		if argument.Sign() > 0 && base.Sign() > 0 && base.Compare(number.DecimalFromInt(1)) != 0 {
			return st.decimal(func() number.Decimal { return argument.Log(base) })
		}
	}
	argument, base := x.Float64(), y.Float64() // NaN is a double of each type, as in MongoDB
	switch {
	case argument <= 0:
		return bsoncore.Value{}, mongoerror.New(28758, "%s's argument must be a positive number, but is %s", name, x)
	case base <= 0 || base == 1:
		return bsoncore.Value{}, mongoerror.New(28759, "%s's base must be a positive number not equal to 1, but is %s", name, y)
	}
	return st.double(number.Log(argument) / number.Log(base))
}

func evalSqrt(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	n, done, err := one(name, v)
	if done {
		return null(), err
	}
	switch {
	case n.Sign() < 0:
		return bsoncore.Value{}, mongoerror.New(28714, "%s's argument must be greater than or equal to 0", name)
	case n.IsDecimal():
		return st.decimal(n.Decimal().Sqrt)
	}
	return st.double(math.Sqrt(n.Float64()))
}

func evalPow(st *state, name string, a, b bsoncore.Value) (bsoncore.Value, error) {
	x, y, done, err := two(name, operand{a, "base", 28762}, operand{b, "exponent", 28763})
	if done {
		return null(), err
	}
	switch {
	case x.IsZero() && (y.Sign() < 0 || (x.IsDecimal() || y.IsDecimal()) && y.Decimal().Negative()): // -0 is negative among decimals
		return bsoncore.Value{}, mongoerror.New(28764, "%s cannot take a base of 0 and a negative exponent", name)
	case x.IsDecimal() || y.IsDecimal():
		return st.decimal(func() number.Decimal { return x.Decimal().Pow(y.Decimal()) })
	case !x.IsInteger() || !y.IsInteger():
		return st.double(number.Power(x.Float64(), y.Float64()))
	}
	return st.number(integerPower(x, y))
}

// integerPower is exact as long as the result is an int64; it has the wider type of the two at least.
func integerPower(x, y number.Number) number.Number {
	base, _ := x.Int64()
	exponent, _ := y.Int64()
	result := number.Int64(1)
	switch {
	case exponent < 0 && base == 1:
	case exponent < 0 && base == -1:
		if exponent%2 != 0 {
			result = number.Int64(-1)
		}
	case exponent < 0 || exponent > 63 && base != 0 && base != 1 && base != -1:
		return number.Double(number.Power(float64(base), float64(exponent)))
	default:
		factor := number.Int64(base)
		for ok := true; exponent > 0; exponent >>= 1 {
			if exponent&1 == 1 {
				if result, ok = number.MultiplyExact(result, factor); !ok {
					return number.Double(number.Power(x.Float64(), y.Float64()))
				}
			}
			if exponent > 1 {
				if factor, ok = number.MultiplyExact(factor, factor); !ok {
					return number.Double(number.Power(x.Float64(), y.Float64()))
				}
			}
		}
	}
	if x.Type() == bsoncore.TypeInt32 && y.Type() == bsoncore.TypeInt32 {
		i, _ := result.Int64()
		return number.Int(i)
	}
	return result
}
