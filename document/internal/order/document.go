package order

import (
	"bytes"
	"cmp"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
)

// elements walks the elements of a document or an array without allocating.
type elements []byte

// elementsOf returns the elements of a document: what is between its length and its terminator.
func elementsOf(doc []byte) elements {
	if len(doc) < bsoncore.EmptyDocumentLength {
		return nil // a nil Document is an empty one
	}
	return doc[4 : len(doc)-1]
}

// next returns the first element and steps behind it.
func (e *elements) next() (name []byte, v bsoncore.Value, ok bool) {
	src := *e
	if len(src) == 0 {
		return nil, bsoncore.Value{}, false
	}
	n := bytes.IndexByte(src[1:], 0)
	if n < 0 {
		return nil, bsoncore.Value{}, false
	}
	v, rest, ok := bsoncore.ReadValue(src[n+2:], bsoncore.Type(src[0]))
	*e = rest
	return src[1 : n+1], v, ok
}

// CompareDocuments compares field by field, as Compare does for embedded documents: the class of the value, the name, the value.
// The document that ends first is the lower one.
func CompareDocuments(a, b bsoncore.Document, c *collation.Collation) int {
	x, y := elementsOf(a), elementsOf(b)
	for {
		name, v, ok := x.next()
		other, w, more := y.next()
		if !ok || !more {
			return compareBool(ok, more)
		}
		cl := ClassOf(v.Type)
		if r := cmp.Compare(cl, ClassOf(w.Type)); r != 0 {
			return r
		}
		if r := bytes.Compare(name, other); r != 0 {
			return r
		}
		if r := compareSameClass(cl, v, w, c); r != 0 {
			return r
		}
	}
}

// compareArrays compares element by element, whatever the elements' names are.
func compareArrays(a, b []byte, c *collation.Collation) int {
	x, y := elementsOf(a), elementsOf(b)
	for {
		_, v, ok := x.next()
		_, w, more := y.next()
		if !ok || !more {
			return compareBool(ok, more)
		}
		if r := Compare(v, w, c); r != 0 {
			return r
		}
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
