package update

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

// elementsOf returns the values of an array or a document; nil when there are none.
func elementsOf(v bsoncore.Value) (values []bsoncore.Value) {
	for s := path.PlacesOf(v.Data); ; {
		e, ok := s.Next()
		if !ok {
			return values
		}
		values = append(values, e.Value)
	}
}

// isComposite reports whether values of type t have elements.
func isComposite(t bsoncore.Type) bool {
	return t == bsoncore.TypeEmbeddedDocument || t == bsoncore.TypeArray
}

// depthOf returns how many documents and arrays are nested in v, itself included.
func depthOf(v bsoncore.Value) int {
	if !isComposite(v.Type) {
		return 0
	}
	deepest := 0
	for s := path.PlacesOf(v.Data); ; {
		e, ok := s.Next()
		if !ok {
			return deepest + 1
		}
		if isComposite(e.Value.Type) {
			deepest = max(deepest, depthOf(e.Value))
		}
	}
}
