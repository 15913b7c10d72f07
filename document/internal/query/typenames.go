package query

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// typeName returns the alias of a type, as messages have it.
func typeName(t bsoncore.Type) string {
	for _, name := range [...]string{
		"double", "string", "object", "array", "binData", "undefined", "objectId", "bool", "date", "null", "regex", "dbPointer",
		"javascript", "symbol", "javascriptWithScope", "int", "timestamp", "long", "decimal", "minKey", "maxKey",
	} {
		if known, _ := typeNamed(name); known == t {
			return name
		}
	}
	return "missing"
}
