package plan

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/query"
)

// otherPath is pathOf for conditions on types and other properties of a value.
func otherPath(n query.Node) (path string, ok bool) {
	switch n := n.(type) {
	case *query.Type:
		return n.Path, true
	case *query.Mod:
		return n.Path, true
	case *query.Size:
		return n.Path, true
	case *query.Bits:
		return n.Path, true
	}
	return "", false
}

// typed is condition for $type and $mod.
func (b *bounder) typed(n query.Node) (condition, bool) {
	if b.Hashed {
		return condition{}, false
	}
	switch n := n.(type) {
	case *query.Type:
		return b.types(n)
	case *query.Mod:
		c := of(b.OfType(bsoncore.TypeDouble))
		c.tight = b.residual()
		return c, true
	}
	return condition{}, false
}

// types returns the condition of $type. The entry of a missing field is null, and that of an empty array undefined.
func (b *bounder) types(n *query.Type) (condition, bool) {
	out := condition{}
	for _, t := range n.Types {
		c := of(b.OfType(t))
		if c.tight == inexact && t != bsoncore.TypeArray && t != bsoncore.TypeNull && t != bsoncore.TypeUndefined {
			c.tight = b.residual()
			if n.Number && isNumber(t) {
				c.tight = exact
			}
		}
		out.add(c)
	}
	out.intervals = index.Union(out.intervals, nil)
	return out, len(n.Types) > 0
}

func isNumber(t bsoncore.Type) bool {
	switch t {
	case bsoncore.TypeDouble, bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDecimal128:
		return true
	}
	return false
}
