package index

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/query"
)

func value(t testing.TB, v any) bsoncore.Value {
	t.Helper()
	typ, data, err := bson.MarshalValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return bsoncore.Value{Type: bsoncore.Type(typ), Data: data}
}

func shown(list []Interval) string {
	parts := make([]string, len(list))
	for i := range list {
		parts[i] = list[i].String()
	}
	return strings.Join(parts, " ")
}

// TestBoundsAreThoseOfMongoDB has bounds as a MongoDB server's explain shows them.
func TestBoundsAreThoseOfMongoDB(t *testing.T) {
	var s Space
	for _, test := range []struct {
		name  string
		got   Bounds
		want  string
		exact bool
	}{
		{"a: null", s.Eq(value(t, bson.Null{})), "[undefined, undefined] [null, null]", false},
		{"a: []", s.Eq(value(t, bson.A{})), "[undefined, undefined] [[], []]", false},
		{"a: [1, 2]", s.Eq(value(t, bson.A{1, 2})), "[1, 1] [[ 1, 2 ], [ 1, 2 ]]", false},
		{"$lt 1", s.Compare(query.Lt, value(t, 1)), "[-inf.0, 1)", true},
		{"$gt 1.5", s.Compare(query.Gt, value(t, 1.5)), "(1.5, inf.0]", true},
		{"$gt a", s.Compare(query.Gt, value(t, "a")), `("a", {})`, true},
		{"$lte a", s.Compare(query.Lte, value(t, "a")), `["", "a"]`, true},
		{"$lt {z: 1}", s.Compare(query.Lt, value(t, bson.D{{Key: "z", Value: 1}})), "[{}, { z: 1 })", true},
		{"$lt null", s.Compare(query.Lt, value(t, bson.Null{})), "", true},
		{"$lte null", s.Compare(query.Lte, value(t, bson.Null{})), "[undefined, undefined] [null, null]", false},
		{"$gt MinKey", s.Compare(query.Gt, minKey()), "[MinKey, MaxKey]", false},
		{"$gte MaxKey", s.Compare(query.Gte, maxKey()), "[MaxKey, MaxKey]", false},
		{"$lt MaxKey", s.Compare(query.Lt, maxKey()), "[MinKey, MaxKey]", false},
		{"$gte []", s.Compare(query.Gte, value(t, bson.A{})), "[MinKey, MaxKey]", false},
		{"$lte false", s.Compare(query.Lte, value(t, false)), "[false, false]", true},
		{"$lte true", s.Compare(query.Lte, value(t, true)), "[false, true]", true},
		{"$lte NaN", s.Compare(query.Lte, value(t, math.NaN())), "[nan.0, nan.0]", true},
		{"$lt NaN", s.Compare(query.Lt, value(t, math.NaN())), "", true},
		{"$lt -inf", s.Compare(query.Lt, value(t, math.Inf(-1))), "", true},
		{"$gte code", s.Compare(query.Gte, value(t, bson.JavaScript("a"))), "[a, CodeWScope( , {}))", true},
		{"$lt date", s.Compare(query.Lt, value(t, bson.DateTime(1577836800000))), "[new Date(-9223372036854775808), new Date(1577836800000))", true},
		{"$lt timestamp", s.Compare(query.Lt, value(t, bson.Timestamp{T: 5, I: 1})), "[Timestamp(0, 0), Timestamp(5, 1))", true},
		{"/^ab/", s.Prefix("ab"), `["ab", "ac")`, true},
		{"/x/", s.Prefix(""), `["", {})`, true},
		{"$type number", s.OfType(bsoncore.TypeDouble), "[nan.0, inf.0]", false},
		{"$type array", s.OfType(bsoncore.TypeArray), "[MinKey, MaxKey]", false},
		{"$in", s.In([]bsoncore.Value{value(t, 5), value(t, "x"), value(t, 1), value(t, 5.0)}), `[1, 1] [5, 5] ["x", "x"]`, true},
		{"$ne 1", Bounds{Intervals: s.Complement(s.Eq(value(t, 1)).Intervals)}, "[MinKey, 1) (1, MaxKey]", false},
		{"$not $lt 1", Bounds{Intervals: s.Complement(s.Compare(query.Lt, value(t, 1)).Intervals)}, "[MinKey, -inf.0) [1, MaxKey]", false},
		{"hashed, 5", Space{Hashed: true}.Compare(query.Gt, value(t, 5)), "[MinKey, MaxKey]", false},
	} {
		if got := shown(test.got.Intervals); got != test.want || test.got.Exact != test.exact {
			t.Errorf("%s: %s (exact: %t), want %s", test.name, got, test.got.Exact, test.want)
		}
	}
	iv := s.Compare(query.Lt, value(t, 1)).Intervals[0]
	if got := iv.Text(true); got != "(1, -inf.0]" {
		t.Errorf("the other way round: %s", got)
	}
	if point := s.Eq(value(t, "a")).Intervals[0]; !point.IsPoint() || iv.IsPoint() {
		t.Error("a point is not told from a range")
	}
}

// samples are values around which intervals lie.
func samples(t testing.TB) []bsoncore.Value {
	list := []any{
		bson.MinKey{}, bson.Undefined{}, bson.Null{}, math.NaN(), math.Inf(-1), -1, 0, 0.5, 1, int64(2), math.Inf(1), "", "a", "ab", "ab\xff", "b", "\xff\xff",
		bson.D{}, bson.D{{Key: "a", Value: 1}}, bson.A{}, bson.A{1}, bson.Binary{}, bson.Binary{Data: []byte("x")}, bson.ObjectID{}, bson.ObjectID{1},
		false, true, bson.DateTime(math.MinInt64), bson.DateTime(5), bson.Timestamp{}, bson.Timestamp{T: 5}, bson.Regex{Pattern: "a"}, bson.DBPointer{},
		bson.JavaScript("a"), bson.CodeWithScope{Code: "a", Scope: bson.D{}}, bson.MaxKey{},
	}
	values := make([]bsoncore.Value, len(list))
	for i, v := range list {
		values[i] = value(t, v)
	}
	return values
}

func within(list []Interval, v bsoncore.Value, descending bool) bool {
	key := keyenc.Append(nil, v, descending, nil)
	n := 0
	for _, iv := range list {
		if lo, hi := iv.Cuts(descending); bytes.Compare(lo, key) <= 0 && bytes.Compare(key, hi) < 0 {
			n++
		}
	}
	return n == 1
}

// TestComparisonsHoldWhatMatches holds intervals against comparing values within their class, in both directions.
func TestComparisonsHoldWhatMatches(t *testing.T) {
	var s Space
	for _, v := range samples(t) {
		for _, op := range []query.Op{query.Lt, query.Lte, query.Gt, query.Gte, query.Eq} {
			b := s.Compare(op, v)
			for _, w := range samples(t) {
				r := order.Compare(w, v, nil)
				matches := op == query.Lt && r < 0 || op == query.Lte && r <= 0 || op == query.Gt && r > 0 || op == query.Gte && r >= 0 || op == query.Eq && r == 0
				isNaN := r != 0 && order.IsNumber(v.Type) && (order.Equal(v, doubleValue(math.NaN()), nil) || order.Equal(w, doubleValue(math.NaN()), nil))
				matches = matches && order.ClassOf(v.Type) == order.ClassOf(w.Type) && !isNaN
				for _, descending := range []bool{false, true} {
					if got := within(b.Intervals, w, descending); got != matches && (b.Exact || !got) {
						t.Errorf("%v in %s: %t, want %t (descending: %t)", w, shown(b.Intervals), got, matches, descending)
					}
				}
			}
		}
	}
}

func TestPrefixHoldsWhatBeginsSo(t *testing.T) {
	var s Space
	for _, prefix := range []string{"a", "ab", "\xff", "ab\xff", "\x00", ""} {
		for _, v := range samples(t) {
			w, isString := v.StringValueOK()
			if got, want := within(s.Prefix(prefix).Intervals, v, false), isString && strings.HasPrefix(w, prefix); got != want {
				t.Errorf("%v begins with %q: %t, want %t", v, prefix, got, want)
			}
		}
	}
}

// TestSetsOfIntervals holds union, intersection and complement against asking for each value.
func TestSetsOfIntervals(t *testing.T) {
	values := samples(t)
	rapid.Check(t, func(t *rapid.T) {
		var s Space
		draw := func(name string) []Interval {
			var list []Interval
			for range rapid.IntRange(0, 3).Draw(t, name) {
				v := values[rapid.IntRange(0, len(values)-1).Draw(t, "value")]
				list = Union(list, s.Compare(rapid.SampledFrom([]query.Op{query.Eq, query.Lt, query.Lte, query.Gt, query.Gte}).Draw(t, "op"), v).Intervals)
			}
			return list
		}
		a, b := draw("a"), draw("b")
		union, both, not := Union(slices.Clone(a), b), Intersect(a, b), s.Complement(a)
		for _, v := range values {
			x, y := within(a, v, false), within(b, v, false)
			if within(union, v, false) != (x || y) || within(both, v, false) != (x && y) || within(not, v, false) != !x {
				t.Fatalf("%v: a %s, b %s, union %s, intersection %s, complement of a %s", v, shown(a), shown(b), shown(union), shown(both), shown(not))
			}
		}
		if got := shown(s.Complement(not)); got != shown(a) && len(got) > 0 && !equalCuts(s.Complement(not), a) {
			t.Fatalf("the complement of the complement of %s is %s", shown(a), got)
		}
	})
}

func equalCuts(a, b []Interval) bool {
	return slices.EqualFunc(a, b, func(x, y Interval) bool { return bytes.Equal(x.lo, y.lo) && bytes.Equal(x.hi, y.hi) })
}

// TestRangesOfCompoundKeys holds ranges of keys against the values of the component behind the prefix, with record keys behind.
func TestRangesOfCompoundKeys(t *testing.T) {
	d := parse(t, `{"key": {"a": 1, "b": -1, "c": 1}}`)
	five, x := value(t, 5), value(t, "x")
	for i, prefix := range [][]byte{nil, d.AppendValue(nil, 0, five), d.AppendValue(d.AppendValue(nil, 0, five), 1, x)} {
		s := d.Space(i)
		for _, b := range []Bounds{s.All(), s.Eq(value(t, 1)), s.Compare(query.Lt, value(t, 1)), s.Compare(query.Gte, value(t, "ab")), s.Null(), s.Prefix("ab")} {
			for _, v := range samples(t) {
				key := d.AppendValue(slices.Clone(prefix), i, v)
				key = append(key, keyenc.Append(nil, maxKey(), false, nil)...)
				found := false
				for _, iv := range b.Intervals {
					lo, hi := iv.Cuts(d.Components[i].Kind == Descending)
					lo, hi = slices.Concat(prefix, lo), slices.Concat(prefix, hi)
					found = found || bytes.Compare(lo, key) <= 0 && bytes.Compare(key, hi) < 0
				}
				if want := within(b.Intervals, v, false); found != want {
					t.Errorf("component %d: %v in %s: %t, want %t", i, v, shown(b.Intervals), found, want)
				}
				if lo, hi := PrefixRange(prefix); bytes.Compare(lo, key) > 0 || hi != nil && bytes.Compare(key, hi) >= 0 {
					t.Errorf("component %d: %v is not behind the prefix", i, v)
				}
			}
		}
	}
}

func TestIntervalsUnderACollation(t *testing.T) {
	d := parse(t, `{"key": {"a": 1}, "collation": {"locale": "en", "strength": 1}}`)
	s := d.Space(0)
	for _, test := range []struct {
		b    Bounds
		v    string
		want bool
	}{
		{s.Eq(value(t, "ABC")), "abc", true}, {s.Eq(value(t, "ABC")), "abd", false}, {s.Compare(query.Gt, value(t, "abc")), "B", true},
		{s.Compare(query.Gt, value(t, "b")), "ABC", false}, {s.Prefix("a"), "zzz", true}, {s.Prefix(""), "", true},
	} {
		key := d.AppendValue(nil, 0, value(t, test.v))
		iv := test.b.Intervals[0]
		if got := bytes.Compare(iv.Lo(), key) <= 0 && bytes.Compare(key, iv.Hi()) < 0; got != test.want {
			t.Errorf("%s in %s: %t", test.v, iv.String(), got)
		}
	}
	if s.Prefix("a").Exact {
		t.Error("a prefix is exact under a collation")
	}
}
