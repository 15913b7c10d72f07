package execute

import (
	"bytes"
	"slices"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/plan"
)

func closeAll(list []node) {
	for _, n := range list {
		n.close()
	}
}

// or gives the rows of all inputs, one input after the other, each record once.
type or struct {
	x     *run
	s     *plan.Or
	st    *plan.Stats
	in    []node
	at    int
	given given
}

func (n *or) next(r *row) bool {
	for n.at < len(n.in) && n.x.alive() {
		n.st.Works++
		if !n.in[n.at].next(r) {
			n.in[n.at].close()
			n.at++
			continue
		}
		if !n.given.first(n.x, n.st, r, n.s.Branches[:n.at]) {
			n.st.Dropped++
			continue
		}
		if n.x.err != nil {
			return false
		}
		n.st.Advanced++
		return true
	}
	n.st.Done = true
	return false
}

func (n *or) close() {
	n.given.seen.release()
	closeAll(n.in)
}

// merge gives the rows of inputs that are in one order, in that order, each record once.
type merge struct {
	x       *run
	s       *plan.SortMerge
	st      *plan.Stats
	in      []node
	heads   []head
	started bool
	last    int // the input that gave the row before; -1: none
	given   given
}

// head is the next row of an input, and its place in the order.
type head struct {
	row  row
	sort []byte
	ok   bool
}

func newMerge(x *run, s *plan.SortMerge, st *plan.Stats, in []node) *merge {
	return &merge{x: x, s: s, st: st, in: in, heads: make([]head, len(in)), last: -1}
}

func (n *merge) next(r *row) bool {
	for n.x.alive() {
		n.st.Works++
		if !n.started {
			n.started = true
			for i := range n.in {
				n.pull(i)
			}
		} else if n.last >= 0 {
			n.pull(n.last)
		}
		n.last = -1
		for i := range n.heads {
			if n.heads[i].ok && (n.last < 0 || n.less(&n.heads[i], &n.heads[n.last])) {
				n.last = i
			}
		}
		if n.x.err != nil || n.last < 0 {
			break
		}
		*r = n.heads[n.last].row
		if n.s.Dedup && !n.given.first(n.x, n.st, r, n.s.Branches[:n.last]) {
			n.st.Dropped++
			continue
		}
		n.st.Advanced++
		return n.x.err == nil
	}
	n.st.Done = true
	return false
}

// less orders heads, those that are equal by record key.
func (n *merge) less(a, b *head) bool {
	if d := bytes.Compare(a.sort, b.sort); d != 0 {
		return d < 0
	}
	return bytes.Compare(a.row.key, b.row.key) < 0
}

// pull takes the next row of an input, which stays valid until the next pull of the same.
func (n *merge) pull(i int) {
	h := &n.heads[i]
	if h.ok = n.in[i].next(&h.row); !h.ok {
		return
	}
	var err error
	if h.sort, err = h.row.scan.sortKey(h.sort[:0], h.row.entry, n.s); err != nil {
		h.ok = n.x.fail(err)
	}
}

func (n *merge) close() {
	n.given.seen.release()
	closeAll(n.in)
}

// sortKey appends the values of an entry by which a merge orders, so that bytes compare as the order has it.
func (n *entries) sortKey(dst, entry []byte, s *plan.SortMerge) ([]byte, error) {
	var ends [34]int // of 32 components, and the path of a wildcard
	parts := ends[:1]
	rest := entry
	for _, descending := range n.s.Bounds.Descending {
		var err error
		if rest, err = keyenc.Skip(rest, descending); err != nil {
			return dst, n.damaged()
		}
		parts = append(parts, len(entry)-len(rest))
	}
	elements, err := s.Pattern.Elements()
	if err != nil {
		return dst, err
	}
	for _, e := range elements {
		i := n.s.Component(e.Key())
		if i < 0 {
			continue
		}
		d, _ := e.Value().AsInt64OK()
		at, part := len(dst), n.s.Part(i)
		dst = append(dst, entry[parts[part]:parts[part+1]]...)
		if (n.s.Definition.Components[i].Kind == index.Descending) != (d < 0) {
			for k := at; k < len(dst); k++ {
				dst[k] = ^dst[k]
			}
		}
	}
	return dst, nil
}

// andHash gives the records that all inputs give: it keeps the keys of all inputs but the last. When there is no room for them, it
// looks at each record of the last input instead, whether the others give it.
type andHash struct {
	x     *run
	s     *plan.And
	st    *plan.Stats
	in    []node
	keys  *keySet // nil: there was no room
	given given
	began bool
}

func (n *andHash) next(r *row) bool {
	if !n.began {
		n.began = true
		if !n.collect() {
			n.st.Done = true
			return false
		}
	}
	last := n.in[len(n.in)-1]
	for n.x.alive() && last.next(r) {
		n.st.Works++
		if !n.common(r) {
			continue
		}
		n.st.Advanced++
		return n.x.err == nil
	}
	n.st.Works++
	n.st.Done = true
	return false
}

// common reports whether the inputs before the last one give the record of a row.
func (n *andHash) common(r *row) bool {
	if n.keys != nil {
		ok := n.keys.has(r.key)
		delete(n.keys.keys, string(r.key))
		return ok
	}
	others := n.s.Branches[:len(n.s.Branches)-1]
	return n.given.load(n.x, n.st, r) && n.given.count(n.x, others, r) == len(others)
}

// collect intersects all inputs but the last, as far as there is room.
func (n *andHash) collect() bool {
	for i, in := range n.in[:len(n.in)-1] {
		next := &keySet{}
		var r row
		for in.next(&r) {
			n.st.Works++
			if i > 0 && !n.keys.has(r.key) || next.has(r.key) {
				continue
			}
			if !next.fits(n.x, r.key) {
				next.release()
				n.keep(nil)
				closeAll(n.in[:len(n.in)-1])
				return n.x.err == nil
			}
			next.add(r.key)
		}
		in.close()
		n.keep(next)
		n.st.Memory = max(n.st.Memory, next.bytes)
	}
	return n.x.err == nil
}

func (n *andHash) close() {
	n.keep(nil)
	closeAll(n.in)
}

// keep has another set of keys, or none, in place of the one that there is.
func (n *andHash) keep(keys *keySet) {
	if n.keys != nil {
		n.keys.release()
	}
	n.keys = keys
}

// andSorted gives the records that all inputs give, which are in the order of record keys.
type andSorted struct {
	x   *run
	st  *plan.Stats
	in  []node
	key []byte
}

func (n *andSorted) next(r *row) bool {
	if n.st.Done || !n.x.alive() || !n.in[0].next(r) {
		n.st.Done = true
		return false
	}
	n.key = append(n.key[:0], r.key...)
	for agreed, i := 1, 1; agreed < len(n.in); i = (i + 1) % len(n.in) {
		for {
			n.st.Works++
			if !n.in[i].next(r) {
				n.st.Done = true
				return false
			}
			if d := bytes.Compare(r.key, n.key); d == 0 {
				agreed++
				break
			} else if d > 0 {
				n.key, agreed = append(n.key[:0], r.key...), 1
				break
			}
		}
	}
	n.st.Advanced++
	*r = row{key: n.key}
	return true
}

func (n *andSorted) close() { closeAll(slices.Clone(n.in)) }
