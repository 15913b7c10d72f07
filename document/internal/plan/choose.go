package plan

import (
	"cmp"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/query"
)

// What steps cost, an index entry looked at being 1.
const (
	costFetch     = 8.0 // reading a record by its key
	costRecord    = 2.0 // passing a record in a walk over all
	costIntersect = 1.5 // an entry that is compared with those of another index
	costSortRow   = 4.0 // keeping a row for sorting, beside the comparisons
	costCompare   = 0.5

	// Below this many records any plan is quick, and one that uses an index is what everybody expects.
	fewRecords = 1000
	// penalty is what keeps walks over all of a small collection behind its indexes.
	penalty = 1e6

	// cheap is what a plan may cost without being held against others that need more counting: that costs, too.
	cheap = 2000.0
	// nothing is what a scan may cost that makes counting for the others pointless.
	nothing = 200.0

	maxDepth    = 8 // of disjunctions within disjunctions
	maxRejected = 16
)

// planner is the work on one query.
type planner struct {
	q    *Query
	c    *Collection
	all  []query.Node // the conjunction that the filter is
	keys []key        // of the sort order; nil: any
	hint *hint
	id   Index
	// thorough asks for every plan, whatever it takes to find it.
	thorough bool
	done     []candidate // the plans of the accesses that were found good enough
	n        float64     // records; below 0: not counted yet
	// known is which part of the records passes conditions, where an index tells.
	known map[query.Node]float64
	// constants is for the expressions that are parsed, whose constants are not all computed where they are many.
	constants expression.Call
	err       error
}

// candidate is a whole plan and what it costs.
type candidate struct {
	root Stage
	cost float64
	left int  // conditions that the bounds leave
	scan bool // it is a walk over the whole collection
}

// compare puts the cheaper first, and of two that cost the same the one that leaves less to be looked at.
func (c candidate) compare(o candidate) int {
	return cmp.Or(cmp.Compare(c.cost, o.cost), cmp.Compare(c.left, o.left))
}

// Choose picks the cheapest plan.
func Choose(q *Query, c *Collection) (*Plan, error) {
	p, err := newPlanner(q, c)
	if err != nil {
		return nil, err
	}
	if root := p.quick(); root != nil {
		return p.plan(root, nil), nil
	}
	list, err := p.candidates()
	if err != nil {
		return nil, err
	}
	var rejected []Stage
	for _, other := range list[1:] {
		if !other.scan && len(rejected) < maxRejected {
			rejected = append(rejected, other.root)
		}
	}
	return p.plan(list[0].root, rejected), nil
}

// All returns every plan that answers the query, for tests that force each of them.
func All(q *Query, c *Collection) ([]*Plan, error) {
	p, err := newPlanner(q, c)
	if err != nil {
		return nil, err
	}
	p.thorough = true
	var out []*Plan
	if root := p.quick(); root != nil {
		out = append(out, p.plan(root, nil))
	}
	list, err := p.candidates()
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		out = append(out, p.plan(one.root, nil))
	}
	return out, nil
}

func newPlanner(q *Query, c *Collection) (*planner, error) {
	p := &planner{q: q, c: c, n: -1}
	if q.Filter != nil {
		p.all = conjuncts(q.Filter.Root)
	}
	var err error
	if p.hint, err = p.parseHint(); err != nil {
		return nil, err
	}
	p.keys, _ = sortKeys(q.Sort)
	return p, nil
}

func (p *planner) plan(root Stage, rejected []Stage) *Plan {
	return &Plan{Root: root, Rejected: rejected, query: p.q, collection: p.c}
}

// idDefinition returns the index of _id.
func idDefinition() *index.Definition {
	return &index.Definition{
		Name: "_id_", Keys: bsoncore.BuildDocument(nil, bsoncore.AppendInt32Element(nil, "_id", 1)),
		Components: []index.Component{{Path: "_id"}}, Unique: true, TTL: -1,
	}
}

// index returns an index by its number.
func (p *planner) index(i int) *Index {
	if i == IDIndex {
		if p.id.Definition == nil {
			if p.id.Definition = p.c.Order; p.id.Definition == nil {
				p.id.Definition = idDefinition()
			}
		}
		return &p.id
	}
	return &p.c.Indexes[i]
}

// unordered reports whether the records are in no order that is of use.
func (c *Collection) unordered() bool { return c.Order != nil && len(c.Order.Components) == 0 }

// indexes returns how many indexes there are, that of _id or what stands in its place included.
func (p *planner) indexes() int {
	if p.c.unordered() {
		return len(p.c.Indexes)
	}
	return len(p.c.Indexes) + 1
}

// number returns the number of the n-th index: that of _id comes first.
func (p *planner) number(n int) int {
	if p.c.unordered() {
		return n
	}
	return n - 1
}

// records returns how many records there are.
func (p *planner) records() float64 {
	if p.n < 0 && p.err == nil {
		n, err := p.c.Records()
		p.n, p.err = float64(n), err
	}
	return p.n
}

// rooted makes a filter of a part of the query's.
func (p *planner) rooted(n query.Node) *query.Filter { return p.q.Filter.With(n) }

// quick returns the plan of queries that need no choice: nothing can match, or only the record with an _id.
func (p *planner) quick() Stage {
	for _, n := range p.all {
		if a, ok := n.(*query.Always); ok && !a.Value {
			return p.wrap(&EOF{})
		}
	}
	if len(p.all) != 1 || p.hint != nil || p.q.Goal != Find || p.c.Order != nil {
		return nil
	}
	c, ok := p.all[0].(*query.Comparison)
	if !ok || c.Path != "_id" || c.Op != query.Eq {
		return nil
	}
	switch c.Value.Type {
	case bsoncore.TypeArray, bsoncore.TypeUndefined, 0:
		return nil
	case bsoncore.TypeString, bsoncore.TypeSymbol, bsoncore.TypeEmbeddedDocument:
		if p.q.Collation != nil {
			return nil
		}
	}
	return p.wrap(&IDLookup{ID: c.Value, Key: keyenc.Append(nil, c.Value, false, nil)})
}

// candidates returns all plans, the cheapest first.
func (p *planner) candidates() ([]candidate, error) {
	accesses, err := p.accesses()
	if err != nil {
		return nil, err
	}
	out := p.done
	if out == nil {
		out = p.finished(accesses)
	}
	if p.err != nil {
		return nil, p.err
	}
	slices.SortStableFunc(out, candidate.compare)
	return out, nil
}

// accesses returns all ways to the records.
func (p *planner) accesses() ([]*access, error) {
	if list, asked, err := p.near(); asked {
		return list, err
	}
	if p.hint != nil {
		return p.hinted()
	}
	if isNatural, backward := natural(p.q.Sort); isNatural {
		p.keys = nil
		return []*access{p.walk(backward)}, nil
	}
	scans := p.bounded()
	if quick := append(scans[:len(scans):len(scans)], p.split(scans)...); p.settled(quick) {
		return quick, nil
	}
	if len(p.all) == 0 && len(p.keys) > 0 {
		if whole := p.forOrder(nil); p.settled(whole) {
			return whole, nil
		}
	}
	p.learn(scans)
	out := scans
	if len(scans) > 1 {
		out = append(out[:len(out):len(out)], p.intersections(scans)...)
	}
	out = append(out, p.disjunctions(p.all, len(p.all), 0)...)
	if len(out) > len(scans) && p.settled(out) {
		return out, nil
	}
	out = append(out, p.forOrder(out)...)
	if len(out) == 0 && !p.thorough {
		return []*access{{stage: &CollectionScan{Filter: p.filter(p.all)}, fetched: true}}, nil
	}
	return append(out, p.walk(false)), nil
}

// settled reports whether one of the accesses is so cheap, or so plainly the best, that no others need to be looked for.
func (p *planner) settled(list []*access) bool {
	if p.thorough || p.err != nil || len(list) == 0 {
		return false
	}
	done := p.finished(list)
	for _, c := range done {
		// Where there is nothing to filter, an index that gives the order is all that can be wished for.
		if c.cost <= cheap || len(p.all) == 0 {
			p.done = done
			return true
		}
	}
	return false
}

// finished returns the whole plans of accesses.
func (p *planner) finished(list []*access) []candidate {
	out := make([]candidate, 0, len(list))
	for _, a := range list {
		out = append(out, p.finish(a))
	}
	return out
}

// bounded returns the scans of indexes that the filter bounds.
func (p *planner) bounded() []*access {
	var out []*access
	found := p.leaves(p.all)
	for i := range p.indexes() {
		out = append(out, p.scans(p.number(i), p.all, found)...)
	}
	return p.estimateUntil(out)
}

// split returns for each scan that does not give the order, but can be cut into several each of which does, those.
func (p *planner) split(list []*access) []*access {
	if len(p.keys) == 0 {
		return nil
	}
	var out []*access
	for _, a := range list {
		if a.scan == nil {
			continue
		}
		if ok, _ := p.provides(a.scan); ok {
			continue
		}
		if m := p.merge([]*access{a}); m != nil {
			out = append(out, m)
		}
	}
	return out
}

// forOrder returns the accesses that are there for the sake of the order only: scans of whole indexes, and those of out that can be
// cut into several.
func (p *planner) forOrder(out []*access) []*access {
	if len(p.keys) == 0 && p.q.Goal != Distinct {
		return nil
	}
	more := p.split(out)
	for i := range p.indexes() {
		n := p.number(i)
		d := p.index(n).Definition
		if d.Sparse || d.Partial != nil && !prover(d.Collation, p.q.Collation).implies(p.all, d.Partial.Root) ||
			d.Components[0].Wildcard || !plain(d.Components[0].Kind) || hasSphere(d) {
			continue
		}
		a := p.scan(n, p.all, p.leaves(p.all), nil)
		ok, _ := p.provides(a.scan)
		if p.q.Goal == Distinct {
			one := *a
			one.ordered = ok
			_, alone := p.distinct(&one)
			ok = alone || ok && len(p.keys) > 0
		}
		if ok {
			more = append(more, p.estimate(a)...)
		}
	}
	return more
}

// provides reports whether a scan gives the order that is asked for.
func (p *planner) provides(s *IndexScan) (ok, backward bool) {
	if len(p.keys) == 0 {
		return len(p.q.Sort) == 0 || emptySpec(p.q.Sort), false
	}
	if !s.Definition.Collation.Equal(p.q.Collation) && !(s.Index == IDIndex && p.c.Order == nil && p.q.Collation == nil) {
		return false, false
	}
	return s.provides(p.keys)
}

// emptySpec reports whether a document has no elements.
func emptySpec(d bsoncore.Document) bool { return len(d) <= 5 }

// walk returns the access by all records.
func (p *planner) walk(backward bool) *access {
	n := p.records()
	a := &access{stage: &CollectionScan{Filter: p.filter(p.all), Backward: backward}, fetched: true, docs: n, rows: n}
	for _, one := range p.all {
		a.rows *= p.selectivity(one)
	}
	return a
}

// same reports whether two specifications are equal.
func same(a, b bsoncore.Document) bool { return order.CompareDocuments(a, b, nil) == 0 }
