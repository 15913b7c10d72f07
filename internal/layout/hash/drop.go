package hash

import (
	"context"
	"errors"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
)

// Free implements layout.Layout. It reads all index pages, and records whose values lie apart.
func (h *Hash) Free(ctx context.Context, r layout.Root, w *segment.Writer) error {
	hr := r.(*root)
	hr.retire()
	a := &applier{ctx: ctx, root: hr, w: w}
	if err := a.clear(); err != nil {
		return err
	}
	if a.failed != nil {
		return a.failed
	}
	if hr.freed.Swap(true) {
		a.out.memory = 0 // the round that freed it before has failed
	}
	a.root.replaced.Store(&a.out)
	a.root.retire()
	return nil
}

// clear frees all that there is and makes the root at hand an empty one.
func (a *applier) clear() error {
	old := a.root
	if len(old.groups) == 0 {
		return nil
	}
	for g, group := range old.groups {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		b, err := a.loadGroup(g)
		a.freeGroup(group)
		if err := a.passOver(err); err != nil {
			return err
		}
		if b == nil {
			continue
		}
		for i := range b.slots {
			if err := a.dropPage(b, uint64(g*groupSlots+i)); err != nil {
				return err
			}
		}
	}
	a.root = &root{hash: old.hash, env: old.env, keyspace: old.keyspace}
	return nil
}

// dropPage frees a page with all its records.
func (a *applier) dropPage(b *body, q uint64) error {
	i := int(q % groupSlots)
	if b.slots[i].empty() {
		return nil
	}
	err := a.root.entries(&a.m, b, q)
	if errors.Is(err, corrupt.Err) { // as loadGroup does
		err = a.root.entries(&a.m, b, q)
	}
	a.freePage(b, i)
	if err := a.passOver(err); err != nil {
		return err
	}
	for _, e := range a.m.list {
		a.w.Free(e.at.Pointer())
		if !e.apart {
			continue
		}
		_, _, err := a.root.readEntry(&a.s, e)
		if err == nil {
			err = a.bury(&a.s.Record)
		}
		if err := a.passOver(err); err != nil {
			return err
		}
	}
	return nil
}

// passOver makes little of damage in what is dropped: it must not keep anybody from getting rid of it. What cannot be found any more goes on
// taking its room.
func (a *applier) passOver(err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, corrupt.Err) { // what the device does not give back for long enough is damage too
		if a.goOn(err) {
			return nil
		}
		return err
	}
	if a.root.env.Dropped != nil {
		a.root.env.Dropped(err)
	}
	return nil
}
