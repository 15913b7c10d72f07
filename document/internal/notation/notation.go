// Package notation writes values the way MongoDB's messages and explain show them: { a: 1.0, b: "x", c: [ 1, 2 ] }.
//
// It promises that what is long can be cut before it is put together, and that no nesting is too deep for it: what lies deeper than any
// stored document is left out. Values have to be well-formed.
package notation

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

const (
	longest = 1000 // bytes of what is cut: a message is for people, and must not carry a document of 16 MiB
	deepest = 250
	cut     = "..."
)

// In brief a single value is shown as MongoDB shows it: what is as long as the first number of a pair, in bytes, is cut to the second.
const (
	longText, shownText   = 160, 150
	longCode, shownCode   = 80, 70
	longBytes, shownBytes = 81, 70
)

// Whole writes a value.
func Whole(v bsoncore.Value) string {
	var b strings.Builder
	Write(&b, v)
	return b.String()
}

// Write is Whole to a builder.
func Write(b *strings.Builder, v bsoncore.Value) {
	w := writer{b: b, room: math.MaxInt}
	w.value(v, 0)
}

// Brief writes a value, cut at some length.
func Brief(v bsoncore.Value) string {
	var b strings.Builder
	w := writer{b: &b, room: longest, brief: true}
	w.value(v, 0)
	if b.Len() > longest {
		return begin(b.String(), longest) + cut
	}
	return b.String()
}

// begin is the first n bytes of a text, or a few less: no character is cut in two.
func begin(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Document is Brief of a document.
func Document(doc bsoncore.Document) string {
	return Brief(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc})
}

// Element is Brief with a name in front: "a: 1".
func Element(name string, v bsoncore.Value) string { return name + ": " + Brief(v) }

// writer writes until there is no room.
type writer struct {
	b     *strings.Builder
	room  int
	brief bool // long values are cut
}

func (w *writer) full() bool { return w.b.Len() > w.room }

// shown is a text, or its beginning where it is long.
func (w *writer) shown(s string, long, shown int) string {
	if !w.brief || len(s) < long {
		return s
	}
	return begin(s, shown) + cut
}

// text writes text, of which no more than there is room for and a little.
func (w *writer) text(before, s, behind string) {
	w.b.WriteString(before)
	w.b.WriteString(s[:min(len(s), w.room)])
	w.b.WriteString(behind)
}

func (w *writer) value(v bsoncore.Value, depth int) {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		w.elements(v.Data, "{}", true, depth)
	case bsoncore.TypeArray:
		w.elements(v.Data, "[]", false, depth)
	case bsoncore.TypeDouble:
		w.b.WriteString(Double(v.Double()))
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		w.b.WriteString(strconv.FormatInt(v.AsInt64(), 10))
	case bsoncore.TypeDecimal128:
		high, low := v.Decimal128()
		w.b.WriteString(bson.NewDecimal128(high, low).String())
	case bsoncore.TypeString:
		w.text(`"`, w.shown(v.StringValue(), longText, shownText), `"`)
	case bsoncore.TypeSymbol:
		w.text(`"`, w.shown(v.Symbol(), longText, shownText), `"`)
	case bsoncore.TypeBoolean:
		w.b.WriteString(strconv.FormatBool(v.Boolean()))
	case 0, bsoncore.TypeNull:
		w.b.WriteString("null")
	case bsoncore.TypeUndefined:
		w.b.WriteString("undefined")
	case bsoncore.TypeMinKey:
		w.b.WriteString("MinKey")
	case bsoncore.TypeMaxKey:
		w.b.WriteString("MaxKey")
	case bsoncore.TypeObjectID:
		w.b.WriteString("ObjectId('" + hex.EncodeToString(v.Data) + "')")
	case bsoncore.TypeDateTime:
		w.b.WriteString("new Date(" + strconv.FormatInt(v.DateTime(), 10) + ")")
	case bsoncore.TypeTimestamp:
		t, i := v.Timestamp()
		fmt.Fprintf(w.b, "Timestamp(%d, %d)", t, i)
	default:
		w.rare(v, depth)
	}
}

func (w *writer) rare(v bsoncore.Value, depth int) {
	switch v.Type {
	case bsoncore.TypeBinary:
		subtype, data := v.Binary()
		behind := ")"
		if w.brief && len(data) >= longBytes {
			data, behind = data[:shownBytes], cut+")"
		}
		w.text("BinData("+strconv.Itoa(int(subtype))+", ", strings.ToUpper(hex.EncodeToString(data)), behind)
	case bsoncore.TypeRegex:
		pattern, options := v.Regex()
		w.text("/", pattern, "/"+options)
	case bsoncore.TypeDBPointer:
		namespace, id := v.DBPointer()
		w.text("DBRef('", namespace, "',"+hex.EncodeToString(id[:])+")")
	case bsoncore.TypeJavaScript:
		w.text("", w.shown(v.JavaScript(), longCode, shownCode), "")
	case bsoncore.TypeCodeWithScope:
		code, scope := v.CodeWithScope()
		w.text("CodeWScope( ", code, ", ")
		w.elements(scope, "{}", true, depth)
		w.b.WriteString(")")
	default:
		w.b.WriteString(v.String())
	}
}

// elements writes a document, or an array without the names.
func (w *writer) elements(doc []byte, brackets string, named bool, depth int) {
	w.b.WriteByte(brackets[0])
	n := 0
	for rest := doc[min(4, len(doc)):]; len(rest) > 1 && !w.full(); n++ {
		e, behind, ok := bsoncore.ReadElement(rest)
		if !ok {
			break
		}
		rest = behind
		if n > 0 {
			w.b.WriteByte(',')
		}
		w.b.WriteByte(' ')
		if depth == deepest {
			w.b.WriteString(cut)
			break
		}
		if named {
			w.b.WriteString(e.Key() + ": ")
		}
		w.value(e.Value(), depth+1)
	}
	if n > 0 {
		w.b.WriteByte(' ')
	}
	w.b.WriteByte(brackets[1])
}

// Double writes a double, with 16 digits, and so that nobody takes it for an integer.
func Double(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan.0"
	case math.IsInf(f, 1):
		return "inf.0"
	case math.IsInf(f, -1):
		return "-inf.0"
	}
	s := fmt.Sprintf("%.16g", f)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
