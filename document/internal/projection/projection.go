// Package projection transforms single documents: find's projections, and the aggregation stages that make one document of one.
//
// It promises MongoDB's result byte for byte: which fields stay, their order, what becomes of arrays and of values that are not
// where a path wants to go. It reads documents in one pass and never changes them. A specification that MongoDB refuses is
// refused with its code; a document is refused only by an expression, by a positional operator without a position, and by a
// new root that is no document.
package projection

import (
	"cmp"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/query"
)

// Options of Parse. nil means the zero value.
type Options struct {
	Expression *expression.Options
	Filter     *query.Filter // the query's, for the positional projection
	Stage      string        // what errors of ParseAddFields call it; "" is $addFields
}

// kind is how a projection treats the fields that it does not name.
type kind uint8

const (
	undecided kind = iota
	inclusion      // they go
	exclusion      // they stay
	addition       // they stay: $addFields
	root           // the whole document is replaced
)

// Projection is a parsed projection: immutable, safe for concurrent use.
type Projection struct {
	kind       kind
	tree       *node
	root       *expression.Expression // kind root
	positional []string               // the path before .$, or nil
	filter     *query.Filter          // of the query, for positional
	most       int                    // bytes of what it makes
}

// Parse parses a projection of find: inclusion, exclusion, $slice, $elemMatch, positional $, expressions, $meta. An empty one
// gives nil, the identity. The projection keeps referring to the bytes of spec.
func Parse(spec bsoncore.Document, o *Options) (*Projection, error) {
	if len(spec) <= 5 {
		return nil, nil
	}
	p := newParser(o)
	p.find = true
	p.result.most = maxReturned
	return p.parse(spec)
}

// ParseProject parses the argument of the $project stage.
func ParseProject(spec bsoncore.Document, o *Options) (*Projection, error) {
	const where = "Invalid $project :: caused by :: "
	if len(spec) <= 5 {
		return nil, newError(errEmptySpecification, where+"projection specification must have at least one field")
	}
	result, err := newParser(o).parse(spec)
	return result, mongoerror.Prefix(err, where)
}

// Apply appends the transformed document to dst.
func (p *Projection) Apply(dst []byte, doc bsoncore.Document) ([]byte, error) {
	return p.ApplyWith(dst, doc, nil)
}

// ApplyWith is Apply with additional variables for the expressions. What $meta asks for is a variable too: see Meta.
func (p *Projection) ApplyWith(dst []byte, doc bsoncore.Document, variables []expression.Variable) ([]byte, error) {
	if p == nil {
		return append(dst, doc...), nil
	}
	r := run{doc: doc, variables: variables, kind: p.kind, start: len(dst), most: cmp.Or(p.most, maxMade)}
	switch {
	case p.kind == root:
		return r.replaceRoot(dst, p.root)
	case p.positional != nil:
		return r.withPosition(dst, p)
	}
	return r.document(dst, doc, p.tree)
}

// metaPrefix begins the names of the variables that hold what $meta asks for.
const metaPrefix = "meta:"

// MetaVariable is the name of the variable in which ApplyWith expects what {$meta: keyword} asks for. Without the variable
// there is no such field in the result.
func MetaVariable(keyword string) string { return metaPrefix + keyword }

// Meta returns the keywords that $meta asks for, expressions included.
func (p *Projection) Meta() []string {
	var keywords []string
	if p != nil && p.tree != nil {
		p.tree.leaves(nil, func(_ []string, n *node) {
			if n.meta != "" {
				keywords = append(keywords, n.meta)
			}
			if n.computed != nil {
				keywords = append(keywords, n.computed.Metas()...)
			}
		})
	}
	return keywords
}

// Fields returns the dotted paths that it reads; whole means that it may need the whole document.
func (p *Projection) Fields() (paths []string, whole bool) {
	switch {
	case p == nil || p.kind == exclusion || p.kind == addition || p.positional != nil:
		return nil, true
	case p.kind == root:
		return p.root.Fields()
	}
	p.tree.leaves(nil, func(path []string, n *node) {
		switch {
		case n.computed != nil:
			reads, all := n.computed.Fields()
			paths, whole = append(paths, reads...), whole || all
			if len(path) > 1 { // what is beside the computed field decides what it is put into
				paths = append(paths, path[0])
			}
		case n.meta == "":
			paths = append(paths, joined(path))
		}
	})
	if whole {
		return nil, true
	}
	return paths, false
}

// Simple returns the included paths when it is a plain inclusion without expressions, so that an index may cover it; id tells whether
// _id is included. _id is not among the paths.
func (p *Projection) Simple() (paths []string, id bool, ok bool) {
	if p == nil || p.kind != inclusion || p.positional != nil {
		return nil, false, false
	}
	ok = true
	p.tree.leaves(nil, func(path []string, n *node) {
		switch {
		case !n.plain():
			ok = false
		case len(path) == 1 && path[0] == "_id":
			id = true
		default:
			paths = append(paths, joined(path))
		}
	})
	if !ok {
		return nil, false, false
	}
	return paths, id, true
}
