package execute

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
)

// Limits of what is laid out before a scan.
const (
	maxPoints = 4096 // keys that are looked up one by one
	maxRanges = 64   // ranges that are walked over one after the other, without looking into the entries
)

// entries walks over the entries of an index that lie in bounds.
type entries struct {
	x        *run
	s        *plan.IndexScan
	st       *plan.Stats
	distinct int  // the encoded value of the entries each of which is given once; -1: every entry
	records  bool // the index is the records themselves
	unique   bool // the record keys are in the values

	points []plan.Range // when the bounds are points of a unique index: nothing needs to be walked
	ranges []plan.Range // when the bounds are ranges of entries: those still to come
	check  *checker     // when they are not

	it      *pando.Iterator
	started bool
	target  []byte // where to go on; nil: at the next entry
	seen    keySet
	own     index.Entries // those of a record, when there is no room in seen
	cover   *coverer
	value   []byte
	record  []byte
}

// newEntries makes the node of a scan. distinct is the component of which each value is to be given once; -1: none.
func newEntries(x *run, s *plan.IndexScan, st *plan.Stats, distinct int) *entries {
	if distinct >= 0 {
		distinct = s.Part(distinct)
	}
	n := &entries{x: x, s: s, st: st, distinct: distinct}
	n.records = s.Index == plan.IDIndex && x.c.IDIndex == nil
	n.unique = !n.records && s.Definition.Unique
	if s.Definition.Unique && distinct < 0 && s.Bounds.Points() {
		if list, whole := s.Bounds.Cover(maxPoints); whole {
			n.points = list
			return n
		}
	}
	if list, whole := s.Bounds.Cover(maxRanges); whole && distinct < 0 {
		n.ranges = list
	} else {
		n.check = newChecker(s)
	}
	return n
}

// next implements node.
func (n *entries) next(r *row) bool {
	for !n.st.Done && n.x.tick() {
		n.st.Works++
		var ok bool
		switch {
		case n.points != nil:
			ok = n.lookup(r)
		case n.check != nil:
			ok = n.skipping(r)
		default:
			ok = n.walk(r)
		}
		if !ok {
			break
		}
		if r.key == nil {
			continue
		}
		if n.s.Dedup && !n.fresh(r) {
			n.st.Dropped++
			continue
		}
		if n.s.Filter != nil && !n.matches(r) {
			continue
		}
		if n.x.err != nil {
			break
		}
		n.st.Advanced++
		return true
	}
	n.close()
	return false
}

// fresh reports whether a row is the first one of its record. It keeps the keys of the records that it has seen as long as there is
// room for them; of others it tells by the record itself, which entry in the bounds comes first.
func (n *entries) fresh(r *row) bool {
	if n.seen.has(r.key) {
		return false
	}
	if n.seen.fits(n.x, r.key) {
		n.seen.add(r.key)
		return true
	}
	if r.stored == nil {
		var ok bool
		if n.record, ok = n.x.read(n.record[:0], r.key); !ok {
			return false
		}
		n.st.Docs++
		r.stored = n.record
	}
	return bytes.Equal(firstEntry(n.x, &n.own, n.s, r.stored), r.entry)
}

// inside reports whether an entry lies between the bounds of whole entries.
func inside(b *plan.Bounds, key []byte) bool {
	return bytes.Compare(key, b.Lower) >= 0 && (b.Upper == nil || bytes.Compare(key, b.Upper) < 0)
}

func (n *entries) close() {
	n.st.Done = true
	n.seen.release()
	n.release()
}

// release closes the iterator.
func (n *entries) release() {
	if n.it != nil {
		_ = n.it.Close() // reading is over: what could fail has been asked for by Err
		n.it = nil
	}
}

// lookup takes the next point. A row without a key tells that there is no such entry.
func (n *entries) lookup(r *row) bool {
	if len(n.points) == 0 {
		return false
	}
	at := 0
	if n.s.Backward {
		at = len(n.points) - 1
		defer func() { n.points = n.points[:at] }()
	} else {
		defer func() { n.points = n.points[1:] }()
	}
	*r = row{}
	n.st.Seeks++
	n.st.Keys++
	p := n.points[at].Lo
	var err error
	if n.value, err = n.x.r.GetTo(n.x.c.keyspace(n.s.Index), n.value[:0], p); err != nil {
		return errors.Is(err, pando.ErrNotFound) || n.x.fail(err)
	}
	return n.row(r, p, n.value)
}

// walk takes the next entry of the ranges.
func (n *entries) walk(r *row) bool {
	for len(n.ranges) > 0 {
		at := 0
		if n.s.Backward {
			at = len(n.ranges) - 1
		}
		if n.it == nil {
			lower, upper := n.ranges[0].Lo, n.ranges[len(n.ranges)-1].Hi
			if tracks(n.x.r) {
				lower, upper = n.ranges[at].Lo, n.ranges[at].Hi
			}
			n.it = n.x.r.Iter(n.x.c.keyspace(n.s.Index), &pando.IterOptions{Lower: lower, Upper: upper})
		}
		if n.move(&n.ranges[at]) {
			n.st.Keys++
			return n.row(r, n.it.Key(), n.it.Value())
		}
		if n.it.Err() != nil {
			return n.x.fail(n.it.Err())
		}
		if n.started = false; n.s.Backward {
			n.ranges = n.ranges[:at]
		} else {
			n.ranges = n.ranges[1:]
		}
		if tracks(n.x.r) {
			n.release()
		}
	}
	return false
}

// move goes to the next entry of a range: its first one when it was not begun.
func (n *entries) move(r *plan.Range) bool {
	ok := false
	switch {
	case n.started && n.s.Backward:
		ok = n.it.Prev()
	case n.started:
		ok = n.it.Next()
	case n.s.Backward:
		n.st.Seeks++
		if n.started = true; r.Hi == nil {
			ok = n.it.Last()
		} else {
			ok = n.it.SeekLT(r.Hi)
		}
	default:
		n.st.Seeks++
		n.started = true
		ok = n.it.SeekGE(r.Lo)
	}
	if !ok || len(n.ranges) == 1 {
		return ok
	}
	if n.s.Backward {
		return bytes.Compare(n.it.Key(), r.Lo) >= 0
	}
	return r.Hi == nil || bytes.Compare(n.it.Key(), r.Hi) < 0
}

// skipping takes the next entry in the bounds, and leaps over gaps between them.
func (n *entries) skipping(r *row) bool {
	if n.it == nil {
		list, _ := n.s.Bounds.Cover(1)
		if len(list) == 0 {
			return false
		}
		n.it = n.x.r.Iter(n.x.c.keyspace(n.s.Index), &pando.IterOptions{Lower: list[0].Lo, Upper: list[0].Hi})
	}
	for n.x.tick() {
		ok := false
		switch {
		case n.target != nil && n.distinct >= 0 && n.step():
			ok = true // values that come once need no search for the next
		case n.target != nil && n.s.Backward:
			n.st.Seeks++
			ok = n.it.SeekLT(n.target)
		case n.target != nil:
			n.st.Seeks++
			ok = n.it.SeekGE(n.target)
		case n.s.Backward:
			ok = n.it.Prev()
		default:
			ok = n.it.Next()
		}
		n.target = nil
		if !ok {
			break
		}
		n.st.Keys++
		key := n.it.Key()
		verdict, err := n.check.look(key)
		if err != nil {
			return n.x.fail(fmt.Errorf("%s: index %s: %w", n.x.c.Namespace, n.s.Definition.Name, err))
		}
		switch verdict {
		case within:
			if n.distinct >= 0 {
				n.leap(key)
			}
			return n.row(r, key, n.it.Value())
		case past:
			return false
		}
		n.target = n.check.target
	}
	if n.it.Err() != nil {
		n.x.fail(n.it.Err())
	}
	return false
}

// step moves to the next entry, and reports whether it has reached the target with that.
func (n *entries) step() bool {
	if n.s.Backward {
		return n.it.Prev() && bytes.Compare(n.it.Key(), n.target) < 0
	}
	return n.it.Next() && bytes.Compare(n.it.Key(), n.target) >= 0
}

// leap makes the next step one behind all entries with this one's distinct value. Null is not leapt over: missing
// values have the same entry.
func (n *entries) leap(key []byte) {
	end := n.check.ends[n.distinct]
	begin := 0
	if n.distinct > 0 {
		begin = n.check.ends[n.distinct-1]
	}
	v, _, _, err := keyenc.Decode(nil, key[begin:end], n.s.Bounds.Descending[n.distinct])
	if err != nil || v.Type == 0 || isNull(v.Type) {
		return
	}
	if n.s.Backward {
		n.target = append(n.check.target[:0], key[:end]...)
	} else {
		n.target = keyenc.End(n.check.target[:0], key[:end])
	}
}

// row fills a row from an entry.
func (n *entries) row(r *row, key, value []byte) bool {
	switch {
	case len(value) == 0 && (n.records || n.unique) && n.it != nil && n.it.Err() != nil:
		return n.x.fail(n.it.Err())
	case n.records:
		*r = row{key: key, stored: value, entry: key, scan: n}
		return true
	case n.unique:
		if len(value) == 0 {
			return n.x.fail(n.damaged())
		}
		*r = row{key: value[1:], entry: key, inside: value[0] == 0, scan: n}
		return true
	}
	rest, err := key, error(nil)
	for _, descending := range n.s.Bounds.Descending {
		if rest, err = keyenc.Skip(rest, descending); err != nil {
			return n.x.fail(n.damaged())
		}
	}
	*r = row{key: rest, entry: key[:len(key)-len(rest)], inside: len(value) == 0, scan: n}
	return true
}

func (n *entries) damaged() error {
	return fmt.Errorf("%s: index %s: an entry cannot be read: %w", n.x.c.Namespace, n.s.Definition.Name, pando.ErrCorrupt)
}

// matches evaluates the filter on the values of an entry, and on the record where they are not exact.
func (n *entries) matches(r *row) bool {
	if r.stored != nil {
		return n.x.matches(n.s.Filter, r.stored)
	}
	if r.inside {
		doc, err := n.document(r.entry)
		if err != nil {
			return n.x.fail(err)
		}
		return n.x.test(n.s.Filter, path.Document(doc))
	}
	var ok bool
	if n.record, ok = n.x.read(n.record[:0], r.key); !ok {
		return false
	}
	n.st.Docs++
	r.stored = n.record
	return n.x.matches(n.s.Filter, r.stored)
}

// document makes a document of the values of an entry.
func (n *entries) document(entry []byte) ([]byte, error) {
	if n.cover == nil {
		n.cover = newCoverer(n.s.Definition)
	}
	doc, err := n.cover.document(entry)
	if err != nil {
		return nil, fmt.Errorf("%s: index %s: %w", n.x.c.Namespace, n.s.Definition.Name, err)
	}
	return doc, nil
}
