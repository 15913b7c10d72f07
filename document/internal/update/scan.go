package update

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

// element is one element of a document. Its bytes are doc[start:end]; name and value refer to the document.
type element struct {
	start, end int
	name       []byte
	value      bsoncore.Value
}

// elements walks over the elements of a document or an array, and knows where they are.
type elements struct {
	rest path.Elements
	at   int
}

func elementsIn(doc []byte) elements { return elements{rest: path.ElementsOf(doc), at: 4} }

func (s *elements) next() (e element, ok bool) {
	name, v, ok := s.rest.Next()
	if !ok {
		return element{}, false
	}
	start := s.at
	s.at += 1 + len(name) + 1 + len(v.Data)
	return element{start: start, end: s.at, name: name, value: v}, true
}

// elementsOf appends the values of an array or a document to dst.
func elementsOf(dst []bsoncore.Value, v bsoncore.Value) []bsoncore.Value {
	for s := elementsIn(v.Data); ; {
		e, ok := s.next()
		if !ok {
			return dst
		}
		dst = append(dst, e.value)
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
	for s := elementsIn(v.Data); ; {
		e, ok := s.next()
		if !ok {
			return deepest + 1
		}
		if isComposite(e.value.Type) {
			deepest = max(deepest, depthOf(e.value))
		}
	}
}
