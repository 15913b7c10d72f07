// Package wellformed gives fuzz targets the documents that the code behind the door of package document is given. That code trusts the
// lengths inside of a document, to its deepest element, which the checks of the driver leave out: a target that hands it bytes which only
// passed those finds faults that no client can cause, and stops there.
package wellformed

import (
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// maxDepth is how deep documents and arrays may lie in each other.
const maxDepth = 100

// Document returns what the driver makes of any bytes: a document that is whole, of text in UTF-8, and not too deep. ok is false where
// it makes none of them. Names may stand twice in it, as in a filter.
func Document(data []byte) (doc bsoncore.Document, ok bool) {
	var loose bson.D
	if bson.Unmarshal(data, &loose) != nil || !allowed(loose, 1) {
		return nil, false
	}
	whole, err := bson.Marshal(loose)
	return whole, err == nil
}

// allowed reports whether a value is text in UTF-8, or has only such text in it, and is not too deep.
func allowed(v any, depth int) bool {
	switch v := v.(type) {
	case bson.D:
		for _, e := range v {
			if !utf8.ValidString(e.Key) || !allowed(e.Value, depth+1) {
				return false
			}
		}
		return depth <= maxDepth
	case bson.A:
		for _, e := range v {
			if !allowed(e, depth+1) {
				return false
			}
		}
		return depth <= maxDepth
	case bson.CodeWithScope:
		return utf8.ValidString(string(v.Code)) && allowed(v.Scope, depth+1)
	case bson.Regex:
		return utf8.ValidString(v.Pattern + v.Options)
	case bson.DBPointer:
		return utf8.ValidString(v.DB)
	case bson.JavaScript:
		return utf8.ValidString(string(v))
	case bson.Symbol:
		return utf8.ValidString(string(v))
	case string:
		return utf8.ValidString(v)
	}
	return true
}
