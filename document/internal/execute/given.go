package execute

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/plan"
)

// given tells which records have been given before: by their keys as long as there is room for them, else by the record itself, which
// an earlier one of the stages that are joined gives too, or none does. So it needs no more memory than it may have, and no files.
type given struct {
	seen   keySet
	record []byte
	own    index.Entries
}

// first reports whether a row is the first one of its record, among what earlier stages and its own give. Each of these gives a
// record once. st counts the records that have to be read for that.
func (g *given) first(x *run, st *plan.Stats, r *row, earlier []plan.Stage) bool {
	if g.seen.has(r.key) {
		return false
	}
	if g.seen.fits(x, r.key) {
		g.seen.add(r.key)
		return true
	}
	if len(earlier) == 0 {
		return true
	}
	if !g.load(x, st, r) {
		return false
	}
	for _, s := range earlier {
		if g.gives(x, s, r) {
			return false
		}
	}
	return x.err == nil
}

// load reads the record of a row.
func (g *given) load(x *run, st *plan.Stats, r *row) bool {
	if r.stored != nil {
		return true
	}
	var ok bool
	if g.record, ok = x.read(g.record[:0], r.key); ok {
		st.Docs++
		r.stored = g.record
	}
	return ok
}

// gives reports whether a stage gives the record of a row, which has been read.
func (g *given) gives(x *run, s plan.Stage, r *row) bool {
	if x.err != nil {
		return false
	}
	switch s := s.(type) {
	case *plan.EOF:
		return false
	case *plan.CollectionScan:
		return s.Filter == nil || x.matches(s.Filter, r.stored)
	case *plan.IDLookup:
		return g.hasID(x, s, r)
	case *plan.IndexScan:
		return g.enters(x, s, r) && (s.Filter == nil || x.matches(s.Filter, r.stored))
	case *plan.Fetch:
		return (s.Filter == nil || x.matches(s.Filter, r.stored)) && g.gives(x, s.Input, r)
	case *plan.And:
		return g.count(x, s.Branches, r) == len(s.Branches)
	case *plan.Or, *plan.SortMerge:
		return g.count(x, s.Inputs(), r) > 0
	}
	return x.fail(fmt.Errorf("%s: %s among stages that are joined", x.c.Namespace, s.Name()))
}

// count returns how many of the stages give the record.
func (g *given) count(x *run, list []plan.Stage, r *row) (n int) {
	for _, s := range list {
		if g.gives(x, s, r) {
			n++
		}
	}
	return n
}

// hasID reports whether a record is the one that a lookup finds.
func (g *given) hasID(x *run, s *plan.IDLookup, r *row) bool {
	if x.c.IDIndex == nil {
		return bytes.Equal(r.key, s.Key)
	}
	key, err := recordKey(x.r, x.c.IDIndex.Keyspace, nil, s.Key)
	if errors.Is(err, pando.ErrNotFound) {
		return false
	}
	return err == nil && bytes.Equal(r.key, key) || err != nil && x.fail(err)
}

// enters reports whether one of a record's entries is in the bounds of a scan.
func (g *given) enters(x *run, s *plan.IndexScan, r *row) bool {
	if s.Index == plan.IDIndex && x.c.IDIndex == nil {
		return inBounds(newChecker(s), s, r.key)
	}
	return firstEntry(x, &g.own, s, r.stored) != nil
}

// firstEntry returns the first of a record's entries that is in the bounds of a scan, in the direction of the scan; nil: there is none.
func firstEntry(x *run, own *index.Entries, s *plan.IndexScan, stored []byte) []byte {
	if err := x.view.Reset(stored); err != nil {
		x.fail(fmt.Errorf("%s: %w", x.c.Namespace, err))
		return nil
	}
	if err := s.Definition.Append(own, x.view); err != nil {
		x.fail(fmt.Errorf("%s: index %s: %w", x.c.Namespace, s.Definition.Name, err))
		return nil
	}
	if !x.shown() {
		return nil
	}
	check := newChecker(s)
	for i := range own.Keys {
		key := own.Keys[i]
		if s.Backward {
			key = own.Keys[len(own.Keys)-1-i]
		}
		if inBounds(check, s, key) {
			return key
		}
	}
	return nil
}

// inBounds reports whether an entry is in the bounds of a scan.
func inBounds(c *checker, s *plan.IndexScan, key []byte) bool {
	v, err := c.look(key)
	return err == nil && v == within && inside(s.Bounds, key)
}
