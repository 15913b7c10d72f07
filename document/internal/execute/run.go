package execute

import (
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/document/internal/scratch"
)

// stepsPerCheck is after how many steps a run looks whether it has been cancelled.
const stepsPerCheck = 256

// run is the execution of one plan.
type run struct {
	ctx     context.Context
	r       Reader
	live    bool // it is a transaction, which may write while it is read
	c       *Collection
	allowed scratch.Allowance // of each blocking stage
	steps   int
	limit   int64 // of steps; 0: none
	err     error
	view    *codec.View // of whatever record is looked at
	buf     []byte      // of records that are read for a look only
	whole   []byte      // of documents that are decoded for a look only
	query   *plan.Query
}

// row is what a stage gives. Its bytes are valid until the stage's next step.
type row struct {
	key    []byte // of the record
	stored []byte // the record; nil: it was not read
	entry  []byte // the encoded values of an index; nil: none
	inside bool   // the entry decodes to the very values of the record
	scan   *entries
	doc    []byte // a document made of an entry, where the entry itself is gone
}

// node is a stage at work.
type node interface {
	// next moves to the next row; false: the end, or an error in run.err.
	next(r *row) bool
	close()
}

// fail notes the first error.
func (x *run) fail(err error) bool {
	if x.err == nil {
		x.err = err
	}
	return false
}

// tick counts a step, and reports whether the run may go on.
func (x *run) tick() bool {
	if x.steps++; x.limit > 0 && int64(x.steps) > x.limit {
		return x.fail(ErrSteps)
	}
	if x.steps%stepsPerCheck != 0 {
		return true
	}
	return x.alive()
}

// alive reports whether the run has neither failed nor been cancelled.
func (x *run) alive() bool {
	if x.err != nil {
		return false
	}
	if err := x.ctx.Err(); err != nil {
		return x.fail(err)
	}
	return true
}

// matches evaluates a filter on a record.
func (x *run) matches(f *query.Filter, stored []byte) bool {
	if err := x.view.Reset(stored); err != nil {
		return x.fail(fmt.Errorf("%s: %w", x.c.Namespace, err))
	}
	match := x.test(f, x.view)
	return x.shown() && match
}

// shown reports whether the view has shown all that was asked for: a field that makes no sense it shows as missing.
func (x *run) shown() bool {
	err := x.view.Err()
	return err == nil || x.fail(fmt.Errorf("%s: %w", x.c.Namespace, err))
}

func (x *run) test(f *query.Filter, doc path.Fields) bool {
	ok, err := f.Match(doc)
	if err != nil {
		return x.fail(err)
	}
	return ok
}

// read reads a record. It is not ok, without an error, where a transaction has deleted the record since it began to read.
func (x *run) read(dst, key []byte) ([]byte, bool) {
	out, err := x.r.GetTo(x.c.Records, dst, key)
	if x.live && errors.Is(err, pando.ErrNotFound) {
		return out, false
	}
	if errors.Is(err, pando.ErrNotFound) {
		err = fmt.Errorf("%s: an index has an entry for a record that is not there: %w", x.c.Namespace, pando.ErrCorrupt)
	}
	if err != nil {
		return out, x.fail(err)
	}
	return out, true
}

// stands reports whether a record that an entry led to matches the query still: a transaction may have changed it since it began to read.
func (x *run) stands(stored []byte) bool {
	f := x.query.Filter
	return !x.live || f == nil || f.IsRandom() || x.matches(f, stored)
}

// keySet is a set of record keys in bounded memory.
type keySet struct {
	keys  map[string]struct{}
	bytes int64
	share scratch.Share
	full  bool
}

// keyOverhead is about what a key in a set takes beside its bytes.
const keyOverhead = 48

// has reports whether a key is in the set.
func (s *keySet) has(key []byte) bool {
	_, ok := s.keys[string(key)]
	return ok
}

// fits reports whether there is room for a key. Once there was none there is none for ever, though others may have given memory back: a key
// that was told by other means must not become one that has not been seen.
func (s *keySet) fits(x *run, key []byte) bool {
	if s.full {
		return false
	}
	if s.keys == nil {
		s.share = x.allowed.Share()
	}
	s.full = !s.share.Fits(s.bytes + int64(len(key)) + keyOverhead)
	return !s.full
}

// release gives the memory back. Nobody asks for keys any more.
func (s *keySet) release() {
	if s.keys != nil {
		s.share.Shrink(0)
	}
	s.keys, s.full = nil, true
}

// add puts a key in.
func (s *keySet) add(key []byte) {
	if s.keys == nil {
		s.keys = make(map[string]struct{})
	}
	s.bytes += int64(len(key)) + keyOverhead
	s.keys[string(key)] = struct{}{}
}

// build makes the node of a stage.
func (x *run) build(s plan.Stage) (node, *plan.Stats) {
	st := &plan.Stats{Stage: s}
	nested := func(in plan.Stage) node {
		n, below := x.build(in)
		st.Inputs = append(st.Inputs, below)
		return n
	}
	all := func(in []plan.Stage) []node {
		out := make([]node, len(in))
		for i := range in {
			out[i] = nested(in[i])
		}
		return out
	}
	switch s := s.(type) {
	case *plan.CollectionScan:
		return &collectionScan{x: x, s: s, st: st}, st
	case *plan.IDLookup:
		return &idLookup{x: x, s: s, st: st}, st
	case *plan.IndexScan:
		return newEntries(x, s, st, -1), st
	case *plan.Near:
		return newNear(x, s, st), st
	case *plan.DistinctScan:
		return newEntries(x, s.Scan, st, s.Field), st
	case *plan.Fetch:
		return &fetch{x: x, s: s, st: st, in: nested(s.Input)}, st
	case *plan.Or:
		return &or{x: x, s: s, st: st, in: all(s.Branches)}, st
	case *plan.SortMerge:
		return newMerge(x, s, st, all(s.Branches)), st
	case *plan.And:
		if s.Sorted {
			return &andSorted{x: x, st: st, in: all(s.Branches)}, st
		}
		return &andHash{x: x, s: s, st: st, in: all(s.Branches)}, st
	case *plan.Sort:
		return &sorter{x: x, s: s, st: st, in: nested(s.Input)}, st
	case *plan.Skip:
		return &skip{st: st, in: nested(s.Input), left: s.N}, st
	case *plan.Limit:
		return &limit{st: st, in: nested(s.Input), left: s.N}, st
	case *plan.Count:
		return &counter{x: x, s: s, st: st}, st
	case *plan.Project:
		return &through{st: st, in: nested(s.Input)}, st
	}
	return &nothing{st: st}, st
}
