package tree

import (
	"bytes"
	"errors"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// What is written to a part of the tree that cannot be read settles all the same, or one damaged page would keep everybody's log from
// being recycled, and writers waiting, for ever. It goes into deltas, which need nothing of the leaf: who asks for what they have gets it,
// who asks for anything else there is told of the damage.
//
// Deltas are few and small, so that a leaf can be read with all of them, and say nothing of ranges. Where that is not enough, stand-ins
// take the place of the damaged blob: leaves that cannot be read either, each with deltas of its own.

// Where it is the device that fails, which may pass, only deltas are written: what is there stays where it lies, until the place has
// failed for so long that it counts as damaged.

// unreadable is damage that was met where the old tree was read, before anything was made of what is there.
type unreadable struct{ error }

// Unwrap returns the damage itself.
func (e *unreadable) Unwrap() error { return e.error }

// asUnreadable marks an error of reading the old tree if others can be read beside it.
func asUnreadable(err error) error {
	if segment.IsUnreadable(err) {
		return &unreadable{err}
	}
	return err
}

// visitLeaf deals with leaf i of b, whose keys lie in [lo, hi): it goes into the new tree as it is, with a delta, rewritten,
// or not at all.
func (a *applier) visitLeaf(b *body, i int, lo, hi []byte) (changed bool, err error) {
	a.anew = a.renews(hi)
	changed, err = a.mergeLeaf(b, i, lo, hi)
	if damage := (*unreadable)(nil); errors.As(err, &damage) && !a.anew {
		return a.besideLeaf(b, i, lo, hi, damage.error)
	}
	if err == nil && a.anew {
		err = a.renewed(b, i, hi)
	}
	return changed, err
}

// besideLeaf is visitLeaf for a leaf that cannot be read. The changes to it are in the batch and in the input.
func (a *applier) besideLeaf(b *body, i int, lo, hi []byte, damage error) (changed bool, err error) {
	// What failed once may be a fault of the way from the disk.
	if _, err := (&source{b: b, i: i}).read(a, lo, hi); err == nil {
		return true, a.rewrite(source{b: b, i: i}, lo, hi)
	}
	if a.victim(b.slots[i].ptr) {
		return false, damage // it cannot be moved
	}
	ranges := a.touched(lo, hi)
	if len(a.batch.items) == 0 && !a.input.below(hi) && !ranges && !a.victimLeaf(b, i) {
		if err := a.leaf.flush(); err != nil {
			return false, err
		}
		return false, a.levels[0].add(b.entry(i, lo))
	}
	deltas := b.deltasOf(i)
	stay, said, err := a.saidBeside(deltas, lo, hi)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(deltas[:stay], func(d delta) bool { return a.victim(d.Pointer) }) {
		return false, damage
	}
	if err := a.leaf.flush(); err != nil {
		return false, err
	}
	for _, d := range deltas[stay:] {
		a.free(d.Pointer)
	}
	a.replacePage(b, i, false)
	w := besideWriter{a: a, damage: damage, e: b.entry(i, lo)}
	w.e.handle, w.e.deltas = 0, slices.Clone(deltas[:stay])
	n, _ := splitCount(w.e.count)
	w.e.count = joinCount(max(n, 1), false)
	// A range that was deleted must not come back with a leaf that can be read another day.
	if ranges || w.e.slot.whole || stay >= deltasMost {
		if err := w.replace(); err != nil {
			return false, err
		}
	}
	return true, a.writeBeside(&w, said, hi)
}

// besideNode is inner for a node that cannot be read.
func (a *applier) besideNode(n *node, lo, hi []byte, damage error) (changed bool, err error) {
	if a.renews(hi) || a.victim(n.ptr) || !errors.Is(damage, corrupt.Err) {
		return false, damage
	}
	if _, err := a.loadNode(n, lo, hi); err == nil {
		return a.inner(n, lo, hi)
	}
	if a.covered(lo, hi) {
		if err := a.dropNode(n, lo, hi); err != nil {
			return true, err
		}
		a.batch.fill(&a.input, hi, batchLeaves*a.o.LeafBytes)
		return true, a.rewrite(source{}, lo, hi)
	}
	if !a.input.below(hi) && !a.touched(lo, hi) {
		return false, a.flushBelow(n.level + 1)
	}
	if err := a.leaf.flush(); err != nil {
		return false, err
	}
	a.free(n.ptr)
	w := besideWriter{a: a, damage: damage}
	if err := w.begin(lo); err != nil {
		return false, err
	}
	a.batch.fill(&a.input, hi, batchLeaves*a.o.LeafBytes)
	return true, a.writeBeside(&w, nil, hi)
}

// saidBeside returns what the readable ones of a leaf's deltas say, sorted by key, and how many of the oldest have to stay as they are,
// because the last of those cannot be read. The keys of the leaf lie in [lo, hi).
func (a *applier) saidBeside(deltas []delta, lo, hi []byte) (stay int, said []layout.Change, err error) {
	known := map[string]bool{}
	for stay = len(deltas); stay > 0; stay-- {
		raw, err := a.root.readBlob(&a.s.Delta, deltas[stay-1].Pointer, segment.KindDelta)
		var changes []layout.Change
		if err == nil {
			err = a.sound(raw, lo, hi)
		}
		if err == nil {
			changes, err = changesIn(bytes.Clone(raw))
		}
		if segment.IsUnreadable(err) {
			break
		}
		if err != nil {
			return 0, nil, err
		}
		for _, c := range changes {
			if !known[string(c.Key)] {
				known[string(c.Key)] = true
				said = append(said, c)
			}
		}
	}
	slices.SortFunc(said, func(x, y layout.Change) int { return bytes.Compare(x.Key, y.Key) })
	return stay, said, nil
}

// changesIn returns the entries of a raw page. Their values alias it.
func changesIn(raw []byte) (changes []layout.Change, err error) {
	var it page.Iterator
	if err := it.Reset(raw); err != nil {
		return nil, err
	}
	for it.Next() {
		changes = append(changes, layout.Change{Key: bytes.Clone(it.Key()), Record: it.Record()})
	}
	return changes, it.Err()
}

// writeBeside merges what deltas said so far with the batch at hand and all further changes below hi.
func (a *applier) writeBeside(w *besideWriter, said []layout.Change, hi []byte) error {
	if a.root.env.Damaged != nil {
		a.root.env.Damaged(w.damage)
	}
	for j := 0; ; {
		if j == len(a.batch.items) {
			a.batch.fill(&a.input, hi, batchLeaves*a.o.LeafBytes)
			j = 0
		}
		more := j < len(a.batch.items)
		if !more && len(said) == 0 {
			break
		}
		order := 1
		switch {
		case !more:
			order = -1
		case len(said) > 0:
			order = bytes.Compare(said[0].Key, a.batch.key(j))
		}
		var err error
		switch {
		case order < 0 && !a.removed(said[0].Key):
			err = w.add(said[0].Key, said[0].Record)
		case order <= 0:
			err = a.bury(said[0].Record)
		}
		if order <= 0 {
			said = said[1:]
		}
		if order >= 0 && err == nil {
			err = w.add(a.batch.key(j), a.batch.record(j))
			j++
		}
		if err != nil {
			return err
		}
	}
	if err := w.cut(); err != nil {
		return err
	}
	return a.levels[0].add(w.e)
}

// besideWriter writes the deltas of what cannot be read, in key order.
type besideWriter struct {
	a       *applier
	damage  error // why
	e       entry // of the leaf, or of the stand-in at hand
	total   int   // bytes of changes in the deltas of e
	bytes   int   // in the delta at hand, which lies in a.change
	keys    digest
	own     int  // how many deltas of e were written now
	stands  bool // e is a stand-in
	filters bool // e has a filter of its own
}

// besideMost is how many bytes of changes there may be beside one leaf.
const besideMost = deltasMost * deltaMost

func (w *besideWriter) add(key []byte, r record.Record) error {
	size := len(key) + len(r.Value) + batchOverhead
	if w.bytes > 0 && w.bytes+size > deltaMost {
		if err := w.cut(); err != nil {
			return err
		}
	}
	if w.bytes == 0 {
		w.a.change.Reset()
		if len(w.e.deltas) >= deltasMost || w.total+max(size, deltaMost) > besideMost {
			if err := w.next(key); err != nil {
				return err
			}
		}
	}
	if err := w.a.change.Add(key, r); err != nil {
		return err
	}
	w.bytes += size
	w.note(record.Hash(w.a.root.keyspace, key), r)
	return nil
}

// note enters a change into what the slot says of it.
func (w *besideWriter) note(hash uint64, r record.Record) {
	w.keys.add(hash)
	if r.Kind == record.Tombstone {
		return
	}
	n, _ := splitCount(w.e.count)
	w.e.count = joinCount(n+1, false)
	w.e.slot.expiry = record.Sooner(w.e.slot.expiry, r.Expiry)
	w.e.slot.apart = w.e.slot.apart || r.Kind == record.Apart
	w.e.forgetUnread()
	if len(w.e.filter) == 0 || filterHas(w.e.filter, hash) {
		return
	}
	if !w.filters {
		w.e.filter, w.e.slot.filter, w.filters = slices.Clone(w.e.filter), noFilter, true
	}
	filterAdd(w.e.filter, hash)
}

// cut writes the delta at hand.
func (w *besideWriter) cut() error {
	if w.bytes == 0 {
		return nil
	}
	if w.bytes > deltaMost { // one large record, which nobody has reckoned with in a leaf
		if err := w.replace(); err != nil {
			return err
		}
	}
	p, err := w.write(&w.a.change)
	if err != nil {
		return err
	}
	w.e.deltas = append(w.e.deltas, delta{Pointer: p, digest: w.keys})
	w.total += w.bytes
	w.own++
	w.bytes, w.keys = 0, 0
	return nil
}

func (w *besideWriter) write(b *page.Builder) (segment.Pointer, error) {
	a := w.a
	a.page = b.Append(a.page[:0])
	return a.writeWith(a.codec(true), segment.KindDelta, a.page)
}

// next closes what is at hand and begins a stand-in for the keys from key on.
func (w *besideWriter) next(key []byte) error {
	if err := w.replace(); err != nil { // the leaf has keys on both sides
		return err
	}
	if err := w.a.levels[0].add(w.e); err != nil {
		return err
	}
	return w.begin(bytes.Clone(key))
}

// begin begins a stand-in with the lower bound sep, of whose keys nothing is known.
func (w *besideWriter) begin(sep []byte) error {
	p, err := w.standIn()
	w.e = entry{sep: sep, slot: slot{ptr: p, filter: noFilter, apart: w.a.root.apart}, count: joinCount(1, false)}
	w.total, w.own, w.stands, w.filters = 0, 0, true, false
	return err
}

// replace makes the leaf at hand, with those of its deltas that cannot be read, a stand-in.
func (w *besideWriter) replace() error {
	if w.stands {
		return nil
	}
	if !errors.Is(w.damage, corrupt.Err) {
		return w.damage
	}
	p, err := w.standIn()
	if err != nil {
		return err
	}
	w.a.free(w.e.slot.ptr)
	kept := len(w.e.deltas) - w.own
	for _, d := range w.e.deltas[:kept] {
		w.a.free(d.Pointer)
	}
	w.e.deltas = w.e.deltas[kept:]
	w.e.slot.ptr, w.e.slot.whole, w.stands = p, false, true
	return nil
}

// standIn writes what lies in the place of a leaf and is none: a blob of another kind, which every version takes for damage.
func (w *besideWriter) standIn() (segment.Pointer, error) {
	var none page.Builder
	return w.write(&none)
}
