package projection

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// node is a node of the tree that a specification's paths make: one with children, or a leaf that says what becomes of a field.
// Children are in the order of the specification, which is the order in which new fields are appended.
type node struct {
	names     path.Names
	children  []*node
	computes  bool // a leaf here or below makes a value
	computed  *expression.Expression
	elemMatch *elemMatch
	meta      string
	slice     *slice
	// A leaf with nothing of these is a field to include or exclude.
}

// plain reports whether a leaf only includes or excludes.
func (n *node) plain() bool {
	return n.computed == nil && n.elemMatch == nil && n.meta == "" && n.slice == nil
}

// makes reports whether a leaf makes its value, rather than letting one pass.
func (n *node) makes() bool { return n.computed != nil || n.elemMatch != nil || n.meta != "" }

// isLeaf reports whether n has no children.
func (n *node) isLeaf() bool { return len(n.children) == 0 }

// add appends a child.
func (n *node) add(name string, child *node) {
	n.names.Add(name)
	n.children = append(n.children, child)
}

// insert puts a leaf at a path. No path may be another's beginning.
func (n *node) insert(path []string, leaf *node) error {
	leaf.computes = leaf.computes || leaf.makes()
	for i, name := range path {
		n.computes = n.computes || leaf.computes
		at := n.names.Find([]byte(name))
		last := i == len(path)-1
		if at >= 0 && last {
			return newError(errPathCollision, "Path collision at "+joined(path))
		}
		if at >= 0 && n.children[at].isLeaf() {
			return newError(errPathCollisionBelow, "Path collision at "+joined(path)+" remaining portion "+joined(path[1:]))
		}
		if last {
			n.add(name, leaf)
			return nil
		}
		if at < 0 {
			child := new(node)
			n.add(name, child)
			n = child
			continue
		}
		n = n.children[at]
	}
	return nil
}

// leaves calls each for every leaf under n.
func (n *node) leaves(path []string, each func(path []string, leaf *node)) {
	for i, child := range n.children {
		below := append(path[:len(path):len(path)], n.names.List[i])
		if child.isLeaf() {
			each(below, child)
		} else {
			child.leaves(below, each)
		}
	}
}

func joined(path []string) string { return strings.Join(path, ".") }

// Codes that have no name.
const (
	errUnknownMeta          mongoerror.Code = 17308
	errSliceOfNone          mongoerror.Code = 28724
	errUnsetSpecification   mongoerror.Code = 31002
	errUnsetEmpty           mongoerror.Code = 31119
	errUnsetNotString       mongoerror.Code = 31120
	errPathCollisionBelow   mongoerror.Code = 31249
	errPathCollision        mongoerror.Code = 31250
	errOperatorExclusion    mongoerror.Code = 31252
	errInclusionInExclusion mongoerror.Code = 31253
	errExclusionInInclusion mongoerror.Code = 31254
	errPositionalElemMatch  mongoerror.Code = 31255
	errElemMatchPositional  mongoerror.Code = 31256
	errPositionalExpression mongoerror.Code = 31271
	errElemMatchArgument    mongoerror.Code = 31274
	errElemMatchNested      mongoerror.Code = 31275
	errPositionalTwice      mongoerror.Code = 31276
	errPositionalLiteral    mongoerror.Code = 31308
	errExpressionExclusion  mongoerror.Code = 31310
	errPositionalProject    mongoerror.Code = 31324
	errUnknownExpression    mongoerror.Code = 31325
	errPositionalMiddle     mongoerror.Code = 31394
	errPositionalExclusion  mongoerror.Code = 31395
	errConflictingPaths     mongoerror.Code = 40176
	errEmptyObject          mongoerror.Code = 40180
	errOneExpression        mongoerror.Code = 40181
	errNewRoot              mongoerror.Code = 40228
	errNoPosition           mongoerror.Code = 51246
	errPositionMismatch     mongoerror.Code = 51247
	errEmptySubProjection   mongoerror.Code = 51270
	errEmptySpecification   mongoerror.Code = 51272
)

func newError(code mongoerror.Code, message string) error {
	return &mongoerror.Error{Code: code, Message: message}
}

// parsePath splits a path, and refuses what cannot name fields.
func parsePath(s string) ([]string, error) {
	components, err := path.Split(s)
	if err == nil && len(components) > maxDepth {
		return nil, mongoerror.New(mongoerror.Overflow, "FieldPath is too long")
	}
	return components, err
}

// maxDepth is how deeply documents are nested at most.
const maxDepth = 100

// isFlag reports whether a value of a specification includes or excludes: a number or a boolean.
func isFlag(t bsoncore.Type) bool {
	switch t {
	case bsoncore.TypeBoolean, bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		return true
	}
	return false
}
