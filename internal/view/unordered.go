package view

import (
	"cmp"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
)

// The walk over a keyspace whose layout keeps no order. Memtables and settled records cannot be merged there, so they are walked over one
// after the other: first the settled records, in the layout's order, but for those that a memtable says something else of, then what the
// memtables have, in the order of keys. Where only one of the two has anything the walk is that of an ordered keyspace.

// parts is where a walk over both parts is.
type parts struct {
	both     bool          // there is something in both
	inMemory bool          // it is in the memtables
	cursor   layout.Cursor // settled's meanwhile
}

// openSettled opens the settled source, if there is anything in it that the memtables leave to be seen.
func (it *Iterator) openSettled(root layout.Root) {
	if root == nil || root.Empty() || it.o.NoSeek != nil && allDeleted(it.sources) {
		return
	}
	it.settled.cursor = root.Recycle(it.memory.settled)
	it.memory.settled = nil
	if it.o.Once {
		it.settled.cursor.ReadOnce()
	}
	it.parts.both = it.merged && it.o.NoSeek != nil
}

// allDeleted reports whether a range delete covers the whole keyspace, as all of them do in one without order.
func allDeleted(sources []source) bool {
	for i := range sources {
		for _, r := range sources[i].ranges {
			if len(r.Lo) == 0 && r.Hi == nil {
				return true
			}
		}
	}
	return false
}

// refuseSeek ends a walk that was asked for a key's place in an order that there is not.
func (it *Iterator) refuseSeek() bool {
	it.usable()
	it.err = cmp.Or(it.err, it.o.NoSeek)
	return it.end(afterLast)
}

// enterMemory and enterSettled go from one part to the other. While the walk is in the memtables it is that over an empty root.

func (it *Iterator) enterMemory() {
	if !it.parts.inMemory {
		it.parts.inMemory, it.parts.cursor = true, it.settled.cursor
		it.settled.cursor, it.settled.valid = nil, false
	}
}

func (it *Iterator) enterSettled() {
	if it.parts.inMemory {
		it.settled.cursor = it.parts.cursor
		it.parts.inMemory, it.parts.cursor = false, nil
	}
	it.ahead, it.n, it.ready = false, 0, 0
}

func (it *Iterator) firstOfBoth() bool {
	it.enterSettled()
	return it.remainingForward(it.settled.seekFirst())
}

func (it *Iterator) lastOfBoth() bool {
	it.enterMemory()
	return it.seekBackward(nil, true) || it.lastSettled()
}

// prevOfBoth is slowPrev from a pair.
func (it *Iterator) prevOfBoth() bool {
	if !it.parts.inMemory {
		return it.remainingBackward(it.settled.prev())
	}
	return it.prevMerged() || it.lastSettled()
}

func (it *Iterator) lastSettled() bool {
	it.enterSettled()
	return it.remainingBackward(it.settled.seekLast())
}

// remainingForward shows the settled pair to which the walk has moved, or the next one that is to be seen, or the first one of the memtables.
func (it *Iterator) remainingForward(ok bool) bool {
	for ; ok; ok = it.settled.next() {
		if it.remains() {
			it.showSettled()
			return true
		}
	}
	if it.settled.err() != nil {
		return it.end(afterLast)
	}
	it.enterMemory()
	return it.seekForward(nil, true)
}

func (it *Iterator) remainingBackward(ok bool) bool {
	for ; ok; ok = it.settled.prev() {
		if it.remains() {
			it.showSettled()
			return true
		}
	}
	return it.end(beforeFirst)
}

// remains reports whether the settled pair under the cursor is to be seen: no memtable has a newer record of its key, or deletes it.
func (it *Iterator) remains() bool {
	s := &it.settled
	if s.expiry != 0 && it.expired(s.record()) {
		return false
	}
	hash := record.Hash(it.o.Keyspace, s.key)
	for _, l := range it.o.Overlay {
		if _, _, ok := l.Table.Get(it.o.Keyspace, hash, s.key, l.Seq); ok || l.Table.Covered(it.o.Keyspace, s.key, l.Seq) > 0 {
			return false
		}
	}
	_, changed := it.view.unsettled(it.o.Keyspace, hash, s.key, it.o.Seq)
	return !changed
}
