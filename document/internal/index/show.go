package index

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

// String returns the interval as MongoDB's explain shows it, in ascending direction: [1, 5).
func (iv *Interval) String() string { return iv.Text(false) }

// Text is String in the direction that a component is read in: reversed shows the higher end first.
func (iv *Interval) Text(reversed bool) string {
	var b strings.Builder
	low, high, lowInclusive, highInclusive := iv.Low, iv.High, iv.LowInclusive, iv.HighInclusive
	if reversed {
		low, high, lowInclusive, highInclusive = high, low, highInclusive, lowInclusive
	}
	b.WriteByte("(["[bit(lowInclusive)])
	iv.showEnd(&b, low)
	b.WriteString(", ")
	iv.showEnd(&b, high)
	b.WriteByte(")]"[bit(highInclusive)])
	return b.String()
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (iv *Interval) showEnd(b *strings.Builder, v bsoncore.Value) {
	if iv.key && iv.IsPoint() {
		b.WriteString("CollationKey(0x" + hex.EncodeToString(iv.lo) + ")")
		return
	}
	show(b, v)
}

// text returns a value as the server writes it in messages.
func text(v bsoncore.Value) string {
	var b strings.Builder
	show(&b, v)
	return b.String()
}

func documentText(d bsoncore.Document) string { return text(valueOf(bsoncore.TypeEmbeddedDocument, d)) }

// show writes a value as the server writes it in messages and in explain.
func show(b *strings.Builder, v bsoncore.Value) {
	switch v.Type {
	case bsoncore.TypeDouble:
		b.WriteString(showDouble(v.Double()))
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		b.WriteString(strconv.FormatInt(v.AsInt64(), 10))
	case bsoncore.TypeString:
		b.WriteString(`"` + v.StringValue() + `"`)
	case bsoncore.TypeSymbol:
		b.WriteString(`"` + v.Symbol() + `"`)
	case bsoncore.TypeBoolean:
		b.WriteString(strconv.FormatBool(v.Boolean()))
	case 0, bsoncore.TypeNull:
		b.WriteString("null")
	case bsoncore.TypeUndefined:
		b.WriteString("undefined")
	case bsoncore.TypeMinKey:
		b.WriteString("MinKey")
	case bsoncore.TypeMaxKey:
		b.WriteString("MaxKey")
	case bsoncore.TypeObjectID:
		id := v.ObjectID()
		b.WriteString("ObjectId('" + hex.EncodeToString(id[:]) + "')")
	case bsoncore.TypeDateTime:
		b.WriteString("new Date(" + strconv.FormatInt(v.DateTime(), 10) + ")")
	case bsoncore.TypeTimestamp:
		t, i := v.Timestamp()
		b.WriteString("Timestamp(" + strconv.FormatUint(uint64(t), 10) + ", " + strconv.FormatUint(uint64(i), 10) + ")")
	case bsoncore.TypeEmbeddedDocument:
		showElements(b, v.Data, "{}", true)
	case bsoncore.TypeArray:
		showElements(b, v.Data, "[]", false)
	default:
		showRare(b, v)
	}
}

func showRare(b *strings.Builder, v bsoncore.Value) {
	switch v.Type {
	case bsoncore.TypeBinary:
		subtype, data := v.Binary()
		b.WriteString("BinData(" + strconv.Itoa(int(subtype)) + ", " + strings.ToUpper(hex.EncodeToString(data)) + ")")
	case bsoncore.TypeRegex:
		pattern, options := v.Regex()
		b.WriteString("/" + pattern + "/" + options)
	case bsoncore.TypeDBPointer:
		namespace, id := v.DBPointer()
		b.WriteString("DBRef('" + namespace + "'," + hex.EncodeToString(id[:]) + ")")
	case bsoncore.TypeJavaScript:
		b.WriteString(v.JavaScript())
	case bsoncore.TypeCodeWithScope:
		code, scope := v.CodeWithScope()
		b.WriteString("CodeWScope( " + code + ", ")
		showElements(b, scope, "{}", true)
		b.WriteString(")")
	default:
		b.WriteString(strings.TrimSuffix(strings.TrimPrefix(v.String(), `{"$numberDecimal":"`), `"}`))
	}
}

// showDouble writes a double so that it cannot be taken for an integer.
func showDouble(f float64) string {
	switch {
	case f != f:
		return "nan.0"
	case math.IsInf(f, 1):
		return "inf.0"
	case math.IsInf(f, -1):
		return "-inf.0"
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func showElements(b *strings.Builder, doc []byte, brackets string, named bool) {
	b.WriteByte(brackets[0])
	elements, n := path.ElementsOf(doc), 0
	for name, v, ok := elements.Next(); ok; name, v, ok = elements.Next() {
		if n++; n > 1 {
			b.WriteByte(',')
		}
		b.WriteByte(' ')
		if named {
			b.Write(name)
			b.WriteString(": ")
		}
		show(b, v)
	}
	if n > 0 {
		b.WriteByte(' ')
	}
	b.WriteByte(brackets[1])
}
