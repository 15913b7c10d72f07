package index

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/query"
)

func valueOf(t bsoncore.Type, data []byte) bsoncore.Value { return bsoncore.Value{Type: t, Data: data} }

func stringValue(s string) bsoncore.Value {
	return valueOf(bsoncore.TypeString, bsoncore.AppendString(nil, s))
}

func doubleValue(f float64) bsoncore.Value {
	return valueOf(bsoncore.TypeDouble, bsoncore.AppendDouble(nil, f))
}

// ends are the lowest and the highest value that a condition on a class may match. The higher one may be the lowest value of the next
// class, which is not within.
type ends struct {
	low, high bsoncore.Value
	open      bool
}

// endsOf returns the ends of the class of a type; ok is false for classes of one value and for arrays.
func endsOf(t bsoncore.Type) (e ends, ok bool) {
	const empty = "\x05\x00\x00\x00\x00"
	switch order.ClassOf(t) {
	case order.ClassNumber:
		e = ends{low: doubleValue(math.Inf(-1)), high: doubleValue(math.Inf(1))}
	case order.ClassString:
		e = ends{low: stringValue(""), high: emptyObject(), open: true}
	case order.ClassObject:
		e = ends{low: emptyObject(), high: valueOf(bsoncore.TypeArray, []byte(empty)), open: true}
	case order.ClassBinary:
		e = ends{low: valueOf(bsoncore.TypeBinary, bsoncore.AppendBinary(nil, 0, nil)), high: objectID(0), open: true}
	case order.ClassObjectID:
		e = ends{low: objectID(0), high: objectID(0xff)}
	case order.ClassBool:
		e = ends{low: valueOf(t, []byte{0}), high: valueOf(t, []byte{1})}
	case order.ClassDate:
		e = ends{low: valueOf(t, bsoncore.AppendDateTime(nil, math.MinInt64)), high: valueOf(t, bsoncore.AppendDateTime(nil, math.MaxInt64))}
	case order.ClassTimestamp:
		e = ends{low: valueOf(t, bsoncore.AppendTimestamp(nil, 0, 0)), high: valueOf(t, bsoncore.AppendTimestamp(nil, math.MaxUint32, math.MaxUint32))}
	case order.ClassRegex:
		e = ends{low: valueOf(t, bsoncore.AppendRegex(nil, "", "")), high: valueOf(bsoncore.TypeDBPointer, bsoncore.AppendDBPointer(nil, "", [12]byte{})), open: true}
	case order.ClassDBPointer:
		e = ends{low: valueOf(t, bsoncore.AppendDBPointer(nil, "", [12]byte{})), high: valueOf(bsoncore.TypeJavaScript, bsoncore.AppendJavaScript(nil, "")), open: true}
	case order.ClassCode:
		e = ends{low: valueOf(t, bsoncore.AppendJavaScript(nil, "")), high: emptyScope(), open: true}
	case order.ClassCodeWithScope:
		e = ends{low: emptyScope(), high: maxKey(), open: true}
	default:
		return ends{}, false
	}
	return e, true
}

func minKey() bsoncore.Value    { return bsoncore.Value{Type: bsoncore.TypeMinKey} }
func maxKey() bsoncore.Value    { return bsoncore.Value{Type: bsoncore.TypeMaxKey} }
func undefined() bsoncore.Value { return bsoncore.Value{Type: bsoncore.TypeUndefined} }
func null() bsoncore.Value      { return bsoncore.Value{Type: bsoncore.TypeNull} }

func emptyObject() bsoncore.Value {
	return valueOf(bsoncore.TypeEmbeddedDocument, bsoncore.BuildDocument(nil))
}

func emptyScope() bsoncore.Value {
	return valueOf(bsoncore.TypeCodeWithScope, bsoncore.AppendCodeWithScope(nil, "", bsoncore.BuildDocument(nil)))
}

func objectID(fill byte) bsoncore.Value {
	id := make([]byte, 12)
	for i := range id {
		id[i] = fill
	}
	return valueOf(bsoncore.TypeObjectID, id)
}

// OfType returns what {$type: t} may match: all values of the class of t, without NaN for numbers of no matter which type. It is
// exact where the class has one type and every value of it is in the index as it is.
func (s Space) OfType(t bsoncore.Type) Bounds {
	if s.Hashed || t == bsoncore.TypeArray {
		return s.all()
	}
	b := s.class(t)
	switch order.ClassOf(t) {
	case order.ClassNumber:
		nan := s.point(doubleValue(math.NaN()))
		b.Intervals = Union([]Interval{nan}, b.Intervals)
		b.Exact = false
	case order.ClassString, order.ClassNull, order.ClassUndefined:
		b.Exact = false
	}
	return b
}

// class returns all values of a type's class that compare with one another.
func (s Space) class(t bsoncore.Type) Bounds {
	e, ok := endsOf(t)
	if !ok {
		return Bounds{Intervals: []Interval{s.point(bsoncore.Value{Type: t})}, Exact: true}
	}
	iv, _ := s.between(e.low, e.high, true, !e.open)
	return Bounds{Intervals: []Interval{iv}, Exact: true}
}

// compare is Compare for an ordered component and another operator than equality.
func (s Space) compare(op query.Op, v bsoncore.Value) Bounds {
	orEqual := op == query.Lte || op == query.Gte
	below := op == query.Lt || op == query.Lte
	switch order.ClassOf(v.Type) {
	case order.ClassArray:
		return s.all() // an array is in the index by its elements
	case order.ClassNull, order.ClassUndefined:
		if orEqual {
			return s.Null()
		}
		return s.None()
	case order.ClassMinKey, order.ClassMaxKey:
		return s.compareExtreme(v, below, orEqual)
	case order.ClassNumber:
		if order.Equal(v, doubleValue(math.NaN()), nil) {
			if orEqual {
				return s.Eq(v)
			}
			return s.None()
		}
	}
	e, ok := endsOf(v.Type)
	if !ok {
		return s.all()
	}
	var iv Interval
	if below {
		iv, ok = s.between(e.low, v, true, orEqual)
	} else {
		iv, ok = s.between(v, e.high, orEqual, !e.open)
	}
	if !ok {
		return s.None()
	}
	return Bounds{Intervals: []Interval{iv}, Exact: true}
}

// compareExtreme is compare with MinKey and MaxKey, which compare with values of all classes: an array of MinKey alone is above MinKey,
// though its key is not, so that only the ends themselves narrow anything.
func (s Space) compareExtreme(v bsoncore.Value, below, orEqual bool) Bounds {
	if below != (v.Type == bsoncore.TypeMinKey) {
		return s.all()
	}
	if !orEqual {
		return s.None()
	}
	return Bounds{Intervals: []Interval{s.point(v)}}
}
