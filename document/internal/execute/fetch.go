package execute

import "github.com/pandodb/pando/document/internal/plan"

// fetch reads the record of each row.
type fetch struct {
	x      *run
	s      *plan.Fetch
	st     *plan.Stats
	in     node
	record []byte
}

func (n *fetch) next(r *row) bool {
	for n.x.alive() {
		n.st.Works++
		if !n.in.next(r) {
			break
		}
		if r.stored == nil {
			var ok bool
			if n.record, ok = n.x.read(n.record[:0], r.key); !ok {
				continue
			}
			r.stored = n.record
		}
		n.st.Docs++
		if n.s.Filter != nil && !n.x.matches(n.s.Filter, r.stored) || !n.x.stands(r.stored) {
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

func (n *fetch) close() { n.in.close() }

// skip leaves out the first rows.
type skip struct {
	st   *plan.Stats
	in   node
	left int64
}

func (n *skip) next(r *row) bool {
	for n.in.next(r) {
		n.st.Works++
		if n.left > 0 {
			n.left--
			continue
		}
		n.st.Advanced++
		return true
	}
	n.st.Works++
	n.st.Done = true
	return false
}

func (n *skip) close() { n.in.close() }

// limit gives the first rows only.
type limit struct {
	st   *plan.Stats
	in   node
	left int64
}

func (n *limit) next(r *row) bool {
	n.st.Works++
	if n.left <= 0 || !n.in.next(r) {
		n.st.Done = true
		n.in.close()
		return false
	}
	n.left--
	n.st.Advanced++
	return true
}

func (n *limit) close() { n.in.close() }

// through passes rows on: what it stands for happens when documents are made.
type through struct {
	st *plan.Stats
	in node
}

func (n *through) next(r *row) bool {
	n.st.Works++
	if !n.in.next(r) {
		n.st.Done = true
		return false
	}
	n.st.Advanced++
	return true
}

func (n *through) close() { n.in.close() }
