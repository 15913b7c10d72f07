package plan

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/query"
)

// compared is a comparison of a field with a constant in $expr: of the value as a whole, with those of all types.
type compared struct {
	op    query.Op
	value bsoncore.Value
	alone bool // it is all that the $expr says
}

// expressions appends the conditions of an $expr that an index can follow: comparisons with constants, and conjunctions of them.
func (p *planner) expressions(out []leaf, spec bsoncore.Value, conjunct int, alone bool) []leaf {
	doc, ok := spec.DocumentOK()
	if !ok {
		return out
	}
	e, err := doc.IndexErr(0)
	if err != nil {
		return out
	}
	operands, err := bsoncore.Array(e.Value().Data).Values()
	if e.Value().Type != bsoncore.TypeArray || err != nil {
		return out
	}
	if e.Key() == "$and" {
		for _, one := range operands {
			out = p.expressions(out, one, conjunct, alone && len(operands) == 1)
		}
		return out
	}
	op, flipped, ok := operatorOf(e.Key())
	if !ok || len(operands) != 2 {
		return out
	}
	o := &expression.Options{Collation: p.q.Collation, Let: p.q.Let, Now: p.q.Now, Call: &p.constants}
	left, err := expression.Parse(operands[0], o)
	if err != nil {
		return out
	}
	right, err := expression.Parse(operands[1], o)
	if err != nil {
		return out
	}
	path, ok := left.FieldPath()
	v, constant := right.Constant()
	if !ok || !constant {
		op = flipped
		path, ok = right.FieldPath()
		v, constant = left.Constant()
	}
	if !ok || !constant || strings.HasPrefix(path, "$") || numeric(path) {
		return out
	}
	return append(out, leaf{path: path, conjunct: conjunct, compared: &compared{op, v, alone}})
}

// operatorOf returns a comparison by its name, and what it becomes with its operands exchanged.
func operatorOf(name string) (op, flipped query.Op, ok bool) {
	switch name {
	case "$eq":
		return query.Eq, query.Eq, true
	case "$lt":
		return query.Lt, query.Gt, true
	case "$lte":
		return query.Lte, query.Gte, true
	case "$gt":
		return query.Gt, query.Lt, true
	case "$gte":
		return query.Gte, query.Lte, true
	}
	return 0, 0, false
}

// expression returns the condition of a comparison in $expr. The entries of an array are its elements, which say nothing of the
// array as a whole but that it is no single value.
func (b *bounder) expression(n *compared) (c condition, ok bool) {
	switch n.value.Type {
	case bsoncore.TypeArray, bsoncore.TypeNull, bsoncore.TypeUndefined, bsoncore.TypeMinKey, bsoncore.TypeMaxKey, 0:
		return condition{}, false
	}
	if !b.comparable(n.value) || n.op != query.Eq && (b.descends || b.Hashed) {
		return condition{}, false
	}
	c = of(b.Eq(n.value))
	if b.descends || !n.alone {
		c.tight = inexact
	}
	if n.op == query.Eq {
		return c, true
	}
	others := b.Complement(c.intervals)
	below := n.op == query.Lt || n.op == query.Lte
	side := others[len(others)-1:]
	if below {
		side = others[:1]
	}
	if n.op == query.Lt || n.op == query.Gt {
		c.intervals = side
	} else {
		c.intervals = index.Union(c.intervals, side)
	}
	c.missing = below
	return c, true
}
