package update

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
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
	if !order.IsNumber(old.Type) {
		name := "$inc"
		if op.kind == opMul {
			name = "$mul"
		}
		return dst, 0, mongoerror.New(mongoerror.TypeMismatch,
			"Cannot apply %s to a value of non-numeric type. %s has the field '%s' of non-numeric type %s",
			name, r.identity("{no id}", true), r.here(), mongoerror.TypeName(old.Type))
	}
	return r.combine(dst, op, old)
}

func (r *run) combine(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	a, _ := number.Of(old)
	b, _ := number.Of(op.value)
	name, combine := "$inc", number.AddExact
	if op.kind == opMul {
		name, combine = "$mul", number.MultiplyExact
	}
	result, ok := combine(a, b)
	if !ok {
		return dst, 0, mongoerror.New(mongoerror.BadValue, "Failed to apply %s operations to current value (%s) for document %s",
			name, showNumber(old), r.identity("{no id}", true))
	}
	v := bsoncore.Value{Type: result.Type(), Data: result.Append(r.digits[:0])}
	if v.Type == old.Type && order.Equal(v, old, nil) && !result.IsNaN() {
		return append(dst, old.Data...), old.Type, nil
	}
	r.changed = true
	return append(dst, v.Data...), v.Type, nil
}

// showNumber returns a number with its type, as messages have it.
func showNumber(v bsoncore.Value) string {
	shown := notation.Brief(v)
	switch v.Type {
	case bsoncore.TypeInt32:
		return "(NumberInt)" + shown
	case bsoncore.TypeInt64:
		return "(NumberLong)" + shown
	}
	return shown
}
