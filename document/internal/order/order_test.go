package order

import (
	"fmt"
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// value makes a value of a Go value as the driver marshals it.
func value(t testing.TB, v any) bsoncore.Value {
	t.Helper()
	typ, data, err := bson.MarshalValue(v)
	if err != nil {
		t.Fatalf("marshal %v: %v", v, err)
	}
	return bsoncore.Value{Type: bsoncore.Type(typ), Data: data}
}

func decimal(t testing.TB, s string) bsoncore.Value {
	t.Helper()
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		t.Fatal(err)
	}
	return value(t, d)
}

type d = bson.D

// TestClasses has one value of each class in ascending order.
func TestClasses(t *testing.T) {
	ascending := []bsoncore.Value{
		value(t, bson.MinKey{}), value(t, bson.Undefined{}), value(t, bson.Null{}), value(t, 7), value(t, "a"), value(t, d{}),
		value(t, bson.A{}), value(t, bson.Binary{Data: []byte("x")}), value(t, bson.ObjectID{1}), value(t, true), value(t, bson.DateTime(0)),
		value(t, bson.Timestamp{T: 1}), value(t, bson.Regex{Pattern: "a"}), value(t, bson.DBPointer{DB: "a"}), value(t, bson.JavaScript("a")),
		value(t, bson.CodeWithScope{Code: "a", Scope: d{}}), value(t, bson.MaxKey{}),
	}
	for i, a := range ascending {
		if got := ClassOf(a.Type); got != Class(i+1) {
			t.Errorf("class of %v: %d, want %d", a, got, i+1)
		}
		for j, b := range ascending {
			if got, want := Compare(a, b, nil), compareInts(i, j); got != want {
				t.Errorf("compare %v with %v: %d, want %d", a, b, got, want)
			}
		}
	}
	if !Equal(bsoncore.Value{}, value(t, bson.Undefined{}), nil) || Compare(bsoncore.Value{}, value(t, bson.Null{}), nil) >= 0 {
		t.Error("missing does not equal undefined, below null")
	}
}

func compareInts(a, b int) int { return compareDoubles(float64(a), float64(b)) }

// TestPairs says what the lower and the higher value are; the answers are those of a MongoDB server.
func TestPairs(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, pair := range []struct{ low, high any }{
		{nan, -inf}, {-inf, int64(math.MinInt64)}, {-1, -0.5}, {0.5, 1}, {2, 2.5}, {-2.5, -2}, {float64(1 << 53), int64(1<<53 + 1)},
		{int64(math.MaxInt64), float64(1 << 63)}, {decimal(t, "0.1"), 0.1}, {decimal(t, "-NaN"), -inf},
		{decimal(t, "1E+400"), inf}, {math.MaxFloat64, decimal(t, "1E+400")}, {decimal(t, "1E-6176"), 5e-324}, {0, decimal(t, "1E-6176")},
		{float64(1 << 53), decimal(t, "9007199254740993")}, {decimal(t, "0.1000000000000000055511151231257827"), 0.1},
		{0.1, decimal(t, "0.1000000000000000055511151231257828")}, {-0.1, decimal(t, "-0.1")}, {decimal(t, "-1E-400"), 0},
		{decimal(t, "-1E-400"), decimal(t, "-1E-401")}, {decimal(t, "1.1"), decimal(t, "1.10000000000000000000000000000001")},
		{decimal(t, "-Infinity"), -math.MaxFloat64}, {decimal(t, "9.999999999999999999999999999999999E+6144"), inf},
		{"", "a"}, {"a", "a\x00b"}, {"a\x00b", "a\x01"}, {"Z", "a"}, {bson.Symbol("a"), "b"}, {"a", bson.Symbol("b")},
		{d{}, d{{Key: "a", Value: 1}}}, {d{{Key: "a", Value: 1}}, d{{Key: "a", Value: 1}, {Key: "b", Value: 1}}},
		{d{{Key: "b", Value: 1}}, d{{Key: "a", Value: "x"}}}, {d{{Key: "a", Value: 2}}, d{{Key: "b", Value: 1}}},
		{d{{Key: "a", Value: 1}}, d{{Key: "a", Value: 2.5}}},
		{bson.A{}, bson.A{nil}}, {bson.A{1}, bson.A{1, 2}}, {bson.A{1, 2}, bson.A{2}},
		{bson.Binary{Subtype: 9, Data: []byte("z")}, bson.Binary{Data: []byte("ab")}},
		{bson.Binary{Subtype: 1, Data: []byte("z")}, bson.Binary{Subtype: 5, Data: []byte("a")}},
		{bson.Binary{Subtype: 5, Data: []byte("a")}, bson.Binary{Subtype: 5, Data: []byte("b")}},
		{false, true}, {bson.DateTime(-1), bson.DateTime(0)}, {bson.Timestamp{T: 1, I: 9}, bson.Timestamp{T: 2}},
		{bson.Timestamp{T: 1}, bson.Timestamp{T: 1 << 31}}, {bson.ObjectID{1}, bson.ObjectID{2}},
		{bson.Regex{Pattern: "a", Options: "m"}, bson.Regex{Pattern: "b"}}, {bson.Regex{Pattern: "a", Options: "i"}, bson.Regex{Pattern: "a", Options: "m"}},
		{bson.Regex{Pattern: "a", Options: "i"}, bson.Regex{Pattern: "aa"}},
		{bson.DBPointer{DB: "b", Pointer: bson.ObjectID{9}}, bson.DBPointer{DB: "aa"}}, {bson.DBPointer{DB: "a", Pointer: bson.ObjectID{9}}, bson.DBPointer{DB: "b"}},
		{bson.CodeWithScope{Code: "a", Scope: d{{Key: "x", Value: 1}}}, bson.CodeWithScope{Code: "a", Scope: d{{Key: "x", Value: 2}}}},
		{bson.CodeWithScope{Code: "a", Scope: d{{Key: "x", Value: 1}}}, bson.CodeWithScope{Code: "b", Scope: d{}}},
	} {
		low, high := asValue(t, pair.low), asValue(t, pair.high)
		if Compare(low, high, nil) != -1 || Compare(high, low, nil) != 1 {
			t.Errorf("%v and %v: %d, and the other way round %d", low, high, Compare(low, high, nil), Compare(high, low, nil))
		}
	}
}

func asValue(t testing.TB, v any) bsoncore.Value {
	if x, ok := v.(bsoncore.Value); ok {
		return x
	}
	return value(t, v)
}

// TestEqualsHashAlike has groups of equal values: all pairs are equal, and so are the hashes; and no two groups are.
func TestEqualsHashAlike(t *testing.T) {
	groups := [][]bsoncore.Value{
		{value(t, 1), value(t, int64(1)), value(t, 1.0), decimal(t, "1"), decimal(t, "1.00"), decimal(t, "10E-1")},
		{value(t, 0), value(t, math.Copysign(0, -1)), decimal(t, "-0"), decimal(t, "0E+6111"), decimal(t, "0E-6176")},
		{value(t, math.NaN()), value(t, math.Float64frombits(0xfff8000000000001)), decimal(t, "NaN"), decimal(t, "-NaN")},
		{value(t, math.Inf(1)), decimal(t, "Infinity")}, {value(t, math.Inf(-1)), decimal(t, "-Infinity")},
		{value(t, -2.5), decimal(t, "-2.5"), decimal(t, "-2.50")}, {value(t, int64(math.MinInt64)), value(t, float64(math.MinInt64)), decimal(t, "-9223372036854775808")},
		{value(t, 1e22), decimal(t, "1E22"), decimal(t, "10000000000000000000000")}, {value(t, 0x1p-30), decimal(t, "9.31322574615478515625E-10")},
		{decimal(t, "0.1"), decimal(t, "0.10")}, {decimal(t, "1E30"), decimal(t, "1000E27")}, {value(t, 1e30)}, {value(t, 0.1)},
		{value(t, int64(1<<53+1)), decimal(t, "9007199254740993")},
		{value(t, "a"), value(t, bson.Symbol("a"))}, {value(t, bson.JavaScript("a"))}, {value(t, d{})}, {value(t, bson.A{})},
		{bsoncore.Value{}, value(t, bson.Undefined{})}, {value(t, bson.Null{})},
		{value(t, d{{Key: "a", Value: 1}}), value(t, d{{Key: "a", Value: 1.0}})}, {value(t, bson.A{1, d{{Key: "x", Value: int64(2)}}}), value(t, bson.A{1.0, d{{Key: "x", Value: 2}}})},
		{value(t, bson.A{bson.A{}, 1})}, {value(t, bson.A{bson.A{1}})},
	}
	for i, group := range groups {
		for _, a := range group {
			for j, other := range groups {
				for _, b := range other {
					if Equal(a, b, nil) != (i == j) {
						t.Errorf("%v equals %v: %t", a, b, i != j)
					}
					if (Hash(5, a, nil) == Hash(5, b, nil)) != (i == j) {
						t.Errorf("%v and %v hash alike: %t", a, b, i != j)
					}
				}
			}
		}
	}
	if a := value(t, 1); Hash(1, a, nil) == Hash(2, a, nil) {
		t.Error("the seed does not matter")
	}
}

func TestDecimalTakenApartAndPutTogether(t *testing.T) {
	for _, s := range []string{"0", "1", "-1.50", "9.999999999999999999999999999999999E+6144", "1E-6176", "0.000001234"} {
		v := decimal(t, s)
		data, ok := AppendDecimal(nil, DecimalAt(v.Data))
		if !ok || string(data) != string(v.Data) {
			t.Errorf("%s became %x, was %x", s, data, v.Data)
		}
	}
	// Coefficients above 10^34-1 count as 0, in either of the two layouts.
	for _, hi := range []uint64{maxCoefficientHi + 1 | decimalBias<<coefficientBits, decimalSpecial | decimalBias<<largeShift} {
		v := bsoncore.Value{Type: bsoncore.TypeDecimal128, Data: bsoncore.AppendDecimal128(nil, hi, 1)}
		if !Equal(v, value(t, 0), nil) {
			t.Errorf("%x is not 0", hi)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	doc := value(t, d{{Key: "a", Value: 1}, {Key: "b", Value: bson.A{"x", 2.5}}})
	pairs := [][2]bsoncore.Value{
		{value(t, 1), value(t, 2.5)}, {value(t, "abc"), value(t, "abd")}, {doc, doc}, {decimal(t, "19.99"), value(t, 20.01)}, {decimal(t, "19.99"), decimal(t, "19.990")},
	}
	for _, p := range pairs {
		if n := testing.AllocsPerRun(100, func() { Compare(p[0], p[1], nil); Hash(1, p[0], nil) }); n != 0 {
			t.Errorf("%v with %v: %v allocations", p[0], p[1], n)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	doc := value(b, d{{Key: "a", Value: 1}, {Key: "b", Value: "x"}})
	for _, p := range [][2]bsoncore.Value{
		{value(b, 1), value(b, 2)}, {value(b, 1), value(b, 2.5)}, {value(b, "abcdef"), value(b, "abcdeg")}, {doc, doc}, {decimal(b, "19.99"), value(b, 1)},
	} {
		b.Run(fmt.Sprintf("%v,%v", p[0].Type, p[1].Type), func(b *testing.B) {
			for b.Loop() {
				Compare(p[0], p[1], nil)
			}
		})
	}
}
