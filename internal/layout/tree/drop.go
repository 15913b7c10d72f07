package tree

import (
	"errors"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// What is dropped is read for the values apart that it refers to, and of a long value that is overwritten where its chunks lie: they have
// to be freed. What the device does not give back keeps it from being dropped until it counts as damaged, which takes each place half a
// minute from the first attempt on: so all places are tried at each attempt, or many of them would take as many half minutes, in which
// nothing settles. Only who writes everything anew is told at once.

// goOn keeps the first failure of the device, with which the Apply is to end, for when the rest has been tried. It reports whether err is
// one.
func (a *applier) goOn(err error) bool {
	if a.o.Rewrite != nil || !errors.Is(err, segment.ErrUnreadable) {
		return false
	}
	if a.failed == nil {
		a.failed = err
	}
	return true
}

// bury frees what an old record refers to.
func (a *applier) bury(r record.Record) error {
	if r.Kind != record.Apart {
		return nil
	}
	return a.freeValue(r.Value)
}

// freeValue frees a value apart.
func (a *applier) freeValue(ref []byte) error {
	if a.root.env.FreeValue == nil {
		return errors.New("no way to free a value apart")
	}
	if err := a.root.env.FreeValue(a.w, ref); err != nil && !a.goOn(err) {
		return err
	}
	return nil
}

// dropLeaf frees a leaf of which nothing remains. It is read only when a value of it may lie apart.
func (a *applier) dropLeaf(b *body, i int) error {
	if b.slots[i].apart {
		if err := a.root.passOver(a.buryLeaf(b, i)); err != nil {
			return err
		}
	}
	a.freeLeaf(b, i, false)
	return nil
}

// buryLeaf frees the values apart of a leaf.
func (a *applier) buryLeaf(b *body, i int) error {
	src := source{b: b, i: i}
	src.pin(a.root)
	defer src.unpin(a.root)
	raw, err := src.read(a, nil, nil)
	if err != nil {
		return err
	}
	if err := a.base.Reset(raw); err != nil {
		return a.root.badLeaf(b, i, err)
	}
	for a.base.Next() {
		if err := a.bury(a.base.Record()); err != nil {
			return err
		}
	}
	if err := a.base.Err(); err != nil {
		return a.root.badLeaf(b, i, err)
	}
	return nil
}

// passOver makes little of damage in what is dropped: it must not keep anybody from getting rid of it. What cannot be found any more
// goes on taking its room.
func (r *root) passOver(err error) error {
	if !errors.Is(err, corrupt.Err) {
		return err
	}
	if r.env.Dropped != nil {
		r.env.Dropped(err)
	}
	return nil
}

// dropNode frees all that is under a node, whose keys must lie in [lo, hi).
func (a *applier) dropNode(n *node, lo, hi []byte) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	var b *body
	err := corrupt.Twice(func() (err error) { // what failed once may be a fault of the way from the disk
		b, err = a.nodeToDrop(n)
		return err
	})
	if err != nil {
		a.free(n.ptr)
		return a.root.passOver(err)
	}
	if err := a.root.within(n, b, lo, hi); err != nil {
		return a.root.passOver(err) // what lies there may be another's
	}
	a.free(n.ptr)
	if b.level > 0 {
		for i, child := range b.children {
			clo, chi := b.bounds(i, lo, hi)
			if err := a.dropNode(child, clo, chi); err != nil && !a.goOn(err) {
				return err
			}
		}
		return nil
	}
	if a.lowest = n; n.body.Load() == nil {
		a.lowest = nil
	}
	a.out.nodes = append(a.out.nodes, n)
	if !b.filterPtr.IsZero() {
		a.free(b.filterPtr)
	}
	for i := range b.slots {
		if err := a.dropLeaf(b, i); err != nil && !a.goOn(err) {
			return err
		}
	}
	return nil
}

// nodeToDrop returns the body of a node that is dropped. Of those above the lowest level it stays: readers of the old tree have to find the
// same nodes below it as the ring is told to let go. Those of the lowest level are not worth the memory.
func (a *applier) nodeToDrop(n *node) (*body, error) {
	if b := n.body.Load(); b != nil {
		return b, nil
	}
	if n.level > 0 {
		return a.root.load(&a.s, n)
	}
	return a.root.readNode(&a.s, n.ptr, n.level)
}
