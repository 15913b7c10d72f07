package memtable

import (
	"unsafe"

	"github.com/pandodb/pando/internal/prefetch"
)

// The records of a walk lie anywhere in the arena. A cursor asks for those that it will reach before long, so that their misses overlap
// with each other and with the steps of the walk: for the beginning of each record two batches ahead, and, when that has come, for what
// lies elsewhere, a batch ahead.

const (
	warmFirst = 4  // entries of the first batch: a walk may be short
	warmMost  = 32 // entries of a batch when the walk has turned out to be long
	// warmNear is how far from its node on a record is asked for at once, and warmFar how much of what lies behind that or elsewhere:
	// there the processor notices by itself.
	warmNear = 3 * prefetch.Line
	warmFar  = 8 * prefetch.Line
)

// stretch is the entries [from, to) of a run.
type stretch struct{ from, to int }

// window says how far a walk over a run has asked for its records.
type window struct {
	batch  stretch // the walk may step through these
	asked  int     // where the entries end, in the direction of the walk, whose beginning was asked for
	chased int     // the same of what lies elsewhere
}

// holds reports whether entry i is of the batch at hand.
func (w *window) holds(i int) bool { return uint(i-w.batch.from) < uint(w.batch.to-w.batch.from) }

// next is how large a batch to take: twice the last one, where the walk goes on.
func (w *window) next() int { return min(2*(w.batch.to-w.batch.from), warmMost) }

// forward makes the batch at hand the one that begins with entry i of n, and returns what to ask for and what to chase.
func (w *window) forward(i, n int) (ask, chase stretch) {
	ask, chase = stretch{w.asked, i}, stretch{w.chased, i}
	size := w.next()
	if size == 0 || i != w.batch.to || w.asked < i { // it begins here
		w.batch = stretch{i, min(i+warmFirst, n)}
		w.asked, w.chased = w.batch.to, w.batch.to
		return w.batch, w.batch
	}
	w.batch = stretch{i, min(i+size, n)}
	w.asked, w.chased = min(w.batch.to+2*size, n), min(w.batch.to+size, n)
	ask.to, chase.to = w.asked, w.chased
	return ask, chase
}

// backward is forward for the batch that ends before entry i.
func (w *window) backward(i int) (ask, chase stretch) {
	ask, chase = stretch{i, w.asked}, stretch{i, w.chased}
	size := w.next()
	if size == 0 || i != w.batch.from || w.asked > i {
		w.batch = stretch{max(i-warmFirst, 0), i}
		w.asked, w.chased = w.batch.from, w.batch.from
		return w.batch, w.batch
	}
	w.batch = stretch{max(i-size, 0), i}
	w.asked, w.chased = max(w.batch.from-2*size, 0), max(w.batch.from-size, 0)
	ask.from, chase.from = w.asked, w.chased
	return ask, chase
}

// warmForward prepares a walk forward for entry i of a source, and some that follow it.
func (c *Cursor) warmForward(s *source, i int) {
	ask, chase := s.warm.forward(i, len(s.run.entries))
	c.warmUp(s.run.entries[ask.from:ask.to], s.run.entries[chase.from:chase.to])
}

// warmBackward prepares a walk backward for the entry before i, and some before that.
func (c *Cursor) warmBackward(s *source, i int) {
	ask, chase := s.warm.backward(i)
	c.warmUp(s.run.entries[ask.from:ask.to], s.run.entries[chase.from:chase.to])
}

// warmUp asks for the beginning of some records, which are taken to be as long as those last chased, and then for what lies elsewhere of
// some that have been asked for before: newer versions, and the rest of long values.
func (c *Cursor) warmUp(ask, chase []entry) {
	a := c.arena
	if len(ask) > 0 {
		prefetch.Gather(a.base, unsafe.Pointer(&ask[0].node), len(ask), entryBytes, int(max(c.span, prefetch.Line)))
	}
	longest := uintptr(0)
	var room [2 * warmMost]ref
	far := room[:0]
	for i := range chase {
		node := chase[i].node
		version := a.newest(node)
		if apart := uintptr(version-node) * 8; apart > warmNear {
			far = append(far, version) // nobody has asked for it: a look at its length would wait for it
		} else {
			longest = max(longest, apart+versionHeader+uintptr(*a.word(version, 1)&metaLength))
		}
	}
	if len(chase) > 0 {
		c.span = warmNear // what is far may have a long key before it
		if longest > 0 {
			c.span = min(longest, warmNear)
		}
	}
	if len(far) > 0 {
		length := c.span // values of a keyspace are taken to be of like length
		if longest > warmNear {
			length = warmFar
		}
		prefetch.Gather(a.base, unsafe.Pointer(&far[0]), len(far), refBytes, int(length))
	}
	if longest > warmNear {
		c.warmRest(chase)
	}
}

// warmRest asks for the rest of long values that begin near their nodes.
func (c *Cursor) warmRest(entries []entry) {
	a := c.arena
	for i := range entries {
		node := entries[i].node
		version := a.newest(node)
		if uintptr(version-node)*8 > warmNear {
			continue
		}
		from, to := uintptr(node)*8+warmNear, uintptr(version)*8+uintptr(a.writtenVersionSize(version))
		if to <= from {
			continue
		}
		from &^= prefetch.Line - 1
		to = min(to, from+warmFar)
		prefetch.Lines(unsafe.Add(a.base, from), int((to-from+prefetch.Line-1)/prefetch.Line))
	}
}
