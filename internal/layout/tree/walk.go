package tree

import (
	"context"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// Free implements layout.Layout. It reads inner nodes, and leaves only where values lie apart.
func (t *Tree) Free(ctx context.Context, r layout.Root, w *segment.Writer) error {
	tr := r.(*root)
	tr.retire()
	if tr.node == nil {
		return nil
	}
	a := &applier{ctx: ctx, root: tr, w: w, o: defaults(layout.ApplyOptions{})}
	if err := a.dropNode(tr.node, nil, nil); err != nil {
		return err
	}
	if a.failed != nil {
		return a.failed
	}
	for _, l := range a.out.leaves {
		l.dropPage(tr.env)
	}
	for _, n := range a.out.nodes {
		t.ring.leave(tr.env, n)
	}
	return nil
}

// walker calls fn for every blob under a root.
type walker struct {
	ctx context.Context
	r   *root
	fn  func(p segment.Pointer, kind segment.Kind) error
	s   layout.Scratch
	it  page.Iterator
}

// Walk implements layout.Layout. It reads inner nodes, and leaves only where values lie apart.
func (t *Tree) Walk(ctx context.Context, r layout.Root, fn func(p segment.Pointer, kind segment.Kind) error) error {
	tr := r.(*root)
	if tr.node == nil {
		return nil
	}
	w := &walker{ctx: ctx, r: tr, fn: fn}
	return w.node(tr.node, nil, nil)
}

// node walks over a node whose keys must lie in [lo, hi).
func (w *walker) node(n *node, lo, hi []byte) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	b := n.body.Load()
	if b == nil {
		var err error
		if b, err = w.r.readNode(&w.s, n.ptr, n.level); err != nil {
			return err
		}
	}
	if err := w.r.within(n, b, lo, hi); err != nil {
		return err
	}
	if err := w.fn(n.ptr, segment.KindInner); err != nil {
		return err
	}
	for i, child := range b.children {
		clo, chi := b.bounds(i, lo, hi)
		if err := w.node(child, clo, chi); err != nil {
			return err
		}
	}
	if b.level > 0 {
		return nil
	}
	if !b.filterPtr.IsZero() {
		if err := w.fn(b.filterPtr, segment.KindFilter); err != nil {
			return err
		}
	}
	for i := range b.slots {
		if err := w.leaf(b, i); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) leaf(b *body, i int) error {
	if err := w.fn(b.slots[i].ptr, segment.KindLeaf); err != nil {
		return err
	}
	for _, d := range b.deltasOf(i) {
		if err := w.fn(d.Pointer, segment.KindDelta); err != nil {
			return err
		}
	}
	if !b.slots[i].apart || w.r.env.WalkValue == nil {
		return nil
	}
	raw, err := w.r.readLeaf(&w.s, b, i)
	if err != nil {
		return err
	}
	if err := w.it.Reset(raw); err != nil {
		return w.r.badLeaf(b, i, err)
	}
	for w.it.Next() {
		if r := w.it.Record(); r.Kind == record.Apart {
			if err := w.r.env.WalkValue(r.Value, w.fn); err != nil {
				return err
			}
		}
	}
	if err := w.it.Err(); err != nil {
		return w.r.badLeaf(b, i, err)
	}
	return nil
}
