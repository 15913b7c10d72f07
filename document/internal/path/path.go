// Package path walks dotted paths through documents the way MongoDB's filters do: through embedded documents, and through the
// elements of arrays, by position and implicitly.
//
// It promises to call back with values that are slices of what it walks over, in the order of the document, and to allocate
// nothing. It expects valid BSON: what is not is treated as if it ended there. It does not fail; only
// Split and CheckName do, which refuse what is no path.
//
// The rules, for {"a.b": ...}: a field that is not there is a missing value (Type 0), and so is everything below a value that
// is neither document nor array. Below an array, each element that is a document is looked into; other elements give nothing,
// not even a missing value. A component that is a number names a field of a document, and an element of an array too: both are
// looked at when the element is itself a document. An element of an array that a number has named is not looked through
// further when the path ends with it, but the array that a path's last field name leads to is: its elements come one by one,
// and then the array itself.
package path

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Fields is a document of which single top-level fields can be had without decoding the rest: a raw BSON document, or a
// stored record of package codec. The value is valid until the next Lookup.
type Fields interface {
	Lookup(name string) (v bsoncore.Value, ok bool)
}

// Whole is implemented by Fields that can give the whole document too, appended to dst.
type Whole interface {
	Fields
	Document(dst []byte) ([]byte, error)
}

// Document makes Fields of a raw BSON document.
type Document bsoncore.Document

// Lookup implements Fields. The value stays valid as long as the document.
func (d Document) Lookup(name string) (bsoncore.Value, bool) { return Lookup(d, name) }

// Path is a dotted path taken apart. The zero value is the empty path, which has no components.
type Path struct {
	text       string
	components []Component
}

// Component is a field's name, which may name a position in an array.
type Component struct {
	Name     string
	Position int // -1: the name is not the number of a position
}

// Parse takes a dotted path apart. Every string is a path; components may be empty.
func Parse(s string) Path {
	if s == "" {
		return Path{components: []Component{{Position: -1}}}
	}
	p := Path{text: s, components: make([]Component, 0, 1+strings.Count(s, "."))}
	for name := range strings.SplitSeq(s, ".") {
		p.components = append(p.components, Component{Name: name, Position: positionOf(name)})
	}
	return p
}

// positionOf returns the position that a name is, as arrays write theirs: digits without leading zeros.
func positionOf(name string) int {
	if name == "" || len(name) > 9 || len(name) > 1 && name[0] == '0' {
		return -1
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return -1
		}
	}
	n, err := strconv.Atoi(name)
	if err != nil {
		return -1
	}
	return n
}

// String returns the path as it was parsed.
func (p Path) String() string { return p.text }

// Components returns the components. They must not be changed.
func (p Path) Components() []Component { return p.components }

// First returns the name of the top-level field, "" for the empty path.
func (p Path) First() string {
	if len(p.components) == 0 {
		return ""
	}
	return p.components[0].Name
}

// Get follows the components through documents only: it stops at the first array, which it returns with the components that
// are left. A value that is not there is missing.
func Get(v bsoncore.Value, components []Component) (found bsoncore.Value, rest []Component) {
	for i := range components {
		switch v.Type {
		case bsoncore.TypeEmbeddedDocument:
			v, _ = Lookup(v.Data, components[i].Name)
		case bsoncore.TypeArray:
			return v, components[i:]
		default:
			return bsoncore.Value{}, nil
		}
	}
	return v, nil
}
