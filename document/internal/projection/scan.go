package projection

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
