package plan

// summary returns the plan of a count or of distinct values that an access allows without reading records; ok is false when it
// allows none.
func (p *planner) summary(a *access) (c candidate, ok bool) {
	if p.q.Goal == Counting {
		return p.counting(a)
	}
	return p.distinct(a)
}

// counting returns a plan that counts.
func (p *planner) counting(a *access) (candidate, bool) {
	if walk, ok := a.stage.(*CollectionScan); ok && walk.Filter == nil && p.hint == nil {
		return candidate{root: p.wrap(nil)}, true
	}
	if len(a.residual) > 0 {
		return candidate{}, false
	}
	if s := a.scan; s != nil && s.Filter == nil && !s.Dedup {
		if _, whole := s.Bounds.Cover(maxCounted); whole {
			return candidate{root: p.wrap(&CountScan{Scan: s}), cost: float64(len(s.Bounds.Fields))}, true
		}
	}
	cost := a.entries + a.docs*costFetch
	if _, walks := a.stage.(*CollectionScan); walks {
		cost = a.docs * costRecord
		if a.docs > 0 && p.records() < fewRecords {
			cost += penalty
		}
	}
	return candidate{root: p.wrap(a.stage), cost: cost}, true
}

// distinct returns a plan that looks at one entry for each value. It needs an index of which the field is the first component that
// is not held to one value, and the bounds of which are all that is asked: an entry stands for all others with its value.
func (p *planner) distinct(a *access) (candidate, bool) {
	s := a.scan
	if s == nil || len(a.residual) > 0 || s.Filter != nil || p.q.Field == "" || !s.Definition.Collation.Equal(p.q.Collation) {
		return candidate{}, false
	}
	i := 0
	for i < len(s.Definition.Components) && s.Definition.Components[i].Path != p.q.Field && s.fixed(i) && s.Multikey>>i&1 == 0 {
		i++
	}
	if i == len(s.Definition.Components) || s.Definition.Components[i].Path != p.q.Field || s.Component(p.q.Field) != i ||
		s.Multikey != 0 || s.Definition.Collation != nil {
		return candidate{}, false
	}
	if p.q.First && !p.firstComesFirst(a, i) {
		return candidate{}, false
	}
	var root Stage = &DistinctScan{Scan: s, Field: i}
	if p.q.Fields != nil && !p.covers(s) {
		return candidate{root: p.wrap(&Fetch{Input: root}), cost: a.entries + a.entries*newValues*costFetch}, true
	}
	return candidate{root: p.wrap(root), cost: a.entries}, true
}

// newValues is which part of the entries of an index is taken to be the first with its value.
const newValues = 0.1

// firstComesFirst reports whether the first entry with each value of component i is that of the first document.
func (p *planner) firstComesFirst(a *access, i int) bool {
	if p.sorts() {
		return a.ordered
	}
	return i == len(a.scan.Definition.Components)-1 && !a.scan.Backward
}

// IsDistinct reports whether a plan gives one row for each value.
func IsDistinct(s Stage) bool {
	if _, ok := s.(*DistinctScan); ok {
		return true
	}
	return len(s.Inputs()) == 1 && IsDistinct(s.Inputs()[0])
}
