// Package query is MongoDB's query language: filters parsed once into a normalised tree, and matched against documents.
//
// It promises the answers of MongoDB's server on null, missing fields, arrays, dotted paths and comparisons of different
// types, and that everything wrong with a filter is said by Parse, before any document is read: a *mongoerror.Error with the
// server's code. A parsed filter is immutable and safe for concurrent use. Matching reads no fields but those that the filter
// names, each once, and does not allocate for the ordinary operators; it must never change a document or keep a slice of one.
// Matching fails where an expression of $expr fails, or a regular expression takes too long, and never panics.
//
// Regular expressions run in linear time where their syntax allows; those with lookaround or backreferences have a limit of time.
package query

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// Options of Parse. nil means the zero value.
type Options struct {
	Collation *collation.Collation
	Let       []expression.Variable // $$name in $expr
	Now       time.Time             // $$NOW
	Call      *expression.Call      // who waits for $expr
	Validator bool                  // refuse what a collection's validator may not ask: chance and distance
}

// Filter is a parsed filter: immutable, safe for concurrent use. Root is its tree, normalised, for planners.
type Filter struct {
	Root Node

	given     Node // the tree before it was normalised
	collation *collation.Collation
	matcher   matcher

	once     sync.Once
	position matcher // for positions, made when one is asked for
}

// Parse parses a filter. Errors are *mongoerror.Error (unknown operator: BadValue, naming operator and path).
func Parse(filter bsoncore.Document, o *Options) (*Filter, error) {
	if o == nil {
		o = new(Options)
	}
	p := &parser{options: o}
	given, err := p.document(bytes.Clone(filter), 0)
	if err != nil {
		return nil, err
	}
	root := normalise(given, o.Collation)
	if err := checkNear(root); err != nil {
		return nil, err
	}
	return newFilter(given, root, o.Collation), nil
}

func newFilter(given, root Node, c *collation.Collation) *Filter {
	return &Filter{Root: root, given: given, collation: c, matcher: compile(root, c)}
}

// With returns a filter whose tree is made of this one's nodes: what a planner leaves to be looked at. Most of what a planner tries is never
// carried out, so that it is made ready for matching when it is first matched.
func (f *Filter) With(root Node) *Filter {
	late := &lateMatcher{root: root, collation: f.collation}
	return &Filter{Root: root, given: root, collation: f.collation, matcher: late}
}

// lateMatcher is made of a tree when it is first asked.
type lateMatcher struct {
	root      Node
	collation *collation.Collation
	once      sync.Once
	made      matcher
}

func (m *lateMatcher) matcher() matcher {
	m.once.Do(func() { m.made = compile(m.root, m.collation) })
	return m.made
}

func (m *lateMatcher) match(o object, position *int) (bool, error) {
	return m.matcher().match(o, position)
}

// IsRandom reports whether the filter matches at random, so that a second look may say something else.
func (f *Filter) IsRandom() bool { return isRandom(f.Root) }

func isRandom(n Node) bool {
	_, random := n.(*Sample)
	return random || slices.ContainsFunc(childrenOf(n), isRandom)
}

// Match reports whether the document matches. It decodes no more fields than the filter names. Errors come from $expr, and from
// regular expressions that take too long.
func (f *Filter) Match(doc path.Fields) (bool, error) {
	return f.matcher.match(newObject(doc), nil)
}

// MatchPosition is Match, and returns the position that the positional operator $ stands for: the index of the first
// element of the last array through which a condition matched; -1 when there is none. Conditions are looked at in the order of the
// normalised tree.
func (f *Filter) MatchPosition(doc path.Fields) (matched bool, position int, err error) {
	f.once.Do(func() {
		f.position = compile((&normaliser{collation: f.collation, negations: true}).node(f.given), f.collation)
	})
	position = -1
	matched, err = f.position.match(newObject(doc), &position)
	if !matched {
		position = -1
	}
	return matched, position, err
}

// Positional returns the filter for a positional projection, whose MatchPosition looks at conditions in the order in which they were
// given. It refuses conditions that MongoDB does not look for a position in.
func (f *Filter) Positional() (*Filter, error) {
	if err := positional(f.given); err != nil {
		return nil, err
	}
	p := newFilter(f.given, f.Root, f.collation)
	p.once.Do(func() {
		p.position = compile((&normaliser{collation: f.collation, asGiven: true, negations: true}).node(f.given), f.collation)
	})
	return p, nil
}

func positional(n Node) error {
	switch n.(type) {
	case *Near:
		return mongoerror.New(mongoerror.Code(5626500), "$geoNear, $near, and $nearSphere are not allowed in this context")
	case *Expr:
		return mongoerror.New(mongoerror.QueryFeatureNotAllowed, "$expr is not allowed in this context")
	case *JSONSchema:
		return mongoerror.New(mongoerror.QueryFeatureNotAllowed, "$jsonSchema is not allowed in this context")
	}
	for _, child := range childrenOf(n) {
		if err := positional(child); err != nil {
			return err
		}
	}
	return nil
}
