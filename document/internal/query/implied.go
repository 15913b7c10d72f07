package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/path"
)

// implied returns conditions that every document meets for which an expression is true: what an index can be used for. Only equality
// with a constant implies anything: the other comparisons of expressions cross types, where those of filters do not.
func implied(v bsoncore.Value, let []expression.Variable) []Node {
	op, operand, ok := single(v)
	if !ok {
		return nil
	}
	operands, _ := bsoncore.Array(operand.Data).Values()
	if operand.Type != bsoncore.TypeArray {
		return nil
	}
	switch {
	case op == "$and":
		var nodes []Node
		for _, o := range operands {
			nodes = append(nodes, implied(o, let)...)
		}
		return nodes
	case op == "$eq" && len(operands) == 2:
		for i, o := range operands {
			p, isField := fieldOf(o)
			if c, ok := constantOf(operands[1-i], let); ok && isField {
				return []Node{&Comparison{Path: p, Op: Eq, Value: c, implied: true}}
			}
		}
	case op == "$in" && len(operands) == 2:
		if p, isField := fieldOf(operands[0]); isField {
			return impliedIn(p, operands[1], let)
		}
	}
	return nil
}

// impliedIn returns the condition of {$in: ["$p", [...]]}.
func impliedIn(p string, list bsoncore.Value, let []expression.Variable) []Node {
	if list.Type != bsoncore.TypeArray {
		return nil
	}
	in := &In{Path: p, implied: true}
	for e := path.ElementsOf(list.Data); ; {
		_, v, ok := e.Next()
		if !ok {
			return []Node{in}
		}
		c, ok := constantOf(v, let)
		if !ok {
			return nil
		}
		in.Values = append(in.Values, c)
	}
}

// single returns the only field of a document.
func single(v bsoncore.Value) (name string, operand bsoncore.Value, ok bool) {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return "", bsoncore.Value{}, false
	}
	e := path.ElementsOf(v.Data)
	field, operand, ok := e.Next()
	if _, _, more := e.Next(); more {
		return "", bsoncore.Value{}, false
	}
	return string(field), operand, ok
}

// fieldOf returns the path of an operand that is "$a.b".
func fieldOf(v bsoncore.Value) (string, bool) {
	if v.Type != bsoncore.TypeString {
		return "", false
	}
	p, ok := strings.CutPrefix(v.StringValue(), "$")
	return p, ok && p != "" && p[0] != '$'
}

// constantOf returns the value of an operand that is a constant or a variable from outside, when equality with it means the same in
// expressions and in filters: not for null, which stands for missing fields in filters, nor for documents and arrays.
func constantOf(v bsoncore.Value, let []expression.Variable) (bsoncore.Value, bool) {
	if op, operand, ok := single(v); ok && op == "$literal" {
		return operand, comparesAlike(operand.Type)
	}
	if v.Type == bsoncore.TypeString {
		s := v.StringValue()
		if name, isVariable := strings.CutPrefix(s, "$$"); isVariable {
			for _, x := range slices.Backward(let) { // of several with one name the last counts
				if x.Name == name {
					return x.Value, comparesAlike(x.Value.Type)
				}
			}
			return bsoncore.Value{}, false
		}
		return v, !strings.HasPrefix(s, "$")
	}
	return v, comparesAlike(v.Type)
}

func comparesAlike(t bsoncore.Type) bool {
	switch t {
	case bsoncore.TypeNull, bsoncore.TypeUndefined, 0, bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray, bsoncore.TypeRegex:
		return false
	}
	return true
}
