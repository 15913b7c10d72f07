package bucket

import (
	"errors"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// node is a value of a reference object: one with parts, or one with a stream.
type node struct {
	name  string
	kind  bsoncore.Type // of one with parts; else 0
	parts []*node
	s     *stream
}

// objects reads objects of the same fields up to their end.
func (c *column) objects(control bsoncore.Value) error {
	t := bsoncore.TypeEmbeddedDocument
	if control.Type == controlNestedArray {
		t = bsoncore.TypeArray
	}
	reference, rest, ok := bsoncore.ReadValue(c.rest, t)
	if !ok || reference.Validate() != nil {
		return malformed("a column has a reference object that is no BSON")
	}
	c.rest = rest
	count := 0
	root, err := newNode("", reference, control.Type != controlObjects, 0, &count)
	if err != nil {
		return err
	}
	if count == 0 {
		return malformed("a column has a reference object without a value")
	}
	for {
		values := make([]bsoncore.Value, 0, count)
		ended := false
		if err := root.advance(c, &values, &ended); err != nil || ended {
			return err
		}
		row, _ := root.build(&values)
		if err := errors.Join(c.budget.spend(count, len(row.Data)), c.add(row)); err != nil {
			return err
		}
	}
}

// newNode makes the node of a value.
func newNode(name string, v bsoncore.Value, arrays bool, depth int, count *int) (*node, error) {
	if depth > maxDepth {
		return nil, malformed("a column has objects that are nested too deep")
	}
	n := &node{name: name}
	if v.Type != bsoncore.TypeEmbeddedDocument && (v.Type != bsoncore.TypeArray || !arrays) {
		if !isWhole(v) {
			return nil, malformed("a column has a reference object with a value of type %#x that is no BSON", byte(v.Type))
		}
		n.s = new(stream)
		n.s.restart(v)
		if *count++; *count > maxInterleavedParts {
			return nil, malformed("a column has objects of more than %d parts", maxInterleavedParts)
		}
		return n, nil
	}
	elements, err := bsoncore.Document(v.Data).Elements()
	if err != nil {
		return nil, malformed("a column has an object that is no BSON: %v", err)
	}
	n.kind = v.Type
	for _, e := range elements {
		part, err := newNode(e.Key(), e.Value(), arrays, depth+1, count)
		if err != nil {
			return nil, err
		}
		n.parts = append(n.parts, part)
	}
	return n, nil
}

// advance reads the next value of every stream, in their order. The end comes in front of the first one.
func (n *node) advance(c *column, values *[]bsoncore.Value, ended *bool) error {
	if n.s == nil {
		for _, part := range n.parts {
			if err := part.advance(c, values, ended); err != nil || *ended {
				return err
			}
		}
		return nil
	}
	v, state, err := n.s.next(c, false)
	if err != nil {
		return err
	}
	if state == stateEnd {
		if len(*values) > 0 {
			return malformed("a column ends within an object")
		}
		*ended = true
	}
	*values = append(*values, v)
	return nil
}

// build makes the value of a node from those of its streams, which it takes from the front of values. What has none is missing, but an
// object that is empty in the reference.
func (n *node) build(values *[]bsoncore.Value) (v bsoncore.Value, found bool) {
	if n.s != nil {
		v = (*values)[0]
		*values = (*values)[1:]
		return v, v.Type != 0
	}
	start, dst := bsoncore.AppendDocumentStart(nil)
	for i, part := range n.parts {
		x, there := part.build(values)
		found = found || there
		if x.Type == 0 {
			continue
		}
		name := part.name
		if n.kind == bsoncore.TypeArray {
			name = strconv.Itoa(i)
		}
		dst = bsoncore.AppendValueElement(dst, name, x)
	}
	if !found && len(n.parts) > 0 {
		return bsoncore.Value{}, false
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, start) // which fails on a wrong place only
	return bsoncore.Value{Type: n.kind, Data: dst}, found
}
