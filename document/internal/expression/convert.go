package expression

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// parseConvert parses {input: ..., to: ..., onError: ..., onNull: ...}.
func parseConvert(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(mongoerror.FailedToParse, "%s expects an object of named arguments but found: %s", name, typeName(v))
	}
	operands, err := p.fields(v, &fieldSpec{
		names: []string{"input", "to", "onError", "onNull"}, required: 2,
		unknown: func(field string) error {
			return mongoerror.New(mongoerror.FailedToParse, "%s found an unknown argument: %s", name, field)
		},
		missing: func(field string) error {
			return mongoerror.New(mongoerror.FailedToParse, "Missing '%s' parameter to %s", field, name)
		},
	})
	if err != nil {
		return nil, err
	}
	return p.fold(&lazy{operands, evalConvert})
}

func evalConvert(st *state, operands []node) (bsoncore.Value, error) {
	to, err := operands[1].eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	input, err := operands[0].eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	target := bsoncore.Type(0)
	if !isNullish(to) {
		if target, err = targetType(to); err != nil {
			return bsoncore.Value{}, err
		}
	}
	switch {
	case isNullish(input) && operands[3] != nil:
		return operands[3].eval(st)
	case isNullish(input) || target == 0:
		return null(), nil
	}
	v, err := convert(st, input, target)
	if mongoerror.CodeOf(err) == mongoerror.ConversionFailure && operands[2] != nil {
		return operands[2].eval(st)
	}
	return v, err
}

// targetType reads a type by its name or number.
func targetType(v bsoncore.Value) (bsoncore.Type, error) {
	if n, ok := number.Of(v); ok {
		i, exact := n.Int64()
		if !exact {
			return 0, mongoerror.New(mongoerror.FailedToParse, "In $convert, numeric 'to' argument is not an integer")
		}
		t, known := bsoncore.Type(i), i == -1 || i == 127 || i >= 1 && i <= 19
		if !known {
			return 0, mongoerror.New(mongoerror.FailedToParse, "In $convert, numeric value for 'to' does not correspond to a BSON type: %d", i)
		}
		return t, nil
	}
	if !isString(v) {
		return 0, mongoerror.New(mongoerror.FailedToParse, "$convert's 'to' argument must be a string or number, but is %s", typeName(v))
	}
	name := string(stringOf(v))
	for t := 1; t <= 0xff; t++ {
		if typeName(bsoncore.Value{Type: bsoncore.Type(t)}) == name && name != "unknown" {
			return bsoncore.Type(t), nil
		}
	}
	if name == "missing" {
		return bsoncore.TypeUndefined, nil
	}
	return 0, mongoerror.New(mongoerror.BadValue, "Unknown type name: %s", name)
}

// buildTo makes $toInt and its like.
func buildTo(_ *parser, name string, operands []node) (node, error) {
	if len(operands) != 1 {
		return nil, mongoerror.New(50723, "%s requires a single argument, got %d", name, len(operands))
	}
	target := map[string]bsoncore.Type{
		"$toBool": bsoncore.TypeBoolean, "$toDate": bsoncore.TypeDateTime, "$toDecimal": bsoncore.TypeDecimal128,
		"$toDouble": bsoncore.TypeDouble, "$toInt": bsoncore.TypeInt32, "$toLong": bsoncore.TypeInt64,
		"$toObjectId": bsoncore.TypeObjectID, "$toString": bsoncore.TypeString,
	}[name]
	return &unary{operands[0], func(st *state, v bsoncore.Value) (bsoncore.Value, error) {
		if isNullish(v) {
			return null(), nil
		}
		return convert(st, v, target)
	}}, nil
}

func failure(format string, args ...any) error {
	return mongoerror.New(mongoerror.ConversionFailure, format, args...)
}

func errUnsupported(v bsoncore.Value, target bsoncore.Type) error {
	return failure("Unsupported conversion from %s to %s in $convert with no onError value", typeName(v), typeName(bsoncore.Value{Type: target}))
}

// convert converts a value that is not null.
func convert(st *state, v bsoncore.Value, target bsoncore.Type) (bsoncore.Value, error) {
	switch target {
	case bsoncore.TypeBoolean:
		return st.boolean(v.Type != bsoncore.TypeBoolean && !isNumeric(v) || Truthy(v)), nil
	case bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		n, err := toNumber(v, target)
		if err != nil {
			return bsoncore.Value{}, err
		}
		return st.number(n)
	case bsoncore.TypeDateTime:
		return toDate(st, v)
	case bsoncore.TypeString:
		return toString(st, v)
	case bsoncore.TypeObjectID:
		return toObjectID(st, v)
	}
	return bsoncore.Value{}, errUnsupported(v, target)
}

func isNumeric(v bsoncore.Value) bool {
	_, ok := number.Of(v)
	return ok
}

func toString(st *state, v bsoncore.Value) (bsoncore.Value, error) {
	switch v.Type {
	case bsoncore.TypeString:
		return v, nil
	case bsoncore.TypeBoolean:
		return st.text(strconv.FormatBool(Truthy(v)))
	case bsoncore.TypeDateTime:
		s, err := isoDate(millis(v))
		if err != nil {
			return bsoncore.Value{}, err
		}
		return st.text(s)
	case bsoncore.TypeObjectID:
		id, _ := v.ObjectIDOK()
		return st.text(hex.EncodeToString(id[:]))
	}
	if n, ok := number.Of(v); ok {
		return st.text(numberText(n))
	}
	return bsoncore.Value{}, errUnsupported(v, bsoncore.TypeString)
}

func toObjectID(st *state, v bsoncore.Value) (bsoncore.Value, error) {
	switch v.Type {
	case bsoncore.TypeObjectID:
		return v, nil
	case bsoncore.TypeString:
		b, err := st.alloc(12)
		if err != nil {
			return bsoncore.Value{}, err
		}
		s := stringOf(v)
		if len(s) != 24 {
			return bsoncore.Value{}, failure("Failed to parse objectId '%s' in $convert with no onError value: Invalid string length for parsing to OID, expected 24 but found %d", s, len(s))
		}
		if _, err := hex.Decode(b, s); err != nil {
			return bsoncore.Value{}, failure("Failed to parse objectId '%s' in $convert with no onError value: Invalid character found in hex string", s)
		}
		return bsoncore.Value{Type: bsoncore.TypeObjectID, Data: b}, nil
	}
	return bsoncore.Value{}, errUnsupported(v, bsoncore.TypeObjectID)
}

func toDate(st *state, v bsoncore.Value) (bsoncore.Value, error) {
	switch v.Type {
	case bsoncore.TypeDateTime:
		return v, nil
	case bsoncore.TypeTimestamp, bsoncore.TypeObjectID:
		ms, err := dateOf(v)
		if err != nil {
			return bsoncore.Value{}, err
		}
		return st.date(ms)
	case bsoncore.TypeString:
		ms, err := parseDate(string(stringOf(v)), time.UTC, false)
		if err != nil {
			return bsoncore.Value{}, err
		}
		return st.date(ms)
	case bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		n, err := toNumber(v, bsoncore.TypeInt64)
		if err != nil {
			return bsoncore.Value{}, err
		}
		ms, _ := n.Int64()
		return st.date(ms)
	}
	return bsoncore.Value{}, errUnsupported(v, bsoncore.TypeDateTime)
}

// toNumber converts to a type of numbers; fractions are cut off.
func toNumber(v bsoncore.Value, target bsoncore.Type) (number.Number, error) {
	n, ok := number.Of(v)
	switch {
	case ok:
		return narrow(n, target)
	case v.Type == bsoncore.TypeBoolean:
		i := int32(0)
		if Truthy(v) {
			i = 1
		}
		return widenInt(i, target), nil
	case v.Type == bsoncore.TypeString:
		return parseNumber(string(stringOf(v)), target)
	case v.Type == bsoncore.TypeDateTime && target != bsoncore.TypeInt32:
		return number.Int64(millis(v)).Widen(target), nil
	}
	return n, errUnsupported(v, target)
}

func widenInt(i int32, target bsoncore.Type) number.Number {
	if target == bsoncore.TypeInt32 {
		return number.Int32(i)
	}
	return number.Int32(i).Widen(target)
}

func narrow(n number.Number, target bsoncore.Type) (number.Number, error) {
	switch target {
	case bsoncore.TypeDecimal128:
		return n.Widen(target), nil
	case bsoncore.TypeDouble:
		if n.IsDecimal() {
			f := n.Float64()
			if math.IsInf(f, 0) && !n.IsInf() || f == 0 && !n.IsZero() {
				return n, failure("Conversion would overflow target type in $convert with no onError value: %s", n)
			}
			return number.Double(f), nil
		}
		return n.Widen(target), nil
	}
	switch {
	case n.IsNaN():
		return n, failure("Attempt to convert NaN value to integer type in $convert with no onError value")
	case n.IsInf():
		return n, failure("Attempt to convert infinity value to integer type in $convert with no onError value")
	}
	whole := n
	if n.IsDecimal() { // without its fraction it may fit
		whole = number.FromDecimal(n.Decimal().Quantize(0, number.Truncate))
	}
	i, exact := whole.Int64()
	f := n.Float64()
	beyond := n.Type() == bsoncore.TypeDouble && target == bsoncore.TypeInt32 && (f > math.MaxInt32 || f < math.MinInt32) // with its fraction
	if beyond || !exact && (i == math.MaxInt64 || i == math.MinInt64) || target == bsoncore.TypeInt32 && i != int64(int32(i)) {
		return n, failure("Conversion would overflow target type in $convert with no onError value: %s", n)
	}
	if target == bsoncore.TypeInt32 {
		return number.Int32(int32(i)), nil
	}
	return number.Int64(i), nil
}

// parseNumber reads a number from a string, which must be nothing else.
func parseNumber(s string, target bsoncore.Type) (n number.Number, err error) {
	reason := "Failed to parse string to decimal"
	if rest := strings.TrimLeft(s, "+-"); strings.HasPrefix(rest, "0x") {
		return n, failure("Illegal hexadecimal input in $convert with no onError value: %s", s)
	}
	switch target {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		bits := 64
		if target == bsoncore.TypeInt32 {
			bits = 32
		}
		i, err := strconv.ParseInt(s, 10, bits)
		if err == nil && target == bsoncore.TypeInt32 {
			return number.Int32(int32(i)), nil
		}
		if err == nil {
			return number.Int64(i), nil
		}
		reason = "Did not consume whole string."
	case bsoncore.TypeDouble:
		f, err := strconv.ParseFloat(s, 64)
		if err == nil && !strings.ContainsAny(s, "_xX") && !(f == 0 && strings.ContainsAny(mantissa(s), "123456789")) {
			return number.Double(f), nil
		}
		reason = "Did not consume whole string."
	default:
		d, ok := number.ParseDecimal(s)
		switch {
		case !ok:
		case d.IsInf() && strings.ContainsAny(s, "0123456789"):
			reason = "Conversion from string to decimal would overflow"
		case d.Sign() == 0 && !d.IsNaN() && strings.ContainsAny(mantissa(s), "123456789"):
			reason = "Conversion from string to decimal would underflow"
		default:
			return number.FromDecimal(d), nil
		}
	}
	if s == "" {
		reason = "Empty string"
	}
	return n, failure("Failed to parse number '%s' in $convert with no onError value: %s", s, reason)
}

// mantissa returns a number without its exponent.
func mantissa(s string) string {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return s[:i]
	}
	return s
}
