package path

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// Placed is one element of a document, and where it is. Its bytes are doc[Start:End]; Name and Value refer to the document.
type Placed struct {
	Start, End int
	Name       []byte
	Value      bsoncore.Value
}

// Places walks over the elements of a document or an array, and knows where they are.
type Places struct {
	rest Elements
	at   int
}

// PlacesOf begins with the first element.
func PlacesOf(doc []byte) Places { return Places{rest: ElementsOf(doc), at: 4} }

// Next returns the next element; ok is false at the end.
func (s *Places) Next() (e Placed, ok bool) {
	name, v, ok := s.rest.Next()
	if !ok {
		return Placed{}, false
	}
	start := s.at
	s.at += 1 + len(name) + 1 + len(v.Data)
	return Placed{Start: start, End: s.at, Name: name, Value: v}, true
}
