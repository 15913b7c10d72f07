package tree

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/page"
)

// source is the old leaf that a new one is made of; the zero source is none.
type source struct {
	b      *body
	i      int
	pinned uint64
	page   page.Page
	used   bool // others have asked for the page lately
}

// pin keeps the page of the leaf in the cache, if it is there.
func (src *source) pin(r *root) bool {
	h := src.b.handles[src.i].Load()
	p, used, ok := pinPage(r.env, h)
	if ok {
		src.pinned, src.page, src.used = h, p, used
	}
	return ok
}

func (src *source) unpin(r *root) {
	if src.pinned != 0 {
		unpinPage(r.env, src.pinned)
		src.pinned = 0
	}
}

// spared reports whether readers of the old tree can do without the page, whose leaf has become one of so many bytes and records: nobody
// has asked for it lately, as with what the last checkpoint of a load has brought in; or its records are large. Of those there are few in
// each leaf, so that few readers ask for what has not changed lately, and is not found in a memtable, and many leaves to each checkpoint.
func (src *source) spared(size, count int) bool { return !src.used || largeRecords(size, count) }

// read returns the raw page of the leaf, whose keys must lie in [lo, hi): of the pinned page, or from the disk. It is looked at from its
// beginning to its end first: what was made of one half cannot be taken back when the other one makes no sense.
func (src *source) read(a *applier, lo, hi []byte) ([]byte, error) {
	if src.pinned != 0 {
		return src.page.Raw(), asUnreadable(src.bounded(a, lo, hi))
	}
	raw, err := a.root.readLeaf(&a.s, src.b, src.i)
	if err != nil {
		return nil, asUnreadable(err)
	}
	if err := a.sound(raw, lo, hi); err != nil {
		return nil, asUnreadable(a.root.badLeaf(src.b, src.i, err))
	}
	return raw, nil
}

// bounded tells whether the keys of the pinned page, which was looked at when it was made, lie in [lo, hi).
func (src *source) bounded(a *applier, lo, hi []byte) error {
	n := src.page.Len()
	if n == 0 {
		return nil // deltas have removed all that there was
	}
	for _, i := range []int{0, n - 1} {
		a.edge = src.page.AppendKey(a.edge[:0], i)
		if err := within(a.edge, lo, hi); err != nil {
			return a.root.badLeaf(src.b, src.i, err)
		}
	}
	return nil
}

// sound tells what makes no sense in a raw page whose keys must lie in [lo, hi), or returns nil.
func (a *applier) sound(raw, lo, hi []byte) error {
	it := &a.base
	if err := it.Reset(raw); err != nil {
		return err
	}
	if !it.Next() {
		return it.Err()
	}
	if err := within(it.Key(), lo, hi); err != nil {
		return err
	}
	for it.Next() {
	}
	return cmp.Or(it.Err(), within(it.Key(), lo, hi))
}

// within tells that a key does not lie in [lo, hi).
func within(key, lo, hi []byte) error {
	if bytes.Compare(key, lo) < 0 || hi != nil && bytes.Compare(key, hi) >= 0 {
		return fmt.Errorf("key %x lies outside of the leaf's bounds: %w", key, corrupt.Err)
	}
	return nil
}
