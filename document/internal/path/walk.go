package path

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// Leaf is what becomes of an array to which a path leads.
type Leaf uint8

const (
	// Each gives the elements of the array, and then the array itself: comparisons.
	Each Leaf = iota
	// Array gives the array only: $size, $elemMatch.
	Array
)

// Visit is called with a value that a path leads to, and the position of the element of the outermost array that was looked
// through on the way, -1 without one: an element that the path names by its position does not count. It returns true to end
// the walk.
type Visit func(v bsoncore.Value, position int) bool

// Walk visits the values to which a path leads from a document. It reports whether a visit has ended it.
func (p Path) Walk(doc Fields, leaf Leaf, visit Visit) bool {
	if len(p.components) == 0 {
		return false
	}
	v, ok := doc.Lookup(p.components[0].Name)
	if !ok {
		v = bsoncore.Value{}
	}
	return Walk(v, p.components[1:], leaf, visit)
}

// Walk visits the values to which the components lead from a value of a field.
func Walk(v bsoncore.Value, components []Component, leaf Leaf, visit Visit) bool {
	v, rest := Get(v, components)
	return walk(v, rest, leaf, -1, visit)
}

// walk visits what is in v, of which Get has returned that rest is left.
func walk(v bsoncore.Value, rest []Component, leaf Leaf, outer int, visit Visit) bool {
	if v.Type != bsoncore.TypeArray || len(rest) == 0 && leaf == Array {
		return visit(v, outer)
	}
	return walkArray(v, rest, leaf, outer, visit)
}

// walkArray looks through an array: at its elements and itself, when nothing is left of the path, and else into them.
func walkArray(array bsoncore.Value, rest []Component, leaf Leaf, outer int, visit Visit) bool {
	elements := ElementsOf(array.Data)
	for i := 0; ; i++ {
		_, v, ok := elements.Next()
		if !ok {
			break
		}
		position := i
		if outer >= 0 {
			position = outer
		}
		if len(rest) == 0 {
			if visit(v, position) {
				return true
			}
			continue
		}
		if v.Type == bsoncore.TypeEmbeddedDocument {
			if found, left := Get(v, rest); walk(found, left, leaf, position, visit) {
				return true
			}
		}
		if i == rest[0].Position && walkElement(v, rest[1:], leaf, outer, visit) {
			return true
		}
	}
	return len(rest) == 0 && visit(array, outer)
}

// walkElement visits what is in an element that the path names by its position.
func walkElement(v bsoncore.Value, rest []Component, leaf Leaf, outer int, visit Visit) bool {
	switch {
	case len(rest) == 0:
		return visit(v, outer)
	case v.Type == bsoncore.TypeEmbeddedDocument:
		found, left := Get(v, rest)
		return walk(found, left, leaf, outer, visit)
	case v.Type == bsoncore.TypeArray:
		return walkArray(v, rest, leaf, outer, visit)
	}
	return false
}
