package query

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
)

// longestShown is how much of a value an error message has at most.
const longestShown = 256

// show writes a value as the server does in its messages.
func show(v bsoncore.Value) string {
	var b strings.Builder
	showTo(&b, v)
	if b.Len() > longestShown {
		return b.String()[:longestShown] + "..."
	}
	return b.String()
}

// showElement writes a name with its value.
func showElement(name string, v bsoncore.Value) string { return name + ": " + show(v) }

func showTo(b *strings.Builder, v bsoncore.Value) {
	if b.Len() > longestShown {
		return
	}
	switch v.Type {
	case bsoncore.TypeDouble:
		b.WriteString(showDouble(v.Double()))
	case bsoncore.TypeInt32:
		b.WriteString(strconv.Itoa(int(v.Int32())))
	case bsoncore.TypeInt64:
		b.WriteString(strconv.FormatInt(v.Int64(), 10))
	case bsoncore.TypeString:
		b.WriteString(`"` + v.StringValue() + `"`)
	case bsoncore.TypeNull:
		b.WriteString("null")
	case bsoncore.TypeUndefined:
		b.WriteString("undefined")
	case bsoncore.TypeBoolean:
		b.WriteString(strconv.FormatBool(v.Boolean()))
	case bsoncore.TypeEmbeddedDocument:
		showElements(b, v.Data, "{", "}", true)
	case bsoncore.TypeArray:
		showElements(b, v.Data, "[", "]", false)
	case bsoncore.TypeObjectID:
		id := v.ObjectID()
		b.WriteString("ObjectId('" + hex.EncodeToString(id[:]) + "')")
	case bsoncore.TypeRegex:
		pattern, options := v.Regex()
		b.WriteString("/" + pattern + "/" + options)
	case bsoncore.TypeDecimal128:
		n, _ := number.Of(v)
		b.WriteString(n.Decimal().String())
	case bsoncore.TypeDateTime:
		fmt.Fprintf(b, "new Date(%d)", v.DateTime())
	case bsoncore.TypeTimestamp:
		t, i := v.Timestamp()
		fmt.Fprintf(b, "Timestamp(%d, %d)", t, i)
	case bsoncore.TypeBinary:
		subtype, data := v.Binary()
		fmt.Fprintf(b, "BinData(%d, %X)", subtype, data[:min(len(data), longestShown)])
	case bsoncore.TypeJavaScript:
		b.WriteString(v.JavaScript())
	case bsoncore.TypeMinKey:
		b.WriteString("MinKey")
	case bsoncore.TypeMaxKey:
		b.WriteString("MaxKey")
	default:
		b.WriteString(v.String())
	}
}

func showDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan.0"
	case math.IsInf(f, 1):
		return "inf.0"
	case math.IsInf(f, -1):
		return "-inf.0"
	}
	s := fmt.Sprintf("%.15g", f)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func showElements(b *strings.Builder, doc []byte, left, right string, names bool) {
	b.WriteString(left)
	separator := " "
	for e := path.ElementsOf(doc); ; {
		name, v, ok := e.Next()
		if !ok {
			break
		}
		b.WriteString(separator)
		if names {
			b.Write(name)
			b.WriteString(": ")
		}
		showTo(b, v)
		separator = ", "
	}
	if separator == ", " {
		b.WriteString(" ")
	}
	b.WriteString(right)
}
