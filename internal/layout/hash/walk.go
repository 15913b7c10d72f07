package hash

import (
	"context"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
)

// Walk implements layout.Layout. It reads all index pages, and records whose values lie apart. For each record it calls fn with the place of
// its piece.
func (h *Hash) Walk(ctx context.Context, r layout.Root, fn func(p segment.Pointer, kind segment.Kind) error) error {
	w := &walker{ctx: ctx, r: r.(*root), fn: fn}
	for g := range w.r.groups {
		if err := w.group(g); err != nil {
			return err
		}
	}
	return nil
}

// walker calls fn for every blob and piece under a root.
type walker struct {
	ctx context.Context
	r   *root
	fn  func(p segment.Pointer, kind segment.Kind) error
	m   reader
	s   layout.Scratch
}

func (w *walker) group(g int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	b, err := w.r.load(&w.s.Blob, g)
	if err != nil {
		return err
	}
	if err := w.fn(w.r.groups[g].ptr, segment.KindInner); err != nil {
		return err
	}
	for i := range b.slots {
		if err := w.page(b, i, uint64(g*groupSlots+i)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) page(b *body, i int, q uint64) error {
	t := &b.slots[i]
	if !t.base.IsZero() {
		if err := w.fn(t.base, segment.KindIndex); err != nil {
			return err
		}
	}
	for _, d := range t.deltas {
		if err := w.fn(d, segment.KindIndexDelta); err != nil {
			return err
		}
	}
	if err := w.r.entries(&w.m, b, q); err != nil {
		return err
	}
	for _, e := range w.m.list {
		if err := w.fn(e.at.Pointer(), segment.KindPieces); err != nil {
			return err
		}
		if !e.apart || w.r.env.WalkValue == nil {
			continue
		}
		if _, _, err := w.r.readEntry(&w.s, e); err != nil {
			return err
		}
		if err := w.r.env.WalkValue(w.s.Record.Value, w.fn); err != nil {
			return err
		}
	}
	return nil
}
