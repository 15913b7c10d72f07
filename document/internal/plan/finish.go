package plan

import "math"

// finish makes a whole plan of an access.
func (p *planner) finish(a *access) candidate {
	if a.scan != nil {
		if ok, backward := p.provides(a.scan); ok {
			a.ordered = true
			one := *a.scan
			one.Backward = backward != (p.hint != nil && p.hint.backward)
			a.scan, a.stage = &one, &one
		}
	}
	if p.q.Goal != Find {
		if c, ok := p.summary(a); ok {
			return c
		}
	}
	s, isCovered := p.documents(a)
	cost := p.cost(a, isCovered)
	_, walks := a.stage.(*CollectionScan)
	if walks && a.docs > 0 && p.records() < fewRecords {
		cost += penalty
	}
	if !a.ordered && p.sorts() {
		s = &Sort{Input: s, Pattern: p.q.Sort, Limit: p.toSort()}
	}
	return candidate{root: p.wrap(s), cost: cost, left: len(a.residual), scan: walks}
}

// sorts reports whether an order is asked for that the access has to give.
func (p *planner) sorts() bool {
	isNatural, _ := natural(p.q.Sort)
	return len(p.q.Sort) > 0 && !emptySpec(p.q.Sort) && !isNatural
}

// cost returns what an access costs up to the last document that is wanted.
func (p *planner) cost(a *access, isCovered bool) float64 {
	cost := a.entries + a.docs*costFetch
	if _, walks := a.stage.(*CollectionScan); walks {
		cost = a.docs * costRecord
	}
	switch {
	case a.fetched || isCovered:
	case a.scan != nil && a.scan.Index == IDIndex && p.c.Order != nil:
		cost += a.rows * costRecord // it lies at its key
	default:
		cost += a.rows * costFetch
	}
	rows, known := p.pass(a)
	wanted := float64(p.q.Skip) + float64(p.q.Limit) // as a sum of integers it may come round
	switch {
	case !a.ordered && p.sorts():
		rows = max(rows, 2)
		kept := rows
		if p.q.Limit > 0 {
			kept = min(rows, max(wanted, 2))
		}
		return cost + kept*costSortRow + rows*math.Log2(kept)*costCompare
	case p.q.Limit > 0 && wanted < rows:
		early := cost * wanted / rows
		if !known {
			// The walk ends as soon as enough rows pass, if they do: a guess may be far off.
			early = math.Sqrt(early * cost)
		}
		return early
	}
	return cost
}

// toSort returns how many rows of a sort are wanted.
func (p *planner) toSort() int64 {
	if p.q.Limit <= 0 || p.q.Skip > math.MaxInt64-p.q.Limit {
		return 0
	}
	return p.q.Skip + p.q.Limit
}

// documents returns the stage that gives the documents of an access, and whether it reads them out of the index.
func (p *planner) documents(a *access) (s Stage, isCovered bool) {
	switch {
	case len(a.residual) > 0:
		return &Fetch{Input: a.stage, Filter: p.filter(a.residual)}, false
	case a.fetched:
		return a.stage, false
	case p.covers(a.scan):
		return a.stage, true
	}
	return &Fetch{Input: a.stage}, false
}

// covers reports whether the entries of a scan have all that the projection and the sort order need.
func (p *planner) covers(s *IndexScan) bool {
	if s == nil || s.Definition.Collation != nil || s.Index == IDIndex && !p.c.Capped {
		return false
	}
	paths, ok := p.wanted()
	if !ok {
		return false
	}
	for _, k := range p.keys {
		paths = append(paths[:len(paths):len(paths)], k.path)
	}
	for _, path := range paths {
		if i := s.Component(path); i < 0 || s.Multikey>>i&1 != 0 {
			return false
		}
	}
	return true
}

// wanted returns the paths that are to be in the documents; ok is false when that is not a list of paths.
func (p *planner) wanted() (paths []string, ok bool) {
	if p.q.Projection == nil {
		return p.q.Fields, p.q.Fields != nil
	}
	paths, id, ok := p.q.Projection.Simple()
	if id {
		paths = append(paths[:len(paths):len(paths)], "_id")
	}
	return paths, ok
}

// wrap puts skip, limit and projection around the stage that gives the documents. Skipping comes before reading records where
// nothing looks at them.
func (p *planner) wrap(s Stage) Stage {
	if p.q.Goal == Counting {
		return &Count{Input: s, Skip: p.q.Skip, Limit: p.q.Limit}
	}
	if p.q.Skip > 0 {
		if f, ok := s.(*Fetch); ok && f.Filter == nil {
			s = &Fetch{Input: &Skip{Input: f.Input, N: p.q.Skip}}
		} else {
			s = &Skip{Input: s, N: p.q.Skip}
		}
	}
	if _, ok := s.(*Sort); p.q.Limit > 0 && !(ok && p.q.Skip == 0) && !p.sortedBefore(s) {
		s = &Limit{Input: s, N: p.q.Limit}
	}
	if p.q.Projection != nil {
		s = &Project{Input: s, Projection: p.q.Projection, Covered: p.isCovered(s), Simple: p.simple()}
	} else if p.q.Fields != nil && p.isCovered(s) {
		s = &Project{Input: s, Covered: true}
	}
	return s
}

// sortedBefore reports whether a sort has seen to the limit already.
func (p *planner) sortedBefore(s Stage) bool {
	if skip, ok := s.(*Skip); ok {
		s = skip.Input
	}
	one, ok := s.(*Sort)
	return ok && one.Limit > 0
}

// isCovered reports whether the rows of s are index entries.
func (p *planner) isCovered(s Stage) bool {
	for {
		switch one := s.(type) {
		case *IndexScan, *DistinctScan:
			return true
		case *Skip:
			s = one.Input
		case *Limit:
			s = one.Input
		case *Sort:
			s = one.Input
		default:
			return false
		}
	}
}

func (p *planner) simple() bool {
	_, _, ok := p.q.Projection.Simple()
	return ok
}
