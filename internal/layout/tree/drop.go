package tree

import (
	"errors"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

// What is dropped is read for the values apart that it refers to, which have to be freed. What the device does not give back keeps it from
// being dropped until it counts as damaged, which takes each place half a minute from the first attempt on: so all places are tried at each
// attempt, or many of them would take as many half minutes, in which nothing settles.

// goOn keeps the first failure of the device for when the rest has been tried. It reports whether err is one.
func goOn(first *error, err error) bool {
	if !errors.Is(err, segment.ErrUnreadable) {
		return false
	}
	if *first == nil {
		*first = err
	}
	return true
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
	raw, err := src.read(a)
	if err != nil {
		return err
	}
	if err := a.base.Reset(raw); err != nil {
		return a.root.badLeaf(b, i, err)
	}
	var failed error
	for a.base.Next() {
		if err := a.bury(a.base.Record()); err != nil && !goOn(&failed, err) {
			return err
		}
	}
	if err := a.base.Err(); err != nil {
		return a.root.badLeaf(b, i, err)
	}
	return failed
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

// dropNode frees all that is under a node.
func (a *applier) dropNode(n *node) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	a.free(n.ptr)
	b := n.body.Load()
	if b == nil {
		var err error
		if b, err = a.root.readNode(&a.s, n.ptr, n.level); err != nil {
			return a.root.passOver(err)
		}
	}
	var failed error
	if b.level > 0 {
		for _, child := range b.children {
			if err := a.dropNode(child); err != nil && !goOn(&failed, err) {
				return err
			}
		}
		return failed
	}
	a.out.nodes = append(a.out.nodes, n)
	if !b.filterPtr.IsZero() {
		a.free(b.filterPtr)
	}
	for i := range b.slots {
		if err := a.dropLeaf(b, i); err != nil && !goOn(&failed, err) {
			return err
		}
	}
	return failed
}
