package execute_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
)

// extreme makes a value at an end of its type, or next to one of another type. There are few of each, so that equal ones meet.
func (f *forced) extreme() any {
	number := func(s string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			f.t.Fatal(err)
		}
		return d
	}
	switch f.rnd.IntN(4) {
	case 0: // numbers that only some of the types can tell apart
		return pick[any](f.rnd, int64(1<<53), int64(1<<53+1), float64(1<<53), number("9007199254740992.5"), number("9007199254740993"),
			int64(math.MaxInt64), float64(1<<63), number("9223372036854775807.5"), int64(math.MinInt64), float64(math.MinInt64))
	case 1:
		return pick[any](f.rnd, 0.1, number("0.1"), number("-0"), number("NaN"), number("Infinity"), number("-Infinity"), number("1E+6144"),
			number("1E-6176"), math.MaxFloat64, math.SmallestNonzeroFloat64, number("2.00"), int64(2), -0.5, int32(-1))
	case 2:
		return pick[any](f.rnd, "a\x00", "a\x00b", "\xc3\xa9", "e", "\U0010ffff", "10", "9", bson.Symbol("a"), bson.JavaScript("a"))
	}
	return pick[any](f.rnd, bson.Binary{}, bson.Binary{Data: []byte{1}}, bson.Binary{Subtype: 4, Data: []byte{1}}, bson.DateTime(math.MinInt64), bson.DateTime(math.MaxInt64),
		bson.DateTime(-1), bson.Timestamp{}, bson.Timestamp{T: math.MaxUint32, I: math.MaxUint32}, bson.ObjectID{}, bson.Regex{Pattern: "^a", Options: "i"},
		bson.DBPointer{DB: "a"}, bson.CodeWithScope{Code: "a", Scope: bson.D{}})
}

// compared makes a comparison for $expr, with a variable here and there.
func (f *forced) compared(depth int) bson.D {
	if depth > 0 && f.rnd.IntN(4) == 0 {
		return bson.D{{Key: pick(f.rnd, "$and", "$and", "$or"), Value: bson.A{f.compared(depth - 1), f.compared(depth - 1)}}}
	}
	operands := bson.A{"$" + f.path(), pick[any](f.rnd, bson.D{{Key: "$literal", Value: f.value(1)}}, "$$v", "$$w", bson.D{{Key: "$add", Value: bson.A{1, "$$w"}}})}
	if f.rnd.IntN(2) == 0 {
		slices.Reverse(operands)
	}
	return bson.D{{Key: pick(f.rnd, "$eq", "$eq", "$gt", "$gte", "$lt", "$lte", "$ne"), Value: operands}}
}

// variables are those that expressions may have.
func (f *forced) variables() []expression.Variable {
	doc := encode(f.t, bson.D{{Key: "v", Value: f.value(1)}, {Key: "w", Value: int32(f.rnd.IntN(5))}})
	return []expression.Variable{{Name: "v", Value: doc.Lookup("v")}, {Name: "w", Value: doc.Lookup("w")}}
}

// nested makes a condition of conditions on one value.
func (f *forced) nested() any {
	switch f.rnd.IntN(6) {
	case 0:
		return bson.D{{Key: pick(f.rnd, "$in", "$nin"), Value: bson.A{bson.Regex{Pattern: pick(f.rnd, "^a", "^ab", "b")}, f.value(1), f.value(1)}}}
	case 1:
		return bson.D{{Key: "$not", Value: bson.D{{Key: pick(f.rnd, "$in", "$nin"), Value: bson.A{f.value(1), f.value(1)}}}}}
	case 2:
		return bson.D{{Key: "$not", Value: pick[any](f.rnd, bson.Regex{Pattern: "^a"}, bson.D{{Key: "$exists", Value: true}}, bson.D{{Key: "$type", Value: "number"}},
			bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "$gt", Value: f.scalarNotRegex()}}}})}}
	case 3:
		return bson.D{{Key: "$elemMatch", Value: bson.D{{Key: pick(f.rnd, "$in", "$nin"), Value: bson.A{f.value(1), f.value(1), nil}}}}}
	case 4:
		inner := bson.D{{Key: pick(f.rnd, "b", "c"), Value: bson.D{{Key: "$elemMatch", Value: bson.D{{Key: pick(f.rnd, "$gte", "$lte", "$ne"), Value: f.scalarNotRegex()}}}}}}
		if f.rnd.IntN(2) == 0 {
			inner = append(inner, bson.E{Key: "$or", Value: bson.A{bson.D{{Key: "b", Value: f.operator(0)}}, bson.D{{Key: "c", Value: f.operator(0)}}}})
		}
		return bson.D{{Key: "$elemMatch", Value: inner}}
	}
	low := f.scalarNotRegex()
	return bson.D{{Key: pick(f.rnd, "$gt", "$gte"), Value: low}, {Key: pick(f.rnd, "$lt", "$lte", "$ne"), Value: f.scalarNotRegex()}}
}

// between makes a query that says which index to use, and between which of its keys, mostly in their order. ok is false when there is no such index, or no key
// between.
func (f *forced) between(q *plan.Query) (ok bool) {
	d := f.c.Indexes[f.rnd.IntN(len(f.c.Indexes))].Definition
	low, high := bson.D{}, bson.D{}
	for _, c := range d.Components {
		if c.Wildcard || c.Kind > index.Descending {
			return false
		}
		low, high = append(low, bson.E{Key: c.Path, Value: f.value(1)}), append(high, bson.E{Key: c.Path, Value: f.value(1)})
	}
	q.Min, q.Max = encode(f.t, low), encode(f.t, high)
	switch {
	case f.rnd.IntN(4) == 0:
		q.Min = nil
	case f.rnd.IntN(4) == 0:
		q.Max = nil
	case bytes.Compare(bound(d, q.Min), bound(d, q.Max)) > 0:
		q.Min, q.Max = q.Max, q.Min
	}
	if lower, upper := f.span(d, q); bytes.Compare(lower, upper) >= 0 {
		return false
	}
	q.Hint = bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, d.Name)}
	if f.rnd.IntN(2) == 0 {
		q.Sort = d.Keys
	}
	return true
}

// bound encodes a bound of an index.
func bound(d *index.Definition, spec bsoncore.Document) (key []byte) {
	elements, _ := spec.Elements()
	for i, e := range elements {
		key = keyenc.Append(key, e.Value(), d.Components[i].Kind == index.Descending, d.Collation)
	}
	return key
}

// inside reports whether an index has a key of a document between the bounds of a query.
func (f *forced) inside(q *plan.Query, doc bsoncore.Document) bool {
	if q.Min == nil && q.Max == nil {
		return true
	}
	i := slices.IndexFunc(f.c.Indexes, func(x execute.Index) bool { return x.Definition.Name == q.Hint.StringValue() })
	d := f.c.Indexes[i].Definition
	if err := d.Append(&f.entries, path.Document(doc)); err != nil {
		f.t.Fatal(err)
	}
	lower, upper := f.span(d, q)
	return slices.ContainsFunc(f.entries.Keys, func(key []byte) bool {
		return bytes.Compare(key, lower) >= 0 && bytes.Compare(key, upper) < 0
	})
}

// span returns the keys of an index between which a query looks: the ends of all keys stand for a bound that it has not.
func (f *forced) span(d *index.Definition, q *plan.Query) (lower, upper []byte) {
	first, last := bson.D{}, bson.D{}
	for _, c := range d.Components {
		ends := []any{bson.MinKey{}, bson.MaxKey{}}
		first = append(first, bson.E{Key: c.Path, Value: ends[c.Kind]})
		last = append(last, bson.E{Key: c.Path, Value: ends[1-c.Kind]})
	}
	lower, upper = bound(d, encode(f.t, first)), bound(d, encode(f.t, last))
	if q.Min != nil {
		lower = bound(d, q.Min)
	}
	if q.Max != nil {
		upper = bound(d, q.Max)
	}
	return lower, upper
}

// asked is what a query asks, as text.
func asked(q *plan.Query) string {
	text := fmt.Sprintf("%s collation %t", q.FilterSpec, q.Collation != nil)
	if q.Min != nil || q.Max != nil {
		text += fmt.Sprintf(" hint %s min %s max %s", q.Hint, q.Min, q.Max)
	}
	return text
}
