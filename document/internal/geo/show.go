package geo

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// longestShown is how much of a value an error shows.
const longestShown = 200

// show writes a value for an error, the way MongoDB does.
func show(v bsoncore.Value) string {
	var b strings.Builder
	showTo(&b, v)
	if b.Len() > longestShown {
		return b.String()[:longestShown] + "..."
	}
	return b.String()
}

func showTo(b *strings.Builder, v bsoncore.Value) {
	if b.Len() > longestShown {
		return
	}
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		b.WriteString("{")
		elements, _ := bsoncore.Document(v.Data).Elements()
		for i, e := range elements {
			separate(b, i)
			b.WriteString(e.Key() + ": ")
			showTo(b, e.Value())
		}
		end(b, len(elements), "}")
	case bsoncore.TypeArray:
		b.WriteString("[")
		values := members(v)
		for i, member := range values {
			separate(b, i)
			showTo(b, member)
		}
		end(b, len(values), "]")
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		b.WriteString(strconv.FormatInt(v.AsInt64(), 10))
	case bsoncore.TypeDouble:
		s := strconv.FormatFloat(v.Double(), 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		b.WriteString(s)
	default:
		b.WriteString(v.String())
	}
}

func separate(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteString(",")
	}
	b.WriteString(" ")
}

func end(b *strings.Builder, n int, bracket string) {
	if n > 0 {
		b.WriteString(" ")
	}
	b.WriteString(bracket)
}
