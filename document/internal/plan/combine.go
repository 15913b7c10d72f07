package plan

import (
	"cmp"
	"slices"

	"github.com/pandodb/pando/document/internal/query"
)

// disjunctions returns the accesses that go by each branch of a disjunction among the first own of conj: each branch, with the other
// conditions, has to be found by an index. Disjunctions among the others are not gone into from here: that would try every order of
// them.
func (p *planner) disjunctions(conj []query.Node, own, depth int) []*access {
	if depth >= maxDepth {
		return nil
	}
	var out []*access
	for i, n := range conj[:own] {
		or, ok := n.(*query.Or)
		if !ok || len(or.Children) == 0 {
			continue
		}
		siblings := slices.Delete(slices.Clone(conj), i, i+1)
		branches := make([][]*access, len(or.Children))
		variants := 1
		for k, child := range or.Children {
			branches[k] = p.branch(conjuncts(child), siblings, depth+1)
			if len(branches[k]) == 0 {
				variants = 0
				break
			}
			variants = max(variants, len(branches[k]))
		}
		for v := range min(variants, maxVariants) {
			chosen := make([]*access, len(branches))
			for k, list := range branches {
				chosen[k] = list[min(v, len(list)-1)]
			}
			out = append(out, p.or(chosen))
			if m := p.merge(chosen); m != nil {
				out = append(out, m)
			}
		}
	}
	return out
}

// branch returns the accesses of a branch, the cheapest first.
func (p *planner) branch(own, siblings []query.Node, depth int) []*access {
	var out []*access
	conj := append(own[:len(own):len(own)], siblings...)
	for _, n := range conj {
		if a, ok := n.(*query.Always); ok && !a.Value {
			return []*access{{stage: &EOF{}, fetched: true, ordered: true}}
		}
	}
	found := p.leaves(conj)
	for i := range p.indexes() {
		if n := p.number(i); p.hint == nil || p.hint.index == n {
			out = append(out, p.estimate(p.scans(n, conj, found)...)...)
		}
	}
	out = append(out, p.disjunctions(conj, len(own), depth)...)
	slices.SortStableFunc(out, func(a, b *access) int {
		return cmp.Compare(a.entries+a.rows*costFetch, b.entries+b.rows*costFetch)
	})
	return out
}

// complete returns the stage of an access with its residue checked.
func (p *planner) complete(a *access) (s Stage, fetched bool) {
	if len(a.residual) == 0 {
		return a.stage, a.fetched
	}
	return &Fetch{Input: a.stage, Filter: p.filter(a.residual)}, true
}

// sum adds up the estimates of branches.
func sum(branches []*access) *access {
	a := &access{}
	for _, b := range branches {
		a.entries += b.entries
		a.docs += b.docs
		a.rows += b.rows
	}
	return a
}

// or joins accesses. What all of them leave is looked at once, behind.
func (p *planner) or(branches []*access) *access {
	a := sum(branches)
	common := p.commonResidue(branches)
	stages := make([]Stage, len(branches))
	fetched := true
	for i, b := range branches {
		own, got := b.stage, b.fetched
		if !common {
			own, got = p.complete(b)
			if got && !b.fetched {
				a.docs += b.rows
			}
			n, _ := p.pass(b)
			a.rows += n - b.rows
		}
		stages[i], fetched = own, fetched && got
	}
	a.stage, a.fetched = &Or{Branches: stages}, fetched
	if common {
		a.residual = branches[0].residual
	}
	if len(stages) == 1 {
		a.stage = stages[0]
	}
	return a
}

// commonResidue reports whether all branches leave the same conditions.
func (p *planner) commonResidue(branches []*access) bool {
	for _, b := range branches[1:] {
		if !slices.Equal(b.residual, branches[0].residual) {
			return false
		}
	}
	return true
}

// merge joins scans that are in the order that is asked for, or can be made so; nil when they cannot.
func (p *planner) merge(branches []*access) *access {
	if len(p.keys) == 0 {
		return nil
	}
	a := sum(branches)
	a.ordered = true
	common := p.commonResidue(branches)
	var stages []Stage
	fetched := false
	for _, b := range branches {
		if b.scan == nil {
			return nil
		}
		scans := b.scan.explode(p.keys)
		if ok, backward := p.provides(b.scan); ok && b.scan.holds(p.keys) {
			one := *b.scan
			one.Backward = backward
			scans = []*IndexScan{&one}
		}
		if scans == nil {
			return nil
		}
		for _, s := range scans {
			var stage Stage = s
			if !common && len(b.residual) > 0 {
				stage, fetched = &Fetch{Input: s, Filter: p.filter(b.residual)}, true
			}
			stages = append(stages, stage)
		}
	}
	if len(stages) > maxExploded || fetched {
		return nil
	}
	if common {
		a.residual = branches[0].residual
	}
	// The pieces of one scan have no entry in common, and without arrays a record has one entry.
	s := branches[0].scan
	repeats := len(branches) > 1 || s.Multikey != 0 || len(s.Bounds.Paths) > 0
	a.stage = &SortMerge{Branches: stages, Pattern: p.q.Sort, Dedup: repeats}
	return a
}

// intersections returns the accesses by two indexes at once, which pay when each alone gives many more records than both.
func (p *planner) intersections(scans []*access) []*access {
	var out []*access
	if len(scans) > maxIntersected {
		scans = slices.Clone(scans)
		slices.SortStableFunc(scans, func(a, b *access) int { return cmp.Compare(a.rows, b.rows) })
		scans = scans[:maxIntersected]
	}
	for i, a := range scans {
		for _, b := range scans[i+1:] {
			if a.scan.Index == b.scan.Index || a.used|b.used == a.used || a.used|b.used == b.used ||
				a.scan.Bounds.Empty() || b.scan.Bounds.Empty() || a.scan.Filter != nil || b.scan.Filter != nil {
				continue
			}
			both := &access{
				entries: (a.entries + b.entries) * costIntersect, rows: min(a.rows, b.rows, a.rows*b.rows/max(1, p.records())),
				used: a.used | b.used,
			}
			for _, n := range a.residual {
				if slices.Contains(b.residual, n) {
					both.residual = append(both.residual, n)
				}
			}
			both.stage = &And{Branches: []Stage{a.stage, b.stage}, Sorted: a.scan.Bounds.Single() && b.scan.Bounds.Single()}
			out = append(out, both)
		}
	}
	return out
}
