package codec

import (
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"
)

// every is all types of BSON, deprecated ones too.
var every = []bsoncore.Type{
	bsoncore.TypeDouble, bsoncore.TypeString, bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray, bsoncore.TypeBinary,
	bsoncore.TypeUndefined, bsoncore.TypeObjectID, bsoncore.TypeBoolean, bsoncore.TypeDateTime, bsoncore.TypeNull,
	bsoncore.TypeRegex, bsoncore.TypeDBPointer, bsoncore.TypeJavaScript, bsoncore.TypeSymbol, bsoncore.TypeCodeWithScope,
	bsoncore.TypeInt32, bsoncore.TypeTimestamp, bsoncore.TypeInt64, bsoncore.TypeDecimal128, bsoncore.TypeMinKey,
	bsoncore.TypeMaxKey,
}

// shape is what documents of one template have in common.
type shape struct {
	names  []string
	types  []bsoncore.Type
	within []*shape // of embedded documents; of arrays, that of documents in them
}

func drawShape(t *rapid.T, depth int) *shape {
	s := &shape{}
	for range rapid.IntRange(0, 8).Draw(t, "fields") {
		name := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "_id", "d\u00e9"}), rapid.StringMatching(`[a-z.$]{0,9}`)).Draw(t, "name")
		typ := rapid.SampledFrom(every).Draw(t, "type")
		var in *shape
		if typ == bsoncore.TypeEmbeddedDocument || typ == bsoncore.TypeArray {
			if depth == 0 {
				typ = bsoncore.TypeInt32
			} else {
				in = drawShape(t, depth-1)
			}
		}
		s.names, s.types, s.within = append(s.names, name), append(s.types, typ), append(s.within, in)
	}
	return s
}

// draw returns a document of the shape.
func (s *shape) draw(t *rapid.T) bsoncore.Document {
	at, doc := bsoncore.AppendDocumentStart(nil)
	for i, name := range s.names {
		doc = bsoncore.AppendHeader(doc, s.types[i], name)
		doc = append(doc, drawValue(t, s.types[i], s.within[i])...)
	}
	doc, _ = bsoncore.AppendDocumentEnd(doc, at)
	return doc
}

var (
	texts   = rapid.OneOf(rapid.SampledFrom([]string{"", "x", "carrier", "a longer text that comes again and again, but not in a dictionary, as it is too long"}), rapid.String(), rapid.StringN(0, 400, 400), rapid.StringMatching(`(user|INV-)[0-9]{1,21}(@x\.org|)`), rapid.StringMatching(`[0-9]{0,2}[a-z]{0,3}[0-9]{0,20}`))
	numbers = rapid.OneOf(rapid.Int64(), rapid.Int64Range(-300, 300), rapid.Int64Range(-600000, 600000), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 175, 176, 16559, 16560, 540847, 540848}))
	dates   = rapid.OneOf(numbers, rapid.Map(rapid.Int64Range(-1e6, 1e6), func(n int64) int64 { return n * 3600000 }), rapid.Map(rapid.Int64Range(-1e6, 1e6), func(n int64) int64 { return n * 1000 }), rapid.Map(rapid.Int64Range(-1e5, 1e5), func(n int64) int64 { return n * 86400000 }))
	doubles = rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int64Range(-1e9, 1e9), func(n int64) float64 { return float64(n) / 100 }), rapid.Map(rapid.Int64Range(-1e9, 1e9), func(n int64) float64 { return float64(n) / 1e6 }),
		rapid.Map(rapid.Uint64(), math.Float64frombits), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, 0.1, 40.7, -73.9857, math.NaN(), math.Float64frombits(0x7ff8dead00000001), math.Inf(1), math.Inf(-1), 1 << 53, 1<<53 + 2, math.MaxFloat64, math.SmallestNonzeroFloat64}))
)

// drawValue returns a value as BSON.
func drawValue(t *rapid.T, typ bsoncore.Type, in *shape) []byte {
	bytes := func(n int) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes") }
	switch typ {
	case bsoncore.TypeDouble:
		return bsoncore.AppendDouble(nil, doubles.Draw(t, "double"))
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		return bsoncore.AppendString(nil, texts.Draw(t, "text"))
	case bsoncore.TypeEmbeddedDocument:
		return in.draw(t)
	case bsoncore.TypeArray:
		return drawArray(t, in)
	case bsoncore.TypeBinary:
		subtype := rapid.SampledFrom([]byte{0, 2, 4, 128}).Draw(t, "subtype")
		return bsoncore.AppendBinary(nil, subtype, bytes(rapid.SampledFrom([]int{0, 16, 253, 254, 300}).Draw(t, "length")))
	case bsoncore.TypeBoolean:
		return bsoncore.AppendBoolean(nil, rapid.Bool().Draw(t, "bool"))
	case bsoncore.TypeDateTime:
		return bsoncore.AppendDateTime(nil, dates.Draw(t, "date"))
	case bsoncore.TypeInt64:
		return bsoncore.AppendInt64(nil, numbers.Draw(t, "int64"))
	case bsoncore.TypeInt32:
		return bsoncore.AppendInt32(nil, int32(numbers.Draw(t, "int32")))
	case bsoncore.TypeRegex:
		return bsoncore.AppendRegex(nil, "^a", "i")
	case bsoncore.TypeDBPointer:
		return bsoncore.AppendDBPointer(nil, "a.b", bson.ObjectID(bytes(12)))
	case bsoncore.TypeCodeWithScope:
		return bsoncore.AppendCodeWithScope(nil, "f()", document(bson.D{{Key: "x", Value: 1}}))
	case bsoncore.TypeObjectID:
		return bytes(12)
	case bsoncore.TypeTimestamp:
		return bytes(8)
	case bsoncore.TypeDecimal128:
		return bytes(16)
	}
	return nil
}

// drawArray returns an array: of nothing, of one type, of documents of one shape, of anything, or with odd names.
func drawArray(t *rapid.T, in *shape) []byte {
	n := rapid.OneOf(rapid.IntRange(0, 4), rapid.Just(12)).Draw(t, "count")
	one := rapid.SampledFrom(every).Draw(t, "elements")
	mixed, odd := rapid.IntRange(0, 3).Draw(t, "mixed") == 0, rapid.IntRange(0, 9).Draw(t, "odd") == 0
	at, array := bsoncore.AppendArrayStart(nil)
	for i := range n {
		typ := one
		if mixed {
			typ = rapid.SampledFrom(every).Draw(t, "element")
		}
		if typ == bsoncore.TypeArray {
			typ = bsoncore.TypeEmbeddedDocument
		}
		name := strconv.Itoa(i)
		if odd {
			name = "0" + name
		}
		array = bsoncore.AppendHeader(array, typ, name)
		array = append(array, drawValue(t, typ, in)...)
	}
	array, _ = bsoncore.AppendArrayEnd(array, at)
	return array
}
