package update

import (
	"encoding/binary"
	"math"
	"math/bits"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// arithmetic is $inc and $mul. The result's type is the wider of both; an int32 grows into an int64, and an int64 that would
// overflow is refused.
func (r *run) arithmetic(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	if old.Type == 0 {
		if op.kind == opInc {
			return r.put(dst, op.value, 0)
		}
		old = bsoncore.Value{Type: bsoncore.TypeInt32, Data: make([]byte, 4)}
		out, t, err := r.combine(dst, op, old)
		r.changed = true
		return out, t, err
	}
	if !isNumber(old.Type) {
		name := "$inc"
		if op.kind == opMul {
			name = "$mul"
		}
		return dst, 0, mongoerror.New(mongoerror.TypeMismatch,
			"Cannot apply %s to a value of non-numeric type. %s has the field '%s' of non-numeric type %s",
			name, r.identity("{no id}", true), r.here(), typeName(old.Type))
	}
	return r.combine(dst, op, old)
}

func (r *run) combine(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	a, b := old, op.value
	switch {
	case a.Type == bsoncore.TypeDecimal128 || b.Type == bsoncore.TypeDecimal128:
		return r.combineDecimal(dst, op, old)
	case a.Type == bsoncore.TypeDouble || b.Type == bsoncore.TypeDouble:
		x, y := double(a), double(b)
		if op.kind == opInc {
			x += y
		} else {
			x *= y
		}
		return r.number(dst, bsoncore.TypeDouble, math.Float64bits(x), old)
	}
	x, y := a.AsInt64(), b.AsInt64()
	sum, ok := x+y, true
	if op.kind == opInc {
		ok = (sum > x) == (y > 0)
	} else {
		sum, ok = multiply(x, y)
	}
	if !ok {
		name := "$inc"
		if op.kind == opMul {
			name = "$mul"
		}
		return dst, 0, mongoerror.New(mongoerror.BadValue, "Failed to apply %s operations to current value (%s) for document %s",
			name, showNumber(old), r.identity("{no id}", true))
	}
	if a.Type == bsoncore.TypeInt32 && b.Type == bsoncore.TypeInt32 && sum == int64(int32(sum)) {
		return r.number(dst, bsoncore.TypeInt32, uint64(uint32(int32(sum))), old)
	}
	return r.number(dst, bsoncore.TypeInt64, uint64(sum), old)
}

// multiply returns x*y, and whether it fits.
func multiply(x, y int64) (int64, bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	if high != 0 {
		return 0, false
	}
	if (x < 0) != (y < 0) {
		return -int64(low), low <= 1<<63
	}
	return int64(low), low < 1<<63
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func double(v bsoncore.Value) float64 {
	if v.Type == bsoncore.TypeDouble {
		return math.Float64frombits(binary.LittleEndian.Uint64(v.Data))
	}
	return float64(v.AsInt64())
}

// showNumber returns a number with its type, as messages have it.
func showNumber(v bsoncore.Value) string {
	shown := showElement("", v)[2:]
	switch v.Type {
	case bsoncore.TypeInt32:
		return "(NumberInt)" + shown
	case bsoncore.TypeInt64:
		return "(NumberLong)" + shown
	}
	return shown
}

func showDecimal(high, low uint64) string { return bson.NewDecimal128(high, low).String() }

// decimalInteger returns a decimal that is an int64.
func decimalInteger(v bsoncore.Value) (int64, bool) {
	high, low := v.Decimal128()
	n, exponent, err := bson.NewDecimal128(high, low).BigInt()
	if err != nil || !n.IsInt64() {
		return 0, false
	}
	x := n.Int64()
	for ; exponent < 0 && x%10 == 0; exponent++ {
		x /= 10
	}
	for ; exponent > 0; exponent-- {
		var ok bool
		if x, ok = multiply(x, 10); !ok {
			return 0, false
		}
	}
	return x, exponent == 0
}

func (r *run) combineDecimal(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	return dst, 0, mongoerror.New(mongoerror.BadValue, "decimals: not yet")
}
