package update

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// Messages show values the way MongoDB's messages do: a notation like that of its shell. Long ones are cut: a message is for
// people, and must not carry a document of 16 MiB.

const shownString = 150

// showElement returns "name: value".
func showElement(name string, v bsoncore.Value) string {
	var b strings.Builder
	b.WriteString(name)
	b.WriteString(": ")
	show(&b, v, 0)
	return b.String()
}

// showDocument returns "{ a: 1 }".
func showDocument(doc bsoncore.Document) string {
	var b strings.Builder
	show(&b, bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}, 0)
	return b.String()
}

func show(b *strings.Builder, v bsoncore.Value, depth int) {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		showMembers(b, v, depth)
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		b.WriteString(strconv.FormatInt(v.AsInt64(), 10))
	case bsoncore.TypeDouble:
		b.WriteString(showDouble(v.Double()))
	case bsoncore.TypeDecimal128:
		high, low := v.Decimal128()
		b.WriteString(showDecimal(high, low))
	case bsoncore.TypeString, bsoncore.TypeSymbol, bsoncore.TypeJavaScript:
		if len(v.Data) < 5 {
			return
		}
		s := string(v.Data[4 : len(v.Data)-1])
		if len(s) > shownString {
			s = s[:shownString] + "..."
		}
		b.WriteByte('"')
		b.WriteString(s)
		b.WriteByte('"')
	case bsoncore.TypeBoolean:
		b.WriteString(strconv.FormatBool(v.Boolean()))
	case bsoncore.TypeNull:
		b.WriteString("null")
	case bsoncore.TypeUndefined:
		b.WriteString("undefined")
	case bsoncore.TypeMinKey:
		b.WriteString("MinKey")
	case bsoncore.TypeMaxKey:
		b.WriteString("MaxKey")
	case bsoncore.TypeObjectID:
		fmt.Fprintf(b, "ObjectId('%s')", hex.EncodeToString(v.Data))
	case bsoncore.TypeDateTime:
		fmt.Fprintf(b, "new Date(%d)", v.DateTime())
	case bsoncore.TypeTimestamp:
		t, i := v.Timestamp()
		fmt.Fprintf(b, "Timestamp(%d, %d)", t, i)
	case bsoncore.TypeRegex:
		pattern, options := v.Regex()
		fmt.Fprintf(b, "/%s/%s", pattern, options)
	case bsoncore.TypeBinary:
		subtype, data := v.Binary()
		fmt.Fprintf(b, "BinData(%d, %X)", subtype, data[:min(len(data), shownString)])
	default:
		b.WriteString(mongoerror.TypeName(v.Type))
	}
}

func showMembers(b *strings.Builder, v bsoncore.Value, depth int) {
	open, end := "{", "}"
	if v.Type == bsoncore.TypeArray {
		open, end = "[", "]"
	}
	b.WriteString(open)
	first := true
	for s := path.PlacesOf(v.Data); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.WriteByte(' ')
		if b.Len() > 10*shownString || depth > maxDepth {
			b.WriteString("...")
			break
		}
		if v.Type == bsoncore.TypeEmbeddedDocument {
			b.Write(e.Name)
			b.WriteString(": ")
		}
		show(b, e.Value, depth+1)
	}
	if !first {
		b.WriteByte(' ')
	}
	b.WriteString(end)
}

func showDouble(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	switch {
	case math.IsNaN(f):
		return "nan.0"
	case math.IsInf(f, 1):
		return "inf.0"
	case math.IsInf(f, -1):
		return "-inf.0"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
