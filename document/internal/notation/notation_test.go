package notation

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func value(t *testing.T, v any) bsoncore.Value {
	t.Helper()
	kind, data, err := bson.MarshalValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return bsoncore.Value{Type: bsoncore.Type(kind), Data: data}
}

// TestValues holds values to what a mongod 6.0 shows.
func TestValues(t *testing.T) {
	for _, test := range []struct {
		v    any
		want string
	}{
		{100.0, "100.0"}, {0.1 + 0.2, "0.3"}, {1.0 / 3, "0.3333333333333333"}, {1e15, "1000000000000000.0"}, {1e16, "1e+16.0"}, {1e-7, "1e-07.0"},
		{123456789.125, "123456789.125"}, {12345678901234567.0, "1.234567890123457e+16"}, {1.5e300, "1.5e+300"}, {math.Copysign(0, -1), "-0.0"},
		{math.NaN(), "nan.0"}, {math.Inf(1), "inf.0"}, {math.Inf(-1), "-inf.0"},
		{int32(5), "5"}, {int64(-5), "-5"}, {`a"b`, `"a"b"`}, {true, "true"}, {bson.Null{}, "null"}, {bson.Undefined{}, "undefined"},
		{bson.MinKey{}, "MinKey"}, {bson.MaxKey{}, "MaxKey"}, {bson.ObjectID{}, "ObjectId('000000000000000000000000')"},
		{time.UnixMilli(1500), "new Date(1500)"}, {bson.Timestamp{T: 1, I: 2}, "Timestamp(1, 2)"}, {bson.Regex{Pattern: "a", Options: "i"}, "/a/i"},
		{bson.Binary{Subtype: 4, Data: []byte{1, 0xab}}, "BinData(4, 01AB)"}, {bson.JavaScript("x"), "x"}, {bson.Symbol("s"), `"s"`},
		{bson.CodeWithScope{Code: "x", Scope: bson.D{{Key: "a", Value: int32(1)}}}, "CodeWScope( x, { a: 1 })"},
		{bson.DBPointer{DB: "c"}, "DBRef('c',000000000000000000000000)"}, {bson.NewDecimal128(0x3040000000000000, 150), "150"},
		{bson.D{}, "{}"}, {bson.A{}, "[]"}, {bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: bson.D{{Key: "c", Value: bson.A{int32(1), "x"}}}}}, `{ a: 1, b: { c: [ 1, "x" ] } }`},
	} {
		v := value(t, test.v)
		if got := Whole(v); got != test.want {
			t.Errorf("%v: %s, want %s", test.v, got, test.want)
		}
		if got := Brief(v); got != test.want {
			t.Errorf("%v: %s in brief, want %s", test.v, got, test.want)
		}
	}
	if got := Element("a", value(t, 1.0)); got != "a: 1.0" {
		t.Error(got)
	}
}

// TestCutValues holds what is shown of a long value to what a mongod 6.0 shows.
func TestCutValues(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, test := range []struct {
		v    any
		want string
	}{
		{x(159), `"` + x(159) + `"`}, {x(160), `"` + x(150) + `..."`}, {bson.Symbol(x(160)), `"` + x(150) + `..."`},
		{"y" + strings.Repeat("\u00e9", 100), `"y` + strings.Repeat("\u00e9", 74) + `..."`},
		{bson.JavaScript(x(79)), x(79)}, {bson.JavaScript(x(80)), x(70) + "..."},
		{bson.Binary{Data: make([]byte, 80)}, "BinData(0, " + strings.Repeat("00", 80) + ")"}, {bson.Binary{Data: make([]byte, 81)}, "BinData(0, " + strings.Repeat("00", 70) + "...)"},
		{bson.D{{Key: "a", Value: x(400)}, {Key: "b", Value: x(400)}}, `{ a: "` + x(150) + `...", b: "` + x(150) + `..." }`},
	} {
		if got := Brief(value(t, test.v)); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}

// TestLongValues: what is long is cut, and what is deep is not gone into.
func TestLongValues(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var many bson.A
	for range 10_000 {
		many = append(many, int32(1))
	}
	for _, v := range []any{many, bson.D{{Key: long, Value: long}, {Key: "b", Value: long}}, bson.Regex{Pattern: long}, bson.Regex{Pattern: strings.Repeat("x", longest-2) + "\u00e9"}} {
		got := Brief(value(t, v))
		if len(got) > longest+len(cut) || len(got) < longest || !strings.HasSuffix(got, cut) || !utf8.ValidString(got) {
			t.Errorf("%T: %d bytes", v, len(got))
		}
		if whole := Whole(value(t, v)); !strings.HasPrefix(whole, strings.TrimSuffix(got, cut)) || len(whole) <= len(got)-len(cut) {
			t.Errorf("%T: %d bytes as a whole", v, len(whole))
		}
	}
	deep := bsoncore.NewDocumentBuilder().Build()
	for range 1000 {
		deep = bsoncore.NewDocumentBuilder().AppendDocument("a", deep).Build()
	}
	if got := Whole(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: deep}); strings.Count(got, "{") != deepest+1 || !strings.Contains(got, cut) {
		t.Errorf("%d levels are shown", strings.Count(got, "{"))
	}
}
