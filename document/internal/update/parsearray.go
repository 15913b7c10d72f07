package update

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// first returns the first element of a document.
func first(doc []byte) (path.Placed, bool) {
	s := path.PlacesOf(doc)
	return s.Next()
}

// only returns the first element of a document that has no other.
func only(doc []byte) (path.Placed, bool) {
	s := path.PlacesOf(doc)
	e, ok := s.Next()
	_, more := s.Next()
	return e, ok && !more
}

// hasEach reports whether a document has a field $each.
func hasEach(v bsoncore.Value) bool {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return false
	}
	each, _ := member(v, "$each")
	return each.Type != 0
}

// depthOfAll is the greatest of the values' depths.
func depthOfAll(values []bsoncore.Value) int {
	deepest := 0
	for _, v := range values {
		deepest = max(deepest, depthOf(v))
	}
	return deepest
}

func (op *operation) parseAddToSet(v bsoncore.Value) error {
	op.values = []bsoncore.Value{v}
	if v.Type == bsoncore.TypeEmbeddedDocument {
		if e, ok := first(v.Data); ok && string(e.Name) == "$each" {
			if e.Value.Type != bsoncore.TypeArray {
				return mongoerror.New(mongoerror.TypeMismatch,
					"The argument to $each in $addToSet must be an array but it was of type %s", mongoerror.TypeName(e.Value.Type))
			}
			if _, alone := only(v.Data); !alone {
				return mongoerror.New(mongoerror.BadValue, "Found unexpected fields after $each in $addToSet: %s", notation.Document(v.Data))
			}
			op.values = elementsOf(e.Value)
		}
	}
	op.depth = depthOfAll(op.values)
	return nil
}

func (op *operation) parsePush(v bsoncore.Value) error {
	if !hasEach(v) {
		op.values = []bsoncore.Value{v}
		return nil
	}
	c := new(pushClauses)
	var seen []string
	for s := path.PlacesOf(v.Data); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		if slices.Contains(seen, string(e.Name)) {
			return mongoerror.New(mongoerror.BadValue, "Only one %s is supported.", e.Name)
		}
		seen = append(seen, string(e.Name))
		var err error
		switch string(e.Name) {
		case "$each":
			if e.Value.Type != bsoncore.TypeArray {
				return mongoerror.New(mongoerror.BadValue, "The argument to $each in $push must be an array but it was of type: %s",
					mongoerror.TypeName(e.Value.Type))
			}
			op.values = elementsOf(e.Value)
		case "$slice":
			if c.slice, c.sliced = integer(e.Value); !c.sliced {
				err = mongoerror.New(mongoerror.BadValue, "The value for $slice must be an integer value but was given type: %s",
					mongoerror.TypeName(e.Value.Type))
			}
		case "$position":
			if c.position, c.positioned = integer(e.Value); !c.positioned {
				err = mongoerror.New(mongoerror.BadValue, "The value for $position must be an integer value, not of type: %s",
					mongoerror.TypeName(e.Value.Type))
			}
		case "$sort":
			c.sort, err = parseSort(e.Value)
		default:
			err = mongoerror.New(mongoerror.BadValue, "Unrecognized clause in $push: %s", e.Name)
		}
		if err != nil {
			return err
		}
	}
	op.depth = depthOfAll(op.values)
	if c.sliced || c.positioned || c.sort != nil {
		op.push = c
	}
	return nil
}

// parseSort parses the operand of $sort in $push.
func parseSort(v bsoncore.Value) ([]sortKey, error) {
	if order.IsNumber(v.Type) {
		n, ok := integer(v)
		if !ok || n != 1 && n != -1 {
			return nil, mongoerror.New(mongoerror.BadValue, "The $sort element value must be either 1 or -1")
		}
		return []sortKey{{descending: n < 0}}, nil
	}
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.BadValue,
			"The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields")
	}
	var keys []sortKey
	for s := path.PlacesOf(v.Data); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		n, ok := integer(e.Value)
		if !ok || n != 1 && n != -1 {
			return nil, mongoerror.New(mongoerror.BadValue, "The sort element value must be either 1 or -1")
		}
		if len(e.Name) == 0 {
			return nil, mongoerror.New(mongoerror.BadValue, "The sort field cannot be empty")
		}
		path := strings.Split(string(e.Name), ".")
		for _, component := range path {
			if component == "" {
				return nil, mongoerror.New(mongoerror.BadValue, "The sort field is a dotted field but has an empty part: %s", e.Name)
			}
		}
		keys = append(keys, sortKey{path: path, descending: n < 0})
	}
	if keys == nil {
		return nil, mongoerror.New(mongoerror.BadValue, "The sort pattern is empty when it should be a set of fields.")
	}
	return keys, nil
}
