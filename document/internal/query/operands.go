package query

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// truthy is how switches like $exists see their operand.
func truthy(v bsoncore.Value) bool {
	switch v.Type {
	case bsoncore.TypeBoolean:
		return v.Boolean()
	case bsoncore.TypeNull, bsoncore.TypeUndefined, 0:
		return false
	}
	n, ok := number.Of(v)
	return !ok || !n.IsZero()
}

// floatOf returns the nearest double of a number.
func floatOf(v bsoncore.Value) (float64, bool) {
	n, ok := number.Of(v)
	return n.Float64(), ok
}

// integerOf returns the integer that a number is, of whatever type, or else what is wrong with it.
func integerOf(name string, v bsoncore.Value) (i int64, problem string) {
	n, ok := number.Of(v)
	if !ok {
		return 0, "Expected a number in: " + notation.Element(name, v)
	}
	i, exact := n.Int64()
	switch {
	case exact:
		return i, ""
	case n.IsNaN():
		return 0, "Expected an integer, but found NaN in: " + notation.Element(name, v)
	case n.IsInf() || math.Abs(n.Float64()) >= 1<<63:
		return 0, "Cannot represent as a 64-bit integer: " + notation.Element(name, v)
	}
	return 0, "Expected an integer: " + notation.Element(name, v)
}

// naturalOf is integerOf for what must not be negative.
func naturalOf(name string, v bsoncore.Value) (int64, string) {
	i, problem := integerOf(name, v)
	if problem == "" && i < 0 {
		problem = "Expected a non-negative number in: " + notation.Element(name, v)
	}
	return i, problem
}

// smallOf is naturalOf for what must fit into 32 bits.
func smallOf(name string, v bsoncore.Value) (int64, string) {
	i, problem := naturalOf(name, v)
	if problem == "" && i > math.MaxInt32 {
		problem = fmt.Sprintf("Cannot represent %s in an int", notation.Element(name, v))
	}
	return i, problem
}

func parseSize(name string, v bsoncore.Value) (Node, error) {
	n, problem := smallOf("$size", v)
	if problem != "" {
		return nil, badValue("Failed to parse $size. %s", problem)
	}
	return &Size{Path: name, N: n}, nil
}

func parseMod(name string, v bsoncore.Value) (Node, error) {
	if v.Type != bsoncore.TypeArray {
		return nil, badValue("malformed mod, needs to be an array")
	}
	operands, _ := bsoncore.Array(v.Data).Values()
	switch {
	case len(operands) == 1 && !order.IsNumber(operands[0].Type):
		return nil, badValue("malformed mod, divisor not a number")
	case len(operands) < 2:
		return nil, badValue("malformed mod, not enough elements")
	case len(operands) > 2:
		return nil, badValue("malformed mod, too many elements")
	}
	var numbers [2]int64
	for i, what := range [2]string{"divisor", "remainder"} {
		n, ok := number.Of(operands[i])
		if !ok {
			return nil, badValue("malformed mod, %s not a number", what)
		}
		var problem string
		if numbers[i], problem = truncate(n); problem != "" {
			return nil, badValue("malformed mod, %s value is invalid :: caused by :: %s", what, problem)
		}
	}
	if numbers[0] == 0 {
		return nil, badValue("divisor cannot be 0")
	}
	return &Mod{Path: name, Divisor: numbers[0], Remainder: numbers[1]}, nil
}

// truncate returns a number without its fraction, or what is wrong with it.
func truncate(n number.Number) (int64, string) {
	if n.IsNaN() || n.IsInf() {
		return 0, "Unable to coerce NaN/Inf to integral type"
	}
	i, exact := n.Int64()
	if !exact && (i == math.MaxInt64 || i == math.MinInt64) {
		return 0, "Out of bounds coercing to integral value"
	}
	return i, ""
}

// parseBits parses positions: a mask, a list of numbers, or binary data.
func parseBits(name, op string, what BitsOp, v bsoncore.Value) (Node, error) {
	b := &Bits{Path: name, Op: what}
	switch {
	case v.Type == bsoncore.TypeArray:
		for e := path.ElementsOf(v.Data); ; {
			position, v, ok := e.Next()
			if !ok {
				break
			}
			n, problem := smallOf(string(position), v)
			if problem != "" {
				return nil, badValue("Failed to parse bit position. %s", problem)
			}
			b.Positions = append(b.Positions, uint32(n))
		}
	case v.Type == bsoncore.TypeBinary:
		_, data := v.Binary()
		for i := range len(data) * 8 {
			if data[i/8]>>(i%8)&1 != 0 {
				b.Positions = append(b.Positions, uint32(i))
			}
		}
	default:
		if _, ok := number.Of(v); !ok {
			return nil, badValue("%s takes an Array, a number, or a BinData but received: %s", name, notation.Element(op, v))
		}
		mask, problem := naturalOf(op, v)
		if problem != "" {
			return nil, mongoerror.New(mongoerror.FailedToParse, "%s", problem)
		}
		for i := range 63 {
			if mask>>i&1 != 0 {
				b.Positions = append(b.Positions, uint32(i))
			}
		}
	}
	slices.Sort(b.Positions)
	b.Positions = slices.Compact(b.Positions)
	for _, i := range b.Positions {
		b.mask |= 1 << min(i, 63)
	}
	return b, nil
}

// typeNamed returns the type of an alias, for $type and bsonType.
func typeNamed(name string) (bsoncore.Type, bool) {
	switch name {
	case "double":
		return bsoncore.TypeDouble, true
	case "string":
		return bsoncore.TypeString, true
	case "object":
		return bsoncore.TypeEmbeddedDocument, true
	case "array":
		return bsoncore.TypeArray, true
	case "binData":
		return bsoncore.TypeBinary, true
	case "undefined":
		return bsoncore.TypeUndefined, true
	case "objectId":
		return bsoncore.TypeObjectID, true
	case "bool":
		return bsoncore.TypeBoolean, true
	case "date":
		return bsoncore.TypeDateTime, true
	case "null":
		return bsoncore.TypeNull, true
	case "regex":
		return bsoncore.TypeRegex, true
	case "dbPointer":
		return bsoncore.TypeDBPointer, true
	case "javascript":
		return bsoncore.TypeJavaScript, true
	case "symbol":
		return bsoncore.TypeSymbol, true
	case "javascriptWithScope":
		return bsoncore.TypeCodeWithScope, true
	case "int":
		return bsoncore.TypeInt32, true
	case "timestamp":
		return bsoncore.TypeTimestamp, true
	case "long":
		return bsoncore.TypeInt64, true
	case "decimal":
		return bsoncore.TypeDecimal128, true
	case "minKey":
		return bsoncore.TypeMinKey, true
	case "maxKey":
		return bsoncore.TypeMaxKey, true
	}
	return 0, false
}

// typeNumbered returns the type of a number in $type.
func typeNumbered(f float64) (bsoncore.Type, bool) {
	switch {
	case f == -1:
		return bsoncore.TypeMinKey, true
	case f == 127:
		return bsoncore.TypeMaxKey, true
	case f >= 1 && f <= 19 && f == math.Trunc(f):
		return bsoncore.Type(f), true
	}
	return 0, false
}

func parseType(name string, v bsoncore.Value) (Node, error) {
	t := &Type{Path: name}
	if v.Type != bsoncore.TypeArray {
		return t, t.add(v)
	}
	for e := path.ElementsOf(v.Data); ; {
		_, v, ok := e.Next()
		if !ok {
			break
		}
		if err := t.add(v); err != nil {
			return nil, err
		}
	}
	if len(t.Types) == 0 {
		return nil, mongoerror.New(mongoerror.FailedToParse, "%s must match at least one type", name)
	}
	slices.Sort(t.Types)
	t.Types = slices.Compact(t.Types)
	return t, nil
}

// add adds what one operand of $type means.
func (t *Type) add(v bsoncore.Value) error {
	if v.Type == bsoncore.TypeString {
		alias := v.StringValue()
		if alias == "number" {
			t.Number = true
			t.Types = append(t.Types, bsoncore.TypeDouble, bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDecimal128)
			return nil
		}
		found, ok := typeNamed(alias)
		switch {
		case ok:
			t.Types = append(t.Types, found)
			return nil
		case alias == "missing":
			return badValue("'missing' is not a legal type name. To query for non-existence of a field, use {$exists:false}.")
		}
		return badValue("Unknown type name alias: %s", alias)
	}
	f, ok := floatOf(v)
	if !ok {
		return mongoerror.New(mongoerror.TypeMismatch, "type must be represented as a number or a string")
	}
	if f == 0 {
		return badValue("Invalid numerical type code: 0. Instead use {$exists:false}.")
	}
	found, ok := typeNumbered(f)
	if !ok {
		return badValue("Invalid numerical type code: %s", strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)))
	}
	t.Types = append(t.Types, found)
	return nil
}
