package tree

import (
	"fmt"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/pageformat"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// lay is rewrite for the commonest leaf, which stays one and has all its changes at hand: deltas and changes are laid over its old page,
// of which the rest is copied as it lies there, and the filter stays where the keys do. To take out each record and put it into another
// page takes several times as long. It is not done where the leaf is to be split, or is too little for one, or each record has to be looked
// at.
func (a *applier) lay(src *source, raw []byte, deltas []segment.Request, lo, hi []byte) (done bool, err error) {
	if !a.lays(src, lo, hi) {
		return false, nil
	}
	w, b, i := &a.leaf, src.b, src.i
	grows := a.newcomers(b.filterOf(i))
	folded := len(raw) + a.growth(deltas, grows)
	if w.fit(folded, b.slots[i].ptr); folded+grows > w.most() {
		return false, nil
	}
	if ok, err := a.layOver(raw, deltas); err != nil {
		return false, asUnreadable(a.root.badLeaf(b, i, err))
	} else if !ok {
		return false, nil
	}
	h, ok := pageformat.ParseHead(a.page)
	if !ok {
		return false, a.root.badLeaf(b, i, fmt.Errorf("no beginning of a page: %w", corrupt.Err))
	}
	if n := len(a.page); h.Count == 0 || n > w.most() || w.waits(n) {
		return false, nil
	}
	w.begin(lo, false)
	w.sparse, w.fills = a.sparse(raw), false
	e := entry{sep: w.sep, count: h.Count}
	e.slot = slot{filter: noFilter, expiry: a.batch.leastExpiry(), whole: uint64(h.Prefix)*h.Count > wholeFrom}
	if err := a.layFilter(&e, b.filterOf(i), b.slots[i].filter, a.s.Overlay.Removes()); err != nil {
		return false, err
	}
	a.freeLeaf(b, i, false)
	a.batch.items, a.batch.arena = a.batch.items[:0], a.batch.arena[:0]
	if err := w.store(&e); err != nil {
		return false, err
	}
	return true, a.levels[0].add(e)
}

// lays reports whether changes may be laid over a leaf: it does not go to the cache, for which a page that was built is quicker to bring
// into its form, nothing waits to share a leaf with it, no other changes follow, and no record that is there has to be looked at.
func (a *applier) lays(src *source, lo, hi []byte) bool {
	s := &src.b.slots[src.i]
	if a.o.Rewrite || src.pinned != 0 || a.leaf.hasRoom() {
		return false
	}
	if a.leaf.b.Count() > 0 || s.apart || s.expiry != 0 || a.input.below(hi) || a.touched(lo, hi) {
		return false
	}
	return !slices.ContainsFunc(a.batch.items, func(c change) bool { return c.kind == record.Apart })
}

// newcomers notes the hashes of the changes at hand that bring keys which are new to a leaf with this filter, and returns how many bytes
// these have.
func (a *applier) newcomers(filter []byte) (bytes int) {
	a.hashes = a.hashes[:0]
	for j := range a.batch.items {
		c := &a.batch.items[j]
		if c.kind == record.Tombstone {
			continue
		}
		hash := record.Hash(a.root.keyspace, a.batch.key(j))
		if len(filter) == 0 || !filterHas(filter, hash) {
			a.hashes = append(a.hashes, hash)
			bytes += c.end - c.key
		}
	}
	return bytes
}

// growth is by how much deltas make their leaf grow, if they are as the batch at hand, of which so many bytes are new.
func (a *applier) growth(deltas []segment.Request, fresh int) int {
	n := 0
	for i := range deltas {
		n += len(deltas[i].Raw)
	}
	return int(int64(n) * int64(fresh) / int64(max(len(a.batch.arena), 1)))
}

// layOver makes a.page of a raw page with deltas and the batch at hand put over it. It is false where their keys do not allow that.
func (a *applier) layOver(raw []byte, deltas []segment.Request) (ok bool, err error) {
	if ok, err := putOver(&a.s, raw, deltas); !ok || err != nil {
		return false, err
	}
	if err := a.batch.appendTo(&a.change); err != nil {
		return false, err
	}
	a.laid = a.change.Append(a.laid[:0])
	if ok, err := a.s.Overlay.Put(a.laid); !ok || err != nil {
		return false, err
	}
	a.page, err = a.s.Overlay.Append(a.page[:0])
	return err == nil, err
}

// layFilter gives e, the leaf in a.page, its filter. lost tells that the old filter, which is number at of its node, may have keys that the
// leaf has not.
func (a *applier) layFilter(e *entry, old []byte, at uint32, lost bool) error {
	switch {
	case a.o.NoFilters:
	case lost || len(old) != filterSize(int(e.count)):
		e.filter = make([]byte, filterSize(int(e.count)))
		if err := a.base.Reset(a.page); err != nil {
			return err
		}
		for a.base.Next() {
			filterAdd(e.filter, record.Hash(a.root.keyspace, a.base.Key()))
		}
		return a.base.Err()
	case len(a.hashes) == 0:
		e.filter, e.slot.filter = old, at
	default:
		e.filter = slices.Clone(old)
		for _, hash := range a.hashes {
			filterAdd(e.filter, hash)
		}
	}
	return nil
}
