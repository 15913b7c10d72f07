package plan

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/query"
)

// Limits on what is tried.
const (
	maxExploded    = 50 // scans that one becomes for the sake of an order
	maxCounted     = 32 // ranges of an index that are counted for one estimate
	maxVariants    = 4  // ways in which the branches of a disjunction are combined
	maxOptions     = 16 // conditions of which each alone may bound a component that met arrays
	maxIntersected = 8  // scans of which pairs are tried
)

// access is a way to the records that match a conjunction, but for a residue.
type access struct {
	stage    Stage
	scan     *IndexScan // stage, when it is a single scan
	fetched  bool       // the rows are records
	ordered  bool       // they come in the order that is asked for
	residual []query.Node
	// Estimates: entries looked at, records read on the way, and rows given.
	entries, docs, rows float64
	used                uint64       // the conjuncts that the bounds stand for
	onKey               []query.Node // those that are decided by the values of an entry
}

// option is a set of leaves that may bound one component together.
type option struct {
	leaves     []leaf
	conditions []condition
	intervals  []index.Interval
	paths      []index.Interval // of a wildcard component
}

// scans returns the scans of one index that some of conj bound.
func (p *planner) scans(i int, conj []query.Node, found []leaf) []*access {
	x := p.index(i)
	d := x.Definition
	if d.Partial != nil && !prover(d.Collation, p.q.Collation).implies(conj, d.Partial.Root) {
		return nil
	}
	first := p.options(x, 0, found, nil)
	out := make([]*access, 0, len(first))
	for n := range first {
		a := p.scan(i, conj, found, &first[n])
		if hasSphere(d) && !a.scan.located() {
			continue // documents without a geometry are not in the index
		}
		out = append(out, a)
	}
	if len(first) == 0 && i == IDIndex && p.c.Order != nil && len(d.Components) > 1 {
		// The records of a time series: a range of times is in as many places as there are sources, and the scan leaps from one to the
		// next.
		if a := p.scan(i, conj, found, nil); a.used != 0 {
			out = append(out, a)
		}
	}
	return out
}

// located reports whether the bounds ask for a geometry.
func (s *IndexScan) located() bool {
	for i, c := range s.Definition.Components {
		if c.Kind == index.Sphere && !full(s.Bounds.Fields[i]) {
			return true
		}
	}
	return false
}

// options returns the ways to bound a component, where the first component is bounded by first (nil: by nothing). One that met arrays
// takes the conditions one by one, since each may be met by another element.
func (p *planner) options(x *Index, component int, found []leaf, first *option) []option {
	d := x.Definition
	c := d.Components[component]
	switch {
	case c.Wildcard:
		return p.wildcard(x, component, found)
	case c.Kind == index.Sphere:
		return p.sphere(d, component, found)
	}
	b := newBounder(d, component, x.Multikey, p.q.Collation)
	var out []option
	for _, l := range found {
		if l.path != c.Path {
			continue
		}
		cond, ok := b.conditionOf(&l)
		// Of an element of an array that has none of the fields a sparse index holds nothing, although it holds the other elements: a
		// condition that a missing field meets is no bound unless another one sees to it that there is an entry. One with places has no
		// entry for such an element in any case.
		if !ok || d.Sparse && first == nil && cond.missing || b.descends && cond.missing && hasSphere(d) {
			continue
		}
		if l.scope != nil {
			cond.tight = inexact
		}
		if len(out) == maxOptions {
			break
		}
		if len(out) == 0 || b.descends {
			out = append(out, option{intervals: cond.intervals})
		} else {
			out[0].intervals = index.Intersect(out[0].intervals, cond.intervals)
		}
		o := &out[len(out)-1]
		o.leaves, o.conditions = append(o.leaves, l), append(o.conditions, cond)
	}
	return out
}

// scan returns the scan of an index of which the first component is bounded by first (nil: by nothing), and the others by whatever
// there is for them.
func (p *planner) scan(i int, conj []query.Node, found []leaf, first *option) *access {
	x := p.index(i)
	d := x.Definition
	chosen := make([]*option, len(d.Components))
	chosen[0] = first
	fields := make([][]index.Interval, len(d.Components))
	s := &IndexScan{Index: i, Definition: d, Multikey: x.Multikey}
	var paths []index.Interval
	for n, c := range d.Components {
		if n > 0 {
			chosen[n] = p.choose(x, n, chosen[:n], p.options(x, n, found, first))
		}
		if fields[n] = all(); chosen[n] != nil {
			fields[n] = chosen[n].intervals
		}
		if c.Wildcard {
			if paths = all(); chosen[n] != nil {
				paths, s.Path = chosen[n].paths, chosen[n].leaves[0].path
			}
			s.Dedup = !points(paths)
		}
	}
	s.Bounds = newBounds(d, fields, paths)
	s.Dedup = s.Dedup || s.repeats()
	a := &access{stage: s, scan: s}
	p.settle(a, conj, chosen)
	return a
}

// choose returns the best option for a further component: one that may be combined with those before, points rather than ranges.
func (p *planner) choose(x *Index, n int, before []*option, options []option) *option {
	var best *option
	for i := range options {
		o := &options[i]
		if !compatible(x, n, before, o) {
			continue
		}
		if best == nil || points(o.intervals) && !points(best.intervals) {
			best = o
		}
	}
	return best
}

// compatible reports whether component n may be bounded by o along with the components before it. When two components met arrays
// under a common path, an entry joins values of one element, and conditions on both must ask for one element too.
func compatible(x *Index, n int, before []*option, o *option) bool {
	if x.Multikey>>n&1 == 0 {
		return true
	}
	for i, b := range before {
		if b == nil || x.Multikey>>i&1 == 0 {
			continue
		}
		one, other := b.leaves[0], o.leaves[0]
		shared := commonPrefix(one.path, other.path)
		if shared == "" {
			continue
		}
		if one.scope == nil || one.scope != other.scope || one.under != shared {
			return false
		}
	}
	return true
}

// settle says what of conj the bounds leave to be looked at.
func (p *planner) settle(a *access, conj []query.Node, chosen []*option) {
	var onKey, settled uint64
	for _, o := range chosen {
		if o == nil {
			continue
		}
		for i, l := range o.leaves {
			if l.conjunct >= 64 {
				continue
			}
			bit := uint64(1) << l.conjunct
			a.used |= bit
			switch {
			case l.scope != nil:
			case o.conditions[i].tight == exact:
				settled |= bit
			case o.conditions[i].tight == covered:
				onKey |= bit
			}
		}
	}
	var keys []query.Node
	for i, n := range conj {
		switch bit := uint64(1) << min(i, 63); {
		case i < 64 && settled&bit != 0:
		case i < 64 && onKey&bit != 0:
			keys = append(keys, n)
		default:
			a.residual = append(a.residual, n)
		}
	}
	a.scan.Filter, a.onKey = p.filter(keys), keys
}

// filter makes a filter of conditions that all have to hold; nil when there are none.
func (p *planner) filter(list []query.Node) *query.Filter {
	switch {
	case len(list) == 0:
		return nil
	case len(list) == len(p.all) && p.q.Filter != nil && &list[0] == &p.all[0]:
		return p.q.Filter
	case len(list) == 1:
		return p.rooted(list[0])
	}
	return p.rooted(&query.And{Children: list})
}

// estimate counts what a scan will look at.
func (p *planner) estimate(list ...*access) []*access {
	for _, a := range list {
		a.entries, a.rows = p.count(a.scan)
		for _, n := range a.onKey {
			a.rows *= p.selectivity(n)
		}
	}
	return list
}

// estimateUntil counts the most promising scans first, and leaves out the others when it has met one that is next to nothing.
func (p *planner) estimateUntil(list []*access) []*access {
	if p.thorough || len(list) < 2 && !p.stopsEarly(list) {
		return p.estimate(list...)
	}
	if len(list) < 2 {
		list[0].entries = min(float64(p.q.Skip)+float64(p.q.Limit), p.records())
		list[0].rows = list[0].entries
		return list
	}
	slices.SortStableFunc(list, func(a, b *access) int { return cmp.Compare(a.scan.promise(), b.scan.promise()) })
	for i, a := range list {
		p.estimate(a)
		if a.entries+a.rows*costFetch <= nothing {
			return list[:i+1]
		}
	}
	return list
}

// stopsEarly reports whether the only scan that the filter bounds gives the order, leaves nothing to check and ends at a limit: then it
// looks at no more entries than are wanted, and counting its whole range, which takes longer than that, would not change the choice.
func (p *planner) stopsEarly(list []*access) bool {
	if len(list) != 1 || p.q.Limit <= 0 || len(p.keys) == 0 || len(list[0].residual) > 0 || len(list[0].onKey) > 0 {
		return false
	}
	ok, _ := p.provides(list[0].scan)
	return ok
}

// promise returns the lower a number the fewer entries a scan may be expected to look at.
func (s *IndexScan) promise() int {
	switch {
	case s.Bounds.Empty():
		return 0
	case s.Definition.Unique && s.Bounds.Points():
		return 1
	case s.Bounds.Points():
		return 2
	case points(s.Bounds.Fields[0]):
		return 3
	}
	return 4
}

// pass returns how many of an access's rows its residue lets pass. known tells that it was not guessed.
func (p *planner) pass(a *access) (n float64, known bool) {
	n, known = a.rows, true
	if _, walks := a.stage.(*CollectionScan); walks {
		for _, one := range p.all {
			_, counted := p.known[one]
			known = known && counted
		}
	}
	for _, one := range a.residual {
		n *= p.selectivity(one)
		_, counted := p.known[one]
		known = known && counted
	}
	return n, known
}

// learn notes which part of the records each condition lets pass that alone bounds a scan.
func (p *planner) learn(scans []*access) {
	for _, a := range scans {
		if bits.OnesCount64(a.used) != 1 || a.scan.Definition.Partial != nil {
			continue
		}
		if p.known == nil {
			p.known = map[query.Node]float64{}
		}
		p.known[p.all[bits.TrailingZeros64(a.used)]] = min(1, a.rows/max(1, p.records()))
	}
}

// count returns how many entries a scan looks at, and how many are in its bounds, as far as counting tells.
func (p *planner) count(s *IndexScan) (entries, rows float64) {
	if p.err != nil {
		return 0, 0
	}
	if d := s.Definition; s.Bounds.unbounded() && !d.Sparse && d.Partial == nil { // those may hold few of the records
		return p.records(), p.records()
	}
	if s.Definition.Unique && s.Bounds.Points() {
		return s.Bounds.Values(), s.Bounds.Values()
	}
	list, times, whole := s.Bounds.Sample(maxCounted)
	for _, r := range list {
		n, err := p.c.Count(s.Index, r.Lo, r.Hi)
		if err != nil {
			p.err = err
			return 0, 0
		}
		entries += float64(n)
	}
	entries *= times
	rows = entries
	defer func() {
		if s.Index == IDIndex && full(s.Bounds.Fields[0]) { // it leaps over most of what is not in the bounds
			entries = rows
		}
	}()
	if !whole {
		for _, list := range s.Bounds.Fields[1:] {
			switch {
			case full(list):
			case points(list):
				rows *= 0.1
			default:
				rows *= 0.3
			}
		}
	}
	return entries, rows
}

// selectivity returns which part of the records passes a condition: as counted, or else a guess.
func (p *planner) selectivity(n query.Node) float64 {
	if part, ok := p.known[n]; ok {
		return part
	}
	switch n := n.(type) {
	case *query.Comparison:
		if n.Op == query.Eq {
			return 0.1
		}
		return 0.3
	case *query.In:
		return min(0.5, 0.1*float64(max(1, len(n.Values)+len(n.Regexes))))
	case *query.Exists, *query.Not, *query.Nor:
		return 0.8
	case *query.Regex:
		return 0.2
	case *query.Always:
		if !n.Value {
			return 0
		}
		return 1
	}
	return 0.5
}
