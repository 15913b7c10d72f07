package keyenc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/internal/corrupt"
)

func value(t testing.TB, v any) bsoncore.Value {
	t.Helper()
	switch v := v.(type) {
	case bsoncore.Value:
		return v
	case decimalText:
		return decimal(t, string(v))
	}
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

// decimalText is a decimal128 written out.
type decimalText string

// encodings are values in ascending order with their bytes, and whether they come back as they were. They are the format: a change here is
// one of docs/format/keyenc.md, and of its version.
var encodings = []struct {
	v     any
	want  string
	exact bool
}{
	{bson.MinKey{}, "10", true},
	{bsoncore.Value{}, "14", false},
	{bson.Null{}, "18", true},
	{math.NaN(), "20", false},
	{math.Float64frombits(0x7ff8 << 48), "20", true},
	{math.Inf(-1), "21", true},
	{-0x1p100, "22ff9bff", true},
	{int64(math.MinInt64), "22ffc0ff", false},
	{float64(math.MinInt64), "22ffc0ff", true},
	{int64(math.MinInt64 + 1), "230000000000081021", true},
	{-264208, "28ffffff", true},
	{-70000.5, "2eed3e7f", true},
	{-2064, "30ffff", true},
	{-16, "40ff", true},
	{-15, "42", true},
	{-1, "5e", true},
	{-0.5, "5f01ff", true},
	{math.Copysign(0, -1), "60", false},
	{0, "60", true},
	{decimalText("0.00"), "60", false},
	{5e-324, "6100fbcd00", true},
	{0.25, "61fd00", true},
	{0.5, "61fe00", true},
	{0.75, "61fe80", true},
	{1, "62", true},
	{1.0, "62", false},
	{int64(1), "62", false},
	{1.5, "6380", true},
	{decimalText("19.99"), "87fdb9297b7151f5e1" + "4002" + "27c6", true},
	{decimalText("19.990"), "87fdb9297b7151f5e1" + "4002" + "27c6", false},
	{31, "9e", true},
	{32, "a000", true},
	{4127, "bffe", true},
	{4128, "c00000", true},
	{528415, "cffffe", true},
	{528416, "d0000000", true},
	{math.MaxInt32, "d1ffefdfbe", true},
	{int64(math.MaxInt32 + 1), "d1ffefdfc0", true},
	{int64(math.MaxInt64), "d5ffffffffffefdfbe", true},
	{0x1p63, "d6003f00", true},
	{decimalText("1E6144"), "d64fb9e73d413b0f3b2b81580114", true},
	{math.Inf(1), "d7", true},
	{"", "da00", true},
	{"\x00", "da010100", true},
	{"\x01", "da010200", true},
	{bson.Symbol("ab"), "da616200", false},
	{"ab", "da616200", true},
	{bson.D{}, "dc00", true},
	{bson.D{{Key: "a", Value: 1}}, "dc0461006200", true},
	{bson.D{{Key: "a", Value: 1.0}}, "dc0461006200", false},
	{bson.A{}, "de00", true},
	{bson.A{bson.Null{}, bson.A{}}, "de18de0000", true},
	{bson.Binary{Subtype: 9, Data: []byte{7}}, "e0010907", true},
	{bson.Binary{Data: make([]byte, 240)}, "e0f1f000" + hex.EncodeToString(make([]byte, 240)), true},
	{bson.ObjectID{1, 2}, "e201020000000000000000" + "0000", true},
	{false, "e4", true},
	{true, "e5", true},
	{bson.DateTime(-1), "e67fffffffffffffff", true},
	{bson.Timestamp{T: 1, I: 2}, "e80000000100000002", true},
	{bson.Regex{Pattern: "a", Options: "i"}, "ea61006900", true},
	{bson.DBPointer{DB: "ab", Pointer: bson.ObjectID{1}}, "ec026162010000000000000000000000", true},
	{bson.JavaScript("a"), "ee6100", true},
	{bson.CodeWithScope{Code: "a", Scope: bson.D{}}, "f0610000", true},
	{bson.MaxKey{}, "f2", true},
}

func TestBytes(t *testing.T) {
	var before []byte
	for _, test := range encodings {
		v := value(t, test.v)
		got := Append(nil, v, false, nil)
		if hex.EncodeToString(got) != test.want {
			t.Errorf("%v is %x, want %s", v, got, test.want)
		}
		if bytes.Compare(before, got) > 0 {
			t.Errorf("%v is %x, below %x", v, got, before)
		}
		if Exact(v, nil) != test.exact {
			t.Errorf("%v is exact: %t", v, !test.exact)
		}
		before = got
		roundTrip(t, v)
	}
}

type failer interface{ Fatalf(string, ...any) }

// roundTrip decodes and skips the encodings of v in both directions, with something behind.
func roundTrip(t failer, v bsoncore.Value) {
	for _, descending := range []bool{false, true} {
		key := Append([]byte{1}, v, descending, nil)[1:]
		got, grown, rest, err := Decode([]byte("kept"), append(key, 5, 6), descending)
		if err != nil || string(rest) != "\x05\x06" || string(grown[:4]) != "kept" {
			t.Fatalf("decode %x of %v: rest %x, %v", key, v, rest, err)
		}
		if !order.Equal(got, v, nil) || Exact(v, nil) != (got.Type == v.Type && bytes.Equal(got.Data, v.Data)) || got.Validate() != nil {
			t.Fatalf("%v (exact: %t) came back as %v", v, Exact(v, nil), got)
		}
		if !Exact(got, nil) {
			t.Fatalf("%v came back as %v, which is not exact", v, got)
		}
		if rest, err := Skip(append(key, 5, 6), descending); err != nil || string(rest) != "\x05\x06" {
			t.Fatalf("skip %x of %v: rest %x, %v", key, v, rest, err)
		}
	}
}

func TestEnd(t *testing.T) {
	for _, test := range []struct{ prefix, want string }{{"a", "b"}, {"a\xff", "b"}, {"a\x00", "a\x01"}} {
		if got := End(nil, []byte(test.prefix)); string(got) != test.want {
			t.Errorf("end of %q is %q, want %q", test.prefix, got, test.want)
		}
	}
	if End(nil, nil) != nil || End(nil, []byte("\xff\xff")) != nil {
		t.Error("there is an end where there is none")
	}
}

func TestCollation(t *testing.T) {
	spec, err := bson.Marshal(bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := collation.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	key := func(v any) []byte { return Append(nil, value(t, v), false, c) }
	if !bytes.Equal(key("Abc"), key("aBC")) || bytes.Compare(key("a"), key("B")) >= 0 || !bytes.Equal(key(bson.A{"x"}), key(bson.A{"X"})) {
		t.Error("keys do not follow the collation")
	}
	if Exact(value(t, "a"), c) || Exact(value(t, bson.A{"a"}), c) || !Exact(value(t, 1), c) {
		t.Error("strings are exact under a collation")
	}
	if rest, err := Skip(append(key("Abc"), 9), false); err != nil || len(rest) != 1 {
		t.Errorf("skip: %x, %v", rest, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, s := range []string{
		"", "00", "ff", "11", "da", "da61", "da0103", "da01", "dc", "dc04", "dc046100", "dc05610062" + "00", "de", "de62", "e0", "e0f1", "e0f105", "e00100", "e0f0",
		"e2", "e6", "ea61", "ec01", "f0", "f06100", "a0", "d0", "d000", "6380"[:2], "6300", "638100", "61", "610000", "61ff00", "610fff", "6100ff1000", "6100000000",
		"d60020" + "00", "d6003f8100", "d5ffffffffffffffff", "d3000000000001", "d67fff00",
		"87fdb9297b7151f5e14002", "87fdb9297b7151f5e1400227c7", "87fdb9297b7151f5e1400227c8", "87fdb9297b7151f5e1" + "4002" + "27c700",
		"6101", "61fe81818181818181", "6100ffffff",
	} {
		src, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		if v, _, _, err := Decode(nil, src, false); !errors.Is(err, ErrMalformed) || !errors.Is(err, corrupt.Err) {
			t.Errorf("%s is %v, %v", s, v, err)
		}
	}
	deep := bytes.Repeat([]byte{tagArray}, 1000)
	if _, _, _, err := Decode(nil, deep, false); !errors.Is(err, ErrMalformed) {
		t.Errorf("arrays without end: %v", err)
	}
	if _, err := Skip(deep, false); !errors.Is(err, ErrMalformed) {
		t.Errorf("arrays without end: %v", err)
	}
}

var benchmarked = []struct {
	name string
	v    any
}{
	{"int32", 100000}, {"double", 19.99}, {"string", "a string of usual size"}, {"ObjectId", bson.ObjectID{1}}, {"object", bson.D{{Key: "a", Value: 1}, {Key: "b", Value: "x"}}},
}

func TestAppendDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 100)
	for _, b := range append(benchmarked, struct {
		name string
		v    any
	}{"decimal", decimal(t, "19.99")}) {
		v := value(t, b.v)
		if n := testing.AllocsPerRun(100, func() { buf = Append(buf[:0], v, false, nil) }); n != 0 {
			t.Errorf("%s: %v allocations", b.name, n)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, bench := range benchmarked {
		b.Run(bench.name, func(b *testing.B) {
			v, buf := value(b, bench.v), make([]byte, 0, 100)
			b.ReportAllocs()
			for b.Loop() {
				buf = Append(buf[:0], v, false, nil)
			}
			b.ReportMetric(float64(len(buf)), "bytes")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, bench := range benchmarked {
		b.Run(bench.name, func(b *testing.B) {
			key, buf := Append(nil, value(b, bench.v), false, nil), make([]byte, 0, 100)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, err := Decode(buf[:0], key, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
