package tree

import (
	"bytes"
	"slices"

	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// deltaWorth reports whether the batch at hand may become a delta of leaf i: there is room for one more, which there is where all of
// them are to be joined, and all of them together stay below half of the leaf.
func (a *applier) deltaWorth(b *body, i int, join bool) bool {
	deltas := b.deltasOf(i)
	if len(deltas) >= a.mostDeltas(b, i) && !join || a.batch.size() > deltaMost || b.slots[i].whole {
		return false
	}
	return 2*a.deltaBytes(b, i) <= int64(b.slots[i].ptr.Length)
}

// deltaBytes is how many bytes the deltas of leaf i take with one of the batch at hand.
func (a *applier) deltaBytes(b *body, i int) int64 {
	return lengths(b.deltasOf(i)) + int64(a.batch.size()) + segment.HeaderSize + segment.PointerSize
}

// putsOff reports whether leaf i, which ought to be written anew, gets a delta nevertheless, because the disk has little room. It has as
// many then as it may, and has them joined where it has more, as long as they take less than it does.
func (a *applier) putsOff(b *body, i int) (yes, join bool) {
	if !a.spares() || a.batch.size() > deltaMost || b.slots[i].whole {
		return false, false
	}
	return a.deltaBytes(b, i) <= int64(b.slots[i].ptr.Length), len(b.deltasOf(i)) >= deltasMost
}

// mostDeltas is how many deltas leaf i may have. Where its count is open, records were overwritten, and nobody has read the leaf
// since: it may have half as many more, so that it is written less often. A leaf that only grows is split before long in any case.
func (a *applier) mostDeltas(b *body, i int) int {
	if _, exact := b.count(i); exact {
		return a.o.MaxDeltas
	}
	return min(a.o.MaxDeltas+a.o.MaxDeltas/2, deltasMost)
}

// writeDelta writes the batch at hand as a delta of leaf i. It answers done = false, and has done nothing, when the leaf had
// better be written anew.
//
// A leaf that is resident, or that holds a value apart, is merged on the spot: its page in the cache is brought up to date,
// its count stays closed, and the values apart that die are freed now. So values apart are live exactly when the merged leaf
// refers to them. A leaf of neither kind is not read. Where the deltas of the leaf are to be joined, the new one says what they say too
// and takes their place; then the batch may be empty.
func (a *applier) writeDelta(b *body, i int, lo, hi []byte, join bool) (done, changed bool, err error) {
	a.dead = a.dead[:0]
	e := b.entry(i, lo)
	src := source{b: b, i: i}
	empty := len(a.batch.items) == 0
	resident := !empty && src.pin(a.root)
	defer src.unpin(a.root)
	known := resident || !empty && e.slot.apart
	if known {
		raw, err := src.read(a, lo, hi)
		if err != nil {
			return false, false, err
		}
		fits, err := a.mergeResident(raw)
		if err != nil || !fits {
			return false, false, err
		}
		e.count = uint64(a.merged.Count())
	}
	if err := a.batch.appendTo(&a.change); err != nil {
		return false, false, err
	}
	if a.change.Count() == 0 && !join {
		return true, false, a.levels[0].add(b.entry(i, lo))
	}
	var joined digest
	if join {
		joined, err = a.joinDeltas(b, i)
		if size := a.change.Size() + a.change.Shared(0); err != nil || size > deltaMost { // in the leaf nothing may be shared
			return false, false, err
		}
	}
	if err := a.freeDead(); err != nil {
		return false, false, err
	}
	a.page = a.change.Append(a.page[:0])
	p, err := a.writeWith(a.codec(true), segment.KindDelta, a.page)
	if err != nil {
		return false, false, err
	}
	if join {
		for _, d := range e.deltas {
			a.free(d.Pointer)
		}
		e.deltas = nil
	}
	e.deltas = append(e.deltas, delta{Pointer: p, digest: joined}) // copies: the node's slice has no room behind it
	a.extend(&e, known)
	if empty {
		return true, true, a.levels[0].add(e) // the leaf with its deltas is what it was
	}
	e.handle = 0
	if resident {
		src.unpin(a.root)
		a.replacePage(b, i, src.spared(a.merged.Size(), a.merged.Count()))
		e.handle = insertBuilder(a.root.env, &a.merged, a.root.keyspace)
	}
	return true, true, a.levels[0].add(e)
}

// joinDeltas makes a.change, which holds the batch at hand, say what the deltas of leaf i said too, and returns what lets their keys
// through.
func (a *applier) joinDeltas(b *body, i int) (keys digest, err error) {
	raw, err := a.root.readJoined(&a.s, b, i)
	if err != nil {
		return 0, asUnreadable(err)
	}
	a.page = a.change.Append(a.page[:0])
	if err := fold(&a.change, &a.s, raw, a.page, true); err != nil {
		return 0, asUnreadable(a.root.badLeaf(b, i, err))
	}
	if err := a.s.Base.Reset(raw); err != nil {
		return 0, err
	}
	for a.s.Base.Next() {
		keys.add(record.Hash(a.root.keyspace, a.s.Base.Key()))
	}
	return keys, a.s.Base.Err()
}

// extend enters the changes of a delta, the last of e, into what the slot says of it and of its leaf.
func (a *applier) extend(e *entry, known bool) {
	count, exact := splitCount(e.count)
	keys := &e.deltas[len(e.deltas)-1].digest
	owned := false
	for j := range a.batch.items {
		c := &a.batch.items[j]
		if c.idle {
			continue
		}
		hash := record.Hash(a.root.keyspace, a.batch.key(j))
		keys.add(hash)
		fresh := len(e.filter) > 0 && !filterHas(e.filter, hash)
		if c.kind == record.Tombstone {
			exact = exact && known
			continue
		}
		e.forgetUnread()
		e.slot.expiry = record.Sooner(e.slot.expiry, c.expiry)
		e.slot.apart = e.slot.apart || c.kind == record.Apart
		if !known {
			count++
			exact = exact && fresh
		}
		if fresh {
			if !owned {
				e.filter, owned = slices.Clone(e.filter), true
				e.slot.filter = noFilter
			}
			filterAdd(e.filter, hash)
		}
	}
	e.count = joinCount(count, exact)
}

// forgetUnread is called before a key comes into a leaf. A filter that could not be read does not know it, and who reads the filter another
// day would be told that the key is absent.
func (e *entry) forgetUnread() {
	if len(e.filter) == 0 {
		e.slot.filter = noFilter
	}
}

// mergeResident merges the batch over raw into a.merged, marks the changes that do nothing, and notes the values apart that
// die. It answers false when the leaf would be empty or too large.
func (a *applier) mergeResident(raw []byte) (fits bool, err error) {
	a.merged.Reset()
	it, j := &a.base, 0
	if err := it.Reset(raw); err != nil {
		return false, err
	}
	for inBase := it.Next(); inBase || j < len(a.batch.items); {
		order := -1
		if !inBase {
			order = 1
		} else if j < len(a.batch.items) {
			order = bytes.Compare(it.Key(), a.batch.key(j))
		}
		if order < 0 {
			if err := a.merged.Add(it.Key(), it.Record()); err != nil {
				return false, err
			}
			inBase = it.Next()
			continue
		}
		if order == 0 {
			if old := it.Record(); old.Kind == record.Apart {
				a.dead = append(a.dead, bytes.Clone(old.Value))
			}
			inBase = it.Next()
		}
		if r := a.batch.record(j); r.Kind != record.Tombstone {
			if err := a.merged.Add(a.batch.key(j), r); err != nil {
				return false, err
			}
		} else {
			a.batch.items[j].idle = order != 0
		}
		j++
	}
	if err := it.Err(); err != nil {
		return false, err
	}
	return a.merged.Count() > 0 && a.merged.Size() <= a.leaf.most(), nil
}

// freeDead frees the values apart that mergeResident found dead.
func (a *applier) freeDead() error {
	for _, ref := range a.dead {
		if err := a.freeValue(ref); err != nil {
			return err
		}
	}
	return nil
}
