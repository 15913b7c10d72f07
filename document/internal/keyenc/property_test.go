package keyenc

import (
	"bytes"
	"math"
	"strconv"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/order"
)

// numbers generates numbers of all four types that lie near one another.
func numbers() *rapid.Generator[bsoncore.Value] {
	ints := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-50, 50), rapid.Int64Range(-600000, 600000), rapid.Int64Range(1<<53-3, 1<<53+3), rapid.Int64Range(math.MaxInt64-2, math.MaxInt64))
	return rapid.Custom(func(t *rapid.T) bsoncore.Value {
		switch rapid.IntRange(0, 5).Draw(t, "type") {
		case 0:
			return bsoncore.Value{Type: bsoncore.TypeInt32, Data: bsoncore.AppendInt32(nil, int32(ints.Draw(t, "int")))}
		case 1:
			return bsoncore.Value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, ints.Draw(t, "int"))}
		case 2:
			f := rapid.Float64().Draw(t, "double")
			return bsoncore.Value{Type: bsoncore.TypeDouble, Data: bsoncore.AppendDouble(nil, f)}
		case 3:
			f := float64(ints.Draw(t, "int")) / rapid.SampledFrom([]float64{1, 2, 10, 100, 1e300, 1e-300}).Draw(t, "by")
			return bsoncore.Value{Type: bsoncore.TypeDouble, Data: bsoncore.AppendDouble(nil, f)}
		}
		if f := rapid.Float64().Draw(t, "double"); rapid.Bool().Draw(t, "near") {
			d, err := bson.ParseDecimal128(strconv.FormatFloat(f, 'e', rapid.IntRange(0, 33).Draw(t, "digits"), 64))
			if err != nil {
				t.Fatal(err)
			}
			hi, lo := d.GetBytes()
			return bsoncore.Value{Type: bsoncore.TypeDecimal128, Data: bsoncore.AppendDecimal128(nil, hi, lo)}
		}
		d := order.Decimal{Lo: rapid.Uint64().Draw(t, "lo"), Neg: rapid.Bool().Draw(t, "neg"), Exp: rapid.OneOf(rapid.IntRange(-3, 0), rapid.IntRange(-40, 30), rapid.IntRange(-340, 320), rapid.IntRange(-6176, 6111)).Draw(t, "exp")}
		if rapid.Bool().Draw(t, "small") {
			d.Lo %= 1000
		} else if rapid.Bool().Draw(t, "large") {
			d.Hi = rapid.Uint64Range(0, 0x1ed09bead87bf).Draw(t, "hi")
		}
		data, ok := order.AppendDecimal(nil, d)
		if !ok {
			t.Fatalf("no decimal: %v", d)
		}
		return bsoncore.Value{Type: bsoncore.TypeDecimal128, Data: data}
	})
}

func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringOf(rapid.RuneFrom([]rune("\x00\x01\x02ab\U0010ffff"))), rapid.String())
}

// simple generates values that hold no others, of every type.
func simple() *rapid.Generator[bsoncore.Value] {
	of := func(t bsoncore.Type, data []byte) bsoncore.Value { return bsoncore.Value{Type: t, Data: data} }
	return rapid.OneOf(numbers(), numbers(), rapid.Custom(func(t *rapid.T) bsoncore.Value {
		cstring := rapid.StringOf(rapid.RuneFrom([]rune("\x01\x02ab")))
		var id [12]byte
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "id"))
		switch rapid.IntRange(0, 17).Draw(t, "type") {
		case 0:
			return of(bsoncore.TypeMinKey, nil)
		case 1:
			return of(bsoncore.TypeUndefined, nil)
		case 2:
			return of(bsoncore.TypeNull, nil)
		case 3:
			return of(bsoncore.TypeMaxKey, nil)
		case 4:
			return of(bsoncore.TypeSymbol, bsoncore.AppendString(nil, text().Draw(t, "symbol")))
		case 5:
			data := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "binary")
			if rapid.Bool().Draw(t, "long") {
				data = make([]byte, rapid.IntRange(230, 300).Draw(t, "length"))
			}
			return of(bsoncore.TypeBinary, bsoncore.AppendBinary(nil, rapid.SampledFrom([]byte{0, 2, 4, 128}).Draw(t, "subtype"), data))
		case 6:
			return of(bsoncore.TypeObjectID, id[:])
		case 7, 8:
			return of(bsoncore.TypeBoolean, bsoncore.AppendBoolean(nil, rapid.Bool().Draw(t, "bool")))
		case 9:
			return of(bsoncore.TypeDateTime, bsoncore.AppendDateTime(nil, rapid.Int64().Draw(t, "date")))
		case 10:
			return of(bsoncore.TypeTimestamp, bsoncore.AppendTimestamp(nil, rapid.Uint32().Draw(t, "t"), rapid.Uint32().Draw(t, "i")))
		case 11:
			return of(bsoncore.TypeRegex, bsoncore.AppendRegex(nil, cstring.Draw(t, "pattern"), cstring.Draw(t, "options")))
		case 12:
			return of(bsoncore.TypeDBPointer, bsoncore.AppendDBPointer(nil, text().Draw(t, "namespace"), id))
		case 13:
			return of(bsoncore.TypeJavaScript, bsoncore.AppendJavaScript(nil, text().Draw(t, "code")))
		case 14:
			scope := bsoncore.BuildDocument(nil, bsoncore.AppendInt32Element(nil, cstring.Draw(t, "name"), rapid.Int32().Draw(t, "int")))
			return of(bsoncore.TypeCodeWithScope, bsoncore.AppendCodeWithScope(nil, text().Draw(t, "code"), scope))
		}
		return of(bsoncore.TypeString, bsoncore.AppendString(nil, text().Draw(t, "string")))
	}))
}

// values generates values of every type, objects and arrays within one another too.
func values() *rapid.Generator[bsoncore.Value] { return nested(3) }

func nested(depth int) *rapid.Generator[bsoncore.Value] {
	if depth == 0 {
		return simple()
	}
	return rapid.Custom(func(t *rapid.T) bsoncore.Value {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if kind > 1 {
			return simple().Draw(t, "value")
		}
		list := rapid.SliceOfN(nested(depth-1), 0, 3).Draw(t, "list")
		if kind == 0 {
			return bsoncore.Value{Type: bsoncore.TypeArray, Data: bsoncore.BuildArray(nil, list...)}
		}
		i, doc := bsoncore.AppendDocumentStart(nil)
		for _, v := range list {
			doc = bsoncore.AppendValueElement(doc, rapid.SampledFrom([]string{"", "a", "b", "ab", "\x01"}).Draw(t, "name"), v)
		}
		doc, _ = bsoncore.AppendDocumentEnd(doc, i)
		return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}
	})
}

// TestOrderOfKeysIsOrderOfValues holds keys of two values against order.Compare: ascending, descending, with other values behind them.
func TestOrderOfKeysIsOrderOfValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, x, y := values().Draw(t, "a"), values().Draw(t, "b"), values().Draw(t, "x"), values().Draw(t, "y")
		if rapid.Bool().Draw(t, "numbers") {
			a, b = numbers().Draw(t, "a"), numbers().Draw(t, "b")
		}
		if a.Type == bsoncore.TypeDecimal128 && rapid.Bool().Draw(t, "nearest") {
			hi, lo := a.Decimal128()
			f, _ := strconv.ParseFloat(bson.NewDecimal128(hi, lo).String(), 64) // out of range: the infinity
			b = bsoncore.Value{Type: bsoncore.TypeDouble, Data: bsoncore.AppendDouble(nil, f)}
		}
		want := order.Compare(a, b, nil)
		k, l := Append(nil, a, false, nil), Append(nil, b, false, nil)
		if got := bytes.Compare(k, l); got != want {
			t.Fatalf("%v is %x, %v is %x: %d, want %d", a, k, b, l, got, want)
		}
		if want != 0 && (bytes.HasPrefix(k, l) || bytes.HasPrefix(l, k)) {
			t.Fatalf("%x and %x: one is a prefix", k, l)
		}
		if k[0] == 0 || k[0] == 0xff {
			t.Fatalf("%v is %x", a, k)
		}
		down, under := Append(nil, a, true, nil), Append(nil, b, true, nil)
		if got := bytes.Compare(down, under); got != -want {
			t.Fatalf("descending: %v is %x, %v is %x: %d, want %d", a, down, b, under, got, -want)
		}
		second := order.Compare(x, y, nil)
		for _, first := range []int{want, -want} {
			if first == 0 {
				first = second
			}
			got := bytes.Compare(Append(k, x, false, nil), Append(l, y, false, nil))
			if got != first {
				t.Fatalf("compound: %d, want %d", got, first)
			}
			k, l = down, under
		}
		if want == 0 && order.Hash(1, a, nil) != order.Hash(1, b, nil) {
			t.Fatalf("%v and %v are equal and hash differently", a, b)
		}
	})
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { roundTrip(t, values().Draw(t, "value")) })
}

// TestExpansionsAgree holds the quick way of expanding a decimal against the long one.
func TestExpansionsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := order.Decimal{Lo: rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(1, 10000)).Draw(t, "lo"), Exp: rapid.IntRange(-19, -1).Draw(t, "exp")}
		if d.IsZero() || !apart(d) {
			t.Skip("not encoded as a decimal")
		}
		quick, ok := expandQuickly(d)
		long := expand(d)
		if quick.exponent < 0 && long.exponent >= 0 {
			t.Fatalf("%v: exponent %d, want %d", d, quick.exponent, long.exponent)
		}
		if ok && (quick.whole != long.whole || quick.fraction>>8 != long.fraction>>8 || quick.whole == 0 && quick.exponent != long.exponent) {
			t.Fatalf("%v: %+v, want %+v", d, quick, long)
		}
	})
}

// TestKeysUnderACollation holds keys and hashes against order.Compare with a collation.
func TestKeysUnderACollation(t *testing.T) {
	for _, spec := range []bson.D{
		{{Key: "locale", Value: "en"}, {Key: "strength", Value: 1}}, {{Key: "locale", Value: "fr"}, {Key: "caseFirst", Value: "upper"}, {Key: "numericOrdering", Value: true}},
		{{Key: "locale", Value: "de"}, {Key: "strength", Value: 5}, {Key: "alternate", Value: "shifted"}},
	} {
		doc, err := bson.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		c, err := collation.Parse(doc)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			texts := rapid.StringOf(rapid.RuneFrom([]rune("aAbB1290 -\x00\x01\u00e9\u00c9\u0301")))
			value := func(name string) bsoncore.Value {
				s := bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, texts.Draw(t, name))}
				if rapid.Bool().Draw(t, "array") {
					return bsoncore.Value{Type: bsoncore.TypeArray, Data: bsoncore.BuildArray(nil, s)}
				}
				return s
			}
			a, b := value("a"), value("b")
			want := order.Compare(a, b, c)
			if got := bytes.Compare(Append(nil, a, false, c), Append(nil, b, false, c)); got != want {
				t.Fatalf("%v and %v: %d, want %d", a, b, got, want)
			}
			if got := bytes.Compare(Append(nil, a, true, c), Append(nil, b, true, c)); got != -want {
				t.Fatalf("%v and %v descending: %d, want %d", a, b, got, -want)
			}
			if want == 0 && order.Hash(1, a, c) != order.Hash(1, b, c) {
				t.Fatalf("%v and %v are equal and hash differently", a, b)
			}
		})
	}
}
