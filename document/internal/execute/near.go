package execute

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/scratch"
)

// near gives records in the order of their distance: ring after ring, each of which it collects and sorts.
type near struct {
	x             *run
	s             *plan.Near
	st            *plan.Stats
	inner, radius float64 // the ring at hand, in radians; what lies nearer than inner has been given
	last          float64
	out           *scratch.Sorter
	key, packed   []byte
	record        []byte
}

func newNear(x *run, s *plan.Near, st *plan.Stats) *near {
	n := &near{x: x, s: s, st: st, inner: -1}
	n.radius, n.last = s.Rings()
	return n
}

func (n *near) next(r *row) bool {
	for !n.st.Done && n.x.alive() {
		if n.out == nil && !n.collect() {
			return false
		}
		n.st.Works++
		_, packed, ok, err := n.out.Next()
		if err != nil {
			return n.x.fail(err)
		}
		if ok {
			if !unpack(r, packed) {
				return n.x.fail(fmt.Errorf("a sorted row cannot be read: %w", pando.ErrCorrupt))
			}
			n.st.Advanced++
			return true
		}
		n.close()
		n.st.Done = n.radius >= n.last
		n.inner, n.radius = n.radius, min(n.last, n.s.Next(n.radius))
	}
	return false
}

// collect sorts what is in the ring.
func (n *near) collect() bool {
	n.out = scratch.NewSorter(n.x.allowed, 0)
	scan := n.s.Within(n.radius)
	st := &plan.Stats{Stage: scan}
	in := newEntries(n.x, scan, st, -1)
	var r row
	for in.next(&r) {
		var ok bool
		if n.record, ok = n.x.read(n.record[:0], r.key); !ok && n.x.err == nil {
			continue
		} else if !ok {
			break
		}
		n.st.Docs++
		if !n.x.matches(n.s.Filter, n.record) {
			continue
		}
		distance, ok := n.s.Query.Distance(n.x.view)
		if !n.x.shown() {
			break
		}
		if radians := n.s.Radians(distance); !ok || radians <= n.inner || radians > n.radius && n.radius < n.last {
			continue
		}
		// Distances are not negative: their bits are in their order.
		n.key = append(binary.BigEndian.AppendUint64(n.key[:0], math.Float64bits(distance)), r.key...)
		n.packed = pack(n.packed[:0], packedRecord, r.key, n.record)
		if err := n.out.Add(n.key, n.packed); err != nil {
			n.x.fail(err)
			break
		}
	}
	in.close()
	n.st.Keys += st.Keys
	if n.x.err != nil {
		return false
	}
	err := n.out.Sort()
	return err == nil || n.x.fail(err)
}

func (n *near) close() {
	if n.out != nil {
		if err := n.out.Close(); err != nil {
			n.x.fail(err)
		}
		n.out = nil
	}
}
