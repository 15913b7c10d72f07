package projection

import (
	"bytes"
	"cmp"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// ParseAddFields parses the argument of $addFields and $set.
func ParseAddFields(spec bsoncore.Document, o *Options) (*Projection, error) {
	a := adder{spec: spec, result: &Projection{kind: addition, tree: new(node)}}
	stage := "$addFields"
	if o != nil {
		a.options = o.Expression
		stage = cmp.Or(o.Stage, stage)
	}
	err := a.fields(spec, nil)
	if err == nil {
		err = a.expressions()
	}
	if err != nil {
		return nil, mongoerror.Prefix(err, "Invalid "+stage+" :: caused by :: ")
	}
	return a.result, nil
}

// adder parses a specification of $addFields.
type adder struct {
	spec    bsoncore.Document
	options *expression.Options
	result  *Projection
	leaves  []*node
	values  []bsoncore.Value // of leaves
}

func (a *adder) fields(doc bsoncore.Document, prefix []string) error {
	if len(prefix) > maxDepth {
		return mongoerror.New(mongoerror.Overflow, "FieldPath is too long")
	}
	for s := path.PlacesOf(doc); ; {
		e, ok := s.Next()
		if !ok {
			return nil
		}
		components, err := parsePath(string(e.Name))
		if err != nil {
			return err
		}
		path := append(slices.Clone(prefix), components...)
		if e.Value.Type == bsoncore.TypeEmbeddedDocument {
			operator, err := a.isExpression(path, e.Value.Data)
			if err != nil {
				return err
			}
			if !operator {
				if err := a.fields(e.Value.Data, path); err != nil {
					return err
				}
				continue
			}
		}
		leaf := &node{computes: true}
		if err := a.result.tree.insert(path, leaf); err != nil {
			return a.conflict(path)
		}
		a.leaves, a.values = append(a.leaves, leaf), append(a.values, e.Value)
	}
}

// expressions parses the values, when all paths are known to be good.
func (a *adder) expressions() error {
	var err error
	for i, leaf := range a.leaves {
		if leaf.computed, err = expression.Parse(a.values[i], a.options); err != nil {
			return err
		}
	}
	return nil
}

// isExpression reports whether a document is an expression, rather than fields to be added to a document.
func (a *adder) isExpression(names []string, doc bsoncore.Document) (bool, error) {
	count, operators := 0, 0
	for s := path.PlacesOf(doc); ; count++ {
		e, ok := s.Next()
		if !ok {
			break
		}
		if bytes.HasPrefix(e.Name, []byte("$")) {
			operators++
		}
	}
	switch {
	case count == 0:
		return false, newError(errEmptyObject, "an empty object is not a valid value. Found empty object at path "+joined(names))
	case operators > 0 && count > 1:
		return false, mongoerror.New(errOneExpression, "an expression specification must contain exactly one field, the name of the "+
			"expression. Found %d fields in %s, while parsing object %s", count, doc, a.spec)
	}
	return operators > 0, nil
}

// conflict is the error of a path that is another's beginning, or the other way round.
func (a *adder) conflict(path []string) error {
	other := path
	a.result.tree.leaves(nil, func(p []string, _ *node) {
		n := min(len(p), len(path))
		if slices.Equal(p[:n], path[:n]) {
			other = p
		}
	})
	return mongoerror.New(errConflictingPaths, "specification contains two conflicting paths. Cannot specify both '%s' and '%s': %s",
		joined(path), joined(other), a.spec)
}

// ParseUnset parses the argument of $unset: a string, or an array of them.
func ParseUnset(spec bsoncore.Value) (*Projection, error) {
	values := []bsoncore.Value{spec}
	switch spec.Type {
	case bsoncore.TypeString:
	case bsoncore.TypeArray:
		values = values[:0]
		for s := path.PlacesOf(spec.Data); ; {
			e, ok := s.Next()
			if !ok {
				break
			}
			values = append(values, e.Value)
		}
		if len(values) == 0 {
			return nil, newError(errUnsetEmpty, "$unset specification must be a string or an array with at least one field")
		}
	default:
		return nil, newError(errUnsetSpecification, "$unset specification must be a string or an array")
	}
	p := &Projection{kind: exclusion, tree: new(node)}
	for _, v := range values {
		name, ok := v.StringValueOK()
		if !ok {
			return nil, newError(errUnsetNotString, "$unset specification must be a string or an array containing only string values")
		}
		if isPositional(name) {
			return nil, newError(errPositionalProject,
				"Invalid $unset :: caused by :: Cannot use positional projection in aggregation projection")
		}
		path, err := parsePath(name)
		if err == nil {
			err = p.tree.insert(path, new(node))
		}
		if err != nil {
			return nil, mongoerror.Prefix(err, "Invalid $unset :: caused by :: ")
		}
	}
	return p, nil
}

// ParseReplaceRoot parses the argument of $replaceRoot's newRoot or $replaceWith.
func ParseReplaceRoot(spec bsoncore.Value, o *Options) (*Projection, error) {
	var options *expression.Options
	if o != nil {
		options = o.Expression
	}
	parsed, err := expression.Parse(spec, options)
	if err != nil {
		return nil, err
	}
	return &Projection{kind: root, root: parsed}, nil
}
