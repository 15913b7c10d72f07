package document

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// shellForm writes a document the way error messages do: { a: 1, b: "x" }.
func shellForm(doc document) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range elementsOf(doc) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + e.Key() + ": " + shellValue(e.Value()))
	}
	b.WriteString(" }")
	return b.String()
}

func shellValue(v bsoncore.Value) string {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		return shellForm(v.Document())
	case bsoncore.TypeArray:
		parts := []string{}
		for _, e := range elementsOf(document(v.Data)) {
			parts = append(parts, shellValue(e.Value()))
		}
		return "[ " + strings.Join(parts, ", ") + " ]"
	case bsoncore.TypeString:
		return strconv.Quote(v.StringValue())
	case bsoncore.TypeInt32:
		return strconv.Itoa(int(v.Int32()))
	case bsoncore.TypeInt64:
		return strconv.FormatInt(v.Int64(), 10)
	case bsoncore.TypeDouble:
		text := strconv.FormatFloat(v.Double(), 'g', -1, 64)
		if !strings.ContainsAny(text, ".eNI") {
			text += ".0"
		}
		return text
	case bsoncore.TypeNull, bsoncore.TypeUndefined:
		return "null"
	case bsoncore.TypeObjectID:
		return "ObjectId('" + bson.ObjectID(v.ObjectID()).Hex() + "')"
	case bsoncore.TypeBoolean:
		return strconv.FormatBool(v.Boolean())
	case bsoncore.TypeDateTime:
		return "new Date(" + strconv.FormatInt(v.DateTime(), 10) + ")"
	}
	return v.String()
}
