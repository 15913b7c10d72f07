package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/segment"
)

// Bounds of what ApplyOptions may ask for.
const (
	minLeafBytes = 64
	// A leaf with all its deltas must fit into page.MaxRaw, or it could never be read again. One with its last record, of 128 KiB at most,
	// takes maxLeafBytes*5/4 + 128 KiB, and up to page.MaxRaw - deltasMost*deltaMost - wholeFrom leaves them room; more take none.
	maxLeafBytes = 256 << 10
	deltasMost   = 16
	deltaMost    = 32 << 10
	minFanout    = 4
	// wholeFrom is how many bytes a leaf may grow by when a delta brings a key that does not begin like those of the leaf, which
	// have what they share written once: a leaf that could grow by more takes no deltas.
	wholeFrom = 64 << 10
)

// applier is one Apply. It walks over the old tree and the changes side by side, in key order, and builds the new tree from
// the bottom: leaves go to levels[0], the nodes made of them to levels[1], and so on. What did not change goes in as it is.
type applier struct {
	ctx    context.Context
	root   *root
	w      *segment.Writer
	o      layout.ApplyOptions
	ranges []layout.Range
	input  input
	levels [maxHeight + 1]level
	leaf   leafWriter
	batch  batch
	s      layout.Scratch
	base   page.Iterator // over the old leaf at hand
	edge   []byte        // the first or last key of a page
	merged page.Builder  // a leaf with its new delta, for the cache
	change page.Builder  // a delta
	dead   [][]byte      // values apart that the delta at hand kills
	renew  bool          // the stretch that is written anew has not ended
	anew   bool          // the leaf at hand is in it
	page   []byte        // encoded forms
	node   []byte
	filter []byte
	out    replaced
	lowest *node   // whose leaves are at hand; nil: one that is not in memory, so that no page of them can be found
	fresh  []*node // new nodes of the lowest level, to enter into the ring
	memory int64   // of fresh nodes that are kept
	failed error   // what is to be freed cannot be read: nothing of the outcome counts
	next   struct {
		exists bool // the leaf at hand has a right neighbour in its node
		hi     []byte
	}
}

// Apply implements layout.Layout.
func (t *Tree) Apply(ctx context.Context, r layout.Root, ranges []layout.Range, changes layout.Changes, w *segment.Writer, o layout.ApplyOptions) (layout.Root, error) {
	tr, ok := r.(*root)
	if !ok {
		return nil, fmt.Errorf("apply to a tree: root is a %T", r)
	}
	a := &applier{ctx: ctx, root: tr, w: w, o: defaults(o), ranges: ranges, renew: o.Rewrite != nil}
	a.out = replaced{by: w, nodes: tr.give(w)}
	for i := range a.levels {
		a.levels[i].a, a.levels[i].level = a, i
	}
	a.leaf.start(a)
	a.input.start(changes)
	next, err := a.run()
	if err != nil {
		return nil, fmt.Errorf("apply to tree of keyspace %d: %w", tr.keyspace, err)
	}
	if next == tr && len(a.out.nodes) > 0 {
		tr.replaced.Store(&a.out) // as it was
	}
	return next, nil
}

func defaults(o layout.ApplyOptions) layout.ApplyOptions {
	if o.LeafBytes <= 0 {
		o.LeafBytes = layout.DefaultLeafBytes
	}
	o.LeafBytes = min(max(o.LeafBytes, minLeafBytes), maxLeafBytes)
	if o.MaxDeltas == 0 {
		o.MaxDeltas = layout.DefaultMaxDeltas
	}
	o.MaxDeltas = min(o.MaxDeltas, deltasMost)
	if o.Fanout == 0 {
		o.Fanout = layout.DefaultFanout
	}
	o.Fanout = min(max(o.Fanout, minFanout), maxChildren)
	return o
}

func (a *applier) run() (*root, error) {
	top := 0
	if n := a.root.node; n != nil {
		top = n.level
		changed, err := a.inner(n, nil, nil)
		if err != nil {
			return nil, err
		}
		if !changed {
			return a.root, nil
		}
	} else if err := a.plant(); err != nil {
		return nil, err
	}
	if a.failed != nil {
		return nil, a.failed
	}
	e, err := a.finish(top)
	if err != nil {
		return nil, err
	}
	if err := a.w.Flush(); err != nil {
		return nil, err
	}
	return a.newRoot(e)
}

// plant makes leaves out of the changes alone.
func (a *applier) plant() error {
	if !a.input.ok {
		return nil
	}
	return a.rewrite(source{}, nil, nil)
}

// finish closes the levels from the old top upwards until one entry is left: the root. Nil: the tree is empty.
func (a *applier) finish(top int) (*entry, error) {
	if err := a.leaf.flush(); err != nil {
		return nil, err
	}
	for i := range a.levels[:maxHeight] {
		l, above := &a.levels[i], &a.levels[i+1]
		if i > 0 && above.empty() && len(l.entries) == 1 && a.upperEmpty(i+1) {
			return &l.entries[0], nil
		}
		if err := l.flush(); err != nil {
			return nil, err
		}
		if i >= top && a.upperEmpty(i+1) {
			return nil, nil
		}
	}
	return nil, fmt.Errorf("tree of more than %d levels", maxHeight)
}

// upperEmpty reports whether nothing has reached the levels from i on.
func (a *applier) upperEmpty(i int) bool {
	for ; i < len(a.levels); i++ {
		if !a.levels[i].empty() {
			return false
		}
	}
	return true
}

// newRoot makes the root out of its node, leaving out nodes with a single child.
func (a *applier) newRoot(e *entry) (*root, error) {
	r := &root{tree: a.root.tree, env: a.root.env, keyspace: a.root.keyspace}
	r.replaced.Store(&a.out)
	if e == nil {
		return r, nil
	}
	n := e.child
	r.count.Store(e.count)
	r.expiry, r.apart = e.slot.expiry, e.slot.apart
	for n.level > 0 {
		b, err := r.load(&a.s, n)
		if errors.Is(err, corrupt.Err) {
			break // how many children it has is not known
		}
		if err != nil {
			return nil, err
		}
		if b.len() > 1 {
			break
		}
		a.w.Free(n.ptr)
		n = b.children[0]
	}
	r.node = n
	for _, f := range a.fresh {
		if b := f.body.Load(); b != nil {
			r.tree.ring.enter(r.env, f, b)
		}
	}
	return r, nil
}

// inner goes through a node whose keys lie in [lo, hi) and adds what becomes of it to the levels. It answers false, and adds
// the node itself, when nothing in it changed.
func (a *applier) inner(n *node, lo, hi []byte) (changed bool, err error) {
	if a.covered(lo, hi) && !a.input.below(hi) {
		return true, a.dropNode(n, lo, hi)
	}
	b, err := a.loadNode(n, lo, hi)
	if err != nil {
		return a.besideNode(n, lo, hi, err)
	}
	if n.level == 0 {
		a.lowest = n
	}
	l := &a.levels[n.level]
	carried := a.pendingBelow(n.level + 1)
	changed = carried || b.len() >= 2*a.o.Fanout || a.victim(n.ptr) || a.victim(b.filterPtr) || a.renews(hi)
	emitted := l.emitted
	for i := range b.slots {
		clo, chi := b.bounds(i, lo, hi)
		if n.level == 0 {
			if a.next.exists = i+1 < b.len(); a.next.exists {
				_, a.next.hi = b.bounds(i+1, lo, hi)
			}
		}
		c, err := a.child(b, i, clo, chi)
		if err != nil {
			return false, err
		}
		changed = changed || c
	}
	changed = changed || l.emitted != emitted
	if !changed {
		l.reset()
		n.remember(b)
		return false, nil
	}
	return true, a.closeNode(n, b, hi, !carried && l.emitted == emitted)
}

// loadNode loads a node whose keys must lie in [lo, hi).
func (a *applier) loadNode(n *node, lo, hi []byte) (*body, error) {
	b, err := a.root.load(&a.s, n)
	if err == nil {
		err = a.root.within(n, b, lo, hi)
	}
	return b, err
}

// within checks that the keys of a node lie in [lo, hi). Whoever goes down asks, since nodes of which several have the same children could
// otherwise keep him busy for ever.
func (r *root) within(n *node, b *body, lo, hi []byte) error {
	if b.within(lo, hi) {
		return nil
	}
	return r.badNode(n.ptr, errOutside)
}

var errOutside = errors.New("separators lie outside of the node's bounds")

// child deals with child i of b, whose keys lie in [lo, hi).
func (a *applier) child(b *body, i int, lo, hi []byte) (changed bool, err error) {
	l := &a.levels[b.level]
	if !a.renews(hi) && !a.input.below(hi) && !a.touched(lo, hi) && !a.pendingBelow(b.level) && !a.victimsUnder(b, i) {
		return false, l.add(b.entry(i, lo))
	}
	if b.level == 0 {
		return a.visitLeaf(b, i, lo, hi)
	}
	changed, err = a.inner(b.children[i], lo, hi)
	if err == nil && !changed {
		err = l.add(b.entry(i, lo))
	}
	return changed, err
}

// pendingBelow reports whether something that is too small to stand alone waits in what feeds this level.
func (a *applier) pendingBelow(level int) bool {
	if a.leaf.b.Count() > 0 {
		return true
	}
	for i := range level {
		if len(a.levels[i].entries) > 0 {
			return true
		}
	}
	return false
}

// flushBelow closes all that feeds this level.
func (a *applier) flushBelow(level int) error {
	if err := a.leaf.flush(); err != nil {
		return err
	}
	for i := range level {
		if err := a.levels[i].flush(); err != nil {
			return err
		}
	}
	return nil
}

// closeNode ends a node that changed: its entries become new nodes, unless they are so few that they, and what is pending below them,
// should share a node with their right neighbours, or the node, whose keys lie below hi, is written anew with those. whole tells that the
// entries at hand are all that became of the node, and of nothing else: only then can its filter blob live on.
func (a *applier) closeNode(n *node, b *body, hi []byte, whole bool) error {
	a.free(n.ptr)
	if b.level == 0 {
		a.out.nodes = append(a.out.nodes, n)
	}
	l := &a.levels[n.level]
	if a.renews(hi) || (n != a.root.node && l.small()) {
		if !b.filterPtr.IsZero() {
			a.free(b.filterPtr)
		}
		return nil
	}
	emitted := l.emitted
	if err := a.flushBelow(n.level); err != nil {
		return err
	}
	if whole && emitted == l.emitted && l.fitsOne() && !a.victim(b.filterPtr) {
		return l.emit(len(l.entries), b.filterPtr)
	}
	if !b.filterPtr.IsZero() {
		a.free(b.filterPtr)
	}
	return l.flush()
}

// touched reports whether a range delete meets [lo, hi).
func (a *applier) touched(lo, hi []byte) bool {
	a.passRanges(lo)
	if len(a.ranges) == 0 {
		return false
	}
	return hi == nil || bytes.Compare(a.ranges[0].Lo, hi) < 0
}

// covered reports whether a range delete covers all of [lo, hi).
func (a *applier) covered(lo, hi []byte) bool {
	a.passRanges(lo)
	if len(a.ranges) == 0 || bytes.Compare(a.ranges[0].Lo, lo) > 0 {
		return false
	}
	top := a.ranges[0].Hi
	return top == nil || (hi != nil && bytes.Compare(hi, top) <= 0)
}

// passRanges leaves behind the ranges that end at or before key. Keys only ever grow.
func (a *applier) passRanges(key []byte) {
	for len(a.ranges) > 0 && a.ranges[0].Hi != nil && bytes.Compare(a.ranges[0].Hi, key) <= 0 {
		a.ranges = a.ranges[1:]
	}
}

// victimsUnder reports whether a blob of child i may lie in a segment that is being emptied. A large tree has far more children than such
// segments have blobs, and only nodes of which that is not known have to be read for it.
func (a *applier) victimsUnder(b *body, i int) bool {
	if a.o.Victims.Empty() || a.spares() {
		return false
	}
	if b.level == 0 {
		return a.victimLeaf(b, i)
	}
	return b.children[i].mayLieIn(a.o.Victims)
}

// victim reports whether what lies there is to be moved. A leaf that is moved may take some of its neighbours along, which makes much more of
// it than lies in the segment: so that ends where the room does, and what is left stays.
func (a *applier) victim(p segment.Pointer) bool {
	return !p.IsZero() && a.o.Victims.Has(p.Segment) && !a.spares()
}

func (a *applier) spares() bool { return a.o.Spares(a.w) }

// free frees a blob of the old tree.
func (a *applier) free(p segment.Pointer) { a.w.Free(p) }

// input is the stream of changes with one change looked ahead.
type input struct {
	changes layout.Changes
	change  *layout.Change
	ok      bool
}

func (in *input) start(changes layout.Changes) {
	in.changes = changes
	if changes != nil {
		in.next()
	}
}

func (in *input) next() {
	if in.ok = in.changes.Next(); in.ok {
		in.change = in.changes.Change()
	}
}

// below reports whether the next change lies below hi.
func (in *input) below(hi []byte) bool {
	return in.ok && (hi == nil || bytes.Compare(in.change.Key, hi) < 0)
}
