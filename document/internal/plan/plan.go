// Package plan picks how a query is carried out: a pure function from a filter, a sort order, the indexes and their cardinalities to a
// tree of stages. It promises that every plan it gives returns the same documents, in an order that the query allows, and that the
// same input gives the same plan. It reads nothing by itself: what it knows of the data comes through Collection. It fails with a
// *mongoerror.Error when a hint or a bound cannot be followed, and with what Collection's functions fail.
package plan

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/query"
)

// Goal is what a query is for.
type Goal uint8

// The goals.
const (
	Find Goal = iota
	Counting
	Distinct
)

// Query is what is asked.
type Query struct {
	Filter      *query.Filter     // nil: every document
	FilterSpec  bsoncore.Document // as given, for explain
	Sort        bsoncore.Document // nil: any order. {$natural: 1} too
	Skip, Limit int64
	Projection  *projection.Projection
	Project     bsoncore.Document // the projection as given, for explain
	Collation   *collation.Collation
	Hint        bsoncore.Value // a name, a key pattern, {$natural: 1}; Type 0: none
	Min, Max    bsoncore.Document

	// What the filter was parsed with, for the constants of $expr: its variables, and $$NOW.
	Let []expression.Variable
	Now time.Time

	Goal  Goal
	Field string // Distinct: the path of which the values are asked
	// First, with the goal Distinct, asks for the first document with each value: in the order of Sort, or else of the records.
	First bool
	// Fields are the only paths of which values are wanted, where there is no projection; nil: all.
	Fields []string
	// Needs are the only paths that anybody will look at, in documents that are otherwise as they are; nil: all. They do not matter to the
	// plan, and Fields come before them.
	Needs []string
}

// Index is an index that may be used.
type Index struct {
	Definition *index.Definition
	Multikey   uint64
}

// Collection is what the planner knows of the data.
type Collection struct {
	Namespace string
	Indexes   []Index // hidden ones and those being built are left out by the caller; that of _id is not among them
	Capped    bool
	Order     *index.Definition // what the records are in the order of, instead of _id; without components: of nothing
	// Records is about how many documents there are.
	Records func() (int64, error)
	// Count counts the entries of Indexes[i], or of the index of _id for IDIndex, in [lo, hi), in O(log n).
	Count func(i int, lo, hi []byte) (int64, error)
}

// Plan is a tree of stages. It is immutable.
type Plan struct {
	Root     Stage
	Rejected []Stage // the other candidates, the cheapest first

	query      *Query
	collection *Collection
}

// Nothing returns the plan of a query on a collection that is not there.
func Nothing(q *Query, namespace string) *Plan {
	return &Plan{Root: &EOF{}, query: q, collection: &Collection{Namespace: namespace}}
}

// Candidates returns the plans among which there was a choice, the chosen one first; none when there was no choice.
func (p *Plan) Candidates() []*Plan {
	if len(p.Rejected) == 0 {
		return nil
	}
	out := []*Plan{p}
	for _, root := range p.Rejected {
		out = append(out, &Plan{Root: root, query: p.query, collection: p.collection})
	}
	return out
}

// Query returns what was asked.
func (p *Plan) Query() *Query {
	if p.query == nil {
		return &Query{}
	}
	return p.query
}

// namespace returns the name of the collection.
func (p *Plan) namespace() string {
	if p.collection == nil {
		return ""
	}
	return p.collection.Namespace
}
