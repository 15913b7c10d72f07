package view

import (
	"bytes"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pandodb/pando/internal/gap"
	"github.com/pandodb/pando/internal/memtable"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// Layer is the uncommitted work of a transaction, read in front of a view.
type Layer struct {
	Table *memtable.Table
	Seq   uint64
}

// IteratorOptions says what an iterator walks over.
type IteratorOptions struct {
	Keyspace     uint32
	Seq          uint64
	Now          uint64 // records that have expired by this moment are not shown
	Lower, Upper []byte // [Lower, Upper); nil is open. The iterator keeps the slices
	KeysOnly     bool
	Once         bool         // what is read from the disk stays out of the page cache
	Short        bool         // few pairs will be looked at: only what they need is loaded
	Overlay      []Layer      // newest first
	Stop         *Stop        // what makes the iterator stop
	Hid          *atomic.Bool // set when an expired record was passed over
	Gaps         gap.Gaps     // where nothing is to be seen at Seq: the walk leaps over them
	Noter        Noter        // whom to tell of others; nil: nobody
	Leads        bool         // whoever walks leads commits
	NoSeek       error        // what seeking fails with, since the keyspace keeps no order; nil: it does. There are no bounds then
}

// Stop makes iterators stop from elsewhere: when their transaction, snapshot or database ends.
type Stop struct {
	stopped atomic.Bool
	once    sync.Once
	err     error
}

// Set stops: from now on every move answers false, and Err with err. Only the first call counts.
func (s *Stop) Set(err error) {
	s.once.Do(func() {
		s.err = err
		s.stopped.Store(true)
	})
}

// Err returns what Set was called with, nil before.
func (s *Stop) Err() error {
	if s.stopped.Load() {
		return s.err
	}
	return nil
}

// position says where an iterator stands.
type position uint8

const (
	fresh position = iota // before the first move
	onPair
	beforeFirst
	afterLast
)

// noPair is no number of a pair of a batch.
const noPair = -1

// Iterator walks over the pairs of one keyspace as one view shows them. It is used by one goroutine at a time.
//
// While nothing unsettled is in its way it steps inside the layout's pages directly, and forward over memtables without range deletes it
// looks for their next key in the page, in both cases with several pairs decoded at once. Else it merges the memtables' cursors with the
// settled one, comparing one key a source a step.
type Iterator struct {
	batch *page.Batch // the pairs that follow each other where the iterator stands
	n     int         // the one that it stands on
	ready int         // how many there are
	read  int         // the one whose value, which lies apart, is in value; noPair: none
	stop  *Stop
	fast  bool // standing on a settled pair: it lies in settled's page, which is held
	plain bool // the value in the batch lies in settled's page, and is what Value returns
	at    position
	kind  record.Kind

	expiry  uint64 // of the current pair, like kind
	settled settled
	begin   int // while fast: the entry of settled's page that is the first of the batch
	run     int // while fast: entries of settled's page before this one follow without a look at anything else
	floor   int // while fast: the same going backward, down to this entry
	grown   int // how many pairs the last batch of this walk was to have
	deleted int // how many of the memtables' keys in a row were tombstones
	passed  int // how many of such were passed at once last time
	now     uint64

	merged  bool
	reverse bool // how the merged sources stand: at or below the key instead of at or above it
	ranged  bool // some source has range deletes
	paired  bool // no source has any, so that a walk forward decodes several pairs at once; see pair.go
	ahead   bool // it does: the sources stand behind all that has been decoded
	front   front
	hole    hole
	parts   parts
	sources []source
	memory  *cursors // of sources, and of the iterator itself
	o       IteratorOptions
	view    *View
	value   []byte         // buffer for values that lie apart
	asked   unsafe.Pointer // the value that the processor has been asked for of the memtables: that of the key that comes next
	err     error
}

// NewIterator opens an iterator, in memory of one that has been closed if there is such. The caller holds a reference on the view, and
// keeps it until the iterator is closed.
func (v *View) NewIterator(o *IteratorOptions) *Iterator {
	memory := v.env.takeCursors()
	it := &memory.it
	it.o, it.view, it.now, it.stop, it.memory, it.batch = *o, v, o.Now, o.Stop, memory, &memory.batch
	it.sources = openSources(memory, o.Overlay, v.Tables, o.Keyspace, o.Seq)
	it.hole.start, it.hole.overlay = memory.hole, memory.overlay
	it.value, memory.value = memory.value, nil
	it.merged = len(it.sources) > 0
	for i := range it.sources {
		it.ranged = it.ranged || len(it.sources[i].ranges) > 0
	}
	it.paired = it.merged && !it.ranged
	it.openSettled(v.Root(o.Keyspace))
	if o.NoSeek != nil {
		it.o.Lower = nil // it is empty, which to what walks is the place of the empty key
	}
	it.settled.lower, it.settled.upper, it.settled.short = it.o.Lower, it.o.Upper, o.Short
	return it
}

// Next moves to the next pair; on a new iterator, to the first.
func (it *Iterator) Next() bool {
	if it.n+1 < it.ready && !it.stop.stopped.Load() {
		it.n++
		return true
	}
	return it.next()
}

// Prev moves to the previous pair; on a new iterator, to the last.
func (it *Iterator) Prev() bool {
	if it.n > 0 && !it.stop.stopped.Load() {
		it.n--
		return true
	}
	return it.prev()
}

// next is Next behind the batch.
func (it *Iterator) next() bool {
	if it.err != nil || it.stop.stopped.Load() {
		return it.slowNext()
	}
	if it.fast {
		s := &it.settled
		if s.at = it.begin + it.n; s.at+1 < it.run {
			s.at++
			return it.decodeForward()
		}
	} else if it.ahead {
		it.hole.begin(it.o.Gaps)
		return it.pairForward()
	}
	return it.slowNext()
}

// prev is Prev before the batch.
func (it *Iterator) prev() bool {
	if it.fast && it.err == nil && !it.stop.stopped.Load() {
		s := &it.settled
		if s.at = it.begin + it.n; s.at > it.floor {
			s.at--
			return it.decodeBackward()
		}
	}
	return it.slowPrev()
}

// NextWanted moves to the next pair whose value wanted does not turn down, and passes over the others without a look at their keys.
func (it *Iterator) NextWanted(wanted func(value []byte) bool) bool {
	for {
		if it.fast && it.err == nil && !it.stop.stopped.Load() && !it.o.KeysOnly {
			s, here := &it.settled, it.begin+it.n
			for s.at = here; s.at+1 < it.run; {
				_, value, ok := s.page.Inline(s.at + 1)
				if !ok {
					break
				}
				s.at++
				if wanted(value) {
					it.loadEntry()
					return true
				}
			}
			if s.at != here {
				it.loadEntry() // for the step that leaves the run; else the batch goes on, whose values may lie apart
			}
		}
		if !it.Next() {
			return false
		}
		if value := it.Value(); it.Err() != nil || wanted(value) {
			return it.at == onPair // else it was stopped meanwhile
		}
	}
}

func (it *Iterator) slowNext() bool {
	switch {
	case !it.usable():
		return false
	case it.at == fresh || it.at == beforeFirst:
		return it.First()
	case it.at == afterLast:
		return false
	}
	if !it.merged {
		return it.takeForward(it.settled.next())
	}
	if it.parts.both && !it.parts.inMemory {
		return it.remainingForward(it.settled.next())
	}
	if it.fast {
		it.slowDown()
		it.settled.at++
		it.hole.begin(it.o.Gaps)
		return it.pairForward()
	}
	key := it.here().Key
	if it.reverse {
		key = it.turnForward(key)
	}
	it.advance(key)
	it.hole.begin(it.o.Gaps)
	return it.findForward()
}

func (it *Iterator) slowPrev() bool {
	switch {
	case !it.usable():
		return false
	case it.at == fresh || it.at == afterLast:
		return it.Last()
	case it.at == beforeFirst:
		return false
	}
	if !it.merged {
		return it.takeBackward(it.settled.prev())
	}
	if it.parts.both {
		return it.prevOfBoth()
	}
	return it.prevMerged()
}

// prevMerged is slowPrev from a pair of merged sources.
func (it *Iterator) prevMerged() bool {
	if it.fast {
		it.slowDown()
	}
	it.ahead = false
	if key := it.here().Key; it.reverse {
		it.retreat(key)
	} else {
		it.turnBackward(key)
	}
	it.hole.begin(it.o.Gaps)
	return it.findBackward()
}

// First moves to the first pair.
func (it *Iterator) First() bool {
	if !it.usable() {
		return false
	}
	if it.parts.both {
		return it.firstOfBoth()
	}
	return it.seekForward(it.o.Lower, true)
}

// Last moves to the last pair.
func (it *Iterator) Last() bool {
	if !it.usable() {
		return false
	}
	if it.parts.both {
		return it.lastOfBoth()
	}
	return it.seekBackward(it.o.Upper, true)
}

// SeekGE moves to the first pair whose key is not below key.
func (it *Iterator) SeekGE(key []byte) bool {
	if it.o.NoSeek != nil {
		return it.refuseSeek()
	}
	if it.o.Lower != nil && bytes.Compare(key, it.o.Lower) < 0 {
		return it.First()
	}
	if !it.usable() {
		return false
	}
	return it.seekForward(key, false)
}

// SeekLT moves to the last pair whose key is below key.
func (it *Iterator) SeekLT(key []byte) bool {
	if it.o.NoSeek != nil {
		return it.refuseSeek()
	}
	if key == nil {
		key = []byte{} // nothing is below it; to seekBackward nil would mean the end
	}
	if it.o.Upper != nil && bytes.Compare(key, it.o.Upper) > 0 {
		return it.Last()
	}
	if !it.usable() {
		return false
	}
	return it.seekBackward(key, false)
}

// seekForward moves to the first pair that is not below key; first tells that this is the first of the walk.
func (it *Iterator) seekForward(key []byte, first bool) bool {
	it.grown = 0
	if !it.merged {
		return it.takeForward(it.seekSettled(key, first))
	}
	it.reverse, it.ahead, it.fast = false, false, false
	it.n, it.ready = 0, 0
	it.hole.beginAt(it.o.Gaps, key, false)
	to, over := it.o.Gaps.After(key, it.o.Seq)
	for i := range it.sources {
		s := &it.sources[i]
		switch {
		case s.cursor == nil || over && i >= it.hole.overlay:
		case key == nil:
			s.set(s.cursor.First())
		default:
			s.set(s.cursor.SeekGE(key))
		}
	}
	if over {
		it.moveForward(to)
	} else {
		it.seekSettled(key, first)
	}
	return it.findForward()
}

func (it *Iterator) seekSettled(key []byte, first bool) bool {
	if first {
		return it.settled.seekFirst()
	}
	return it.settled.seekGE(key)
}

// seekBackward moves to the last pair that is below key; last tells that this is the last of the walk.
func (it *Iterator) seekBackward(key []byte, last bool) bool {
	it.grown = 0
	if !it.merged {
		return it.takeBackward(it.seekSettledBack(key, last))
	}
	it.reverse, it.ahead, it.fast = true, false, false
	it.n, it.ready = 0, 0
	it.hole.beginAt(it.o.Gaps, key, true)
	to, over := it.o.Gaps.Before(key, it.o.Seq)
	for i := range it.sources {
		s := &it.sources[i]
		switch {
		case s.cursor == nil || over && i >= it.hole.overlay:
		case key == nil:
			s.set(s.cursor.Last())
		default:
			s.set(s.cursor.SeekLT(key))
		}
	}
	if over {
		it.moveBackward(to)
	} else {
		it.seekSettledBack(key, last)
	}
	return it.findBackward()
}

func (it *Iterator) seekSettledBack(key []byte, last bool) bool {
	if last {
		return it.settled.seekLast()
	}
	return it.settled.seekLT(key)
}

// takeForward shows the settled pair to which the walk has moved, or the next one that has not expired.
func (it *Iterator) takeForward(ok bool) bool {
	for ok && it.expired(it.settled.record()) {
		ok = it.settled.next()
	}
	return it.take(ok, afterLast)
}

func (it *Iterator) takeBackward(ok bool) bool {
	for ok && it.expired(it.settled.record()) {
		ok = it.settled.prev()
	}
	return it.take(ok, beforeFirst)
}

// expired reports whether a record is not to be shown any more.
func (it *Iterator) expired(r record.Record) bool {
	if r.Expiry == 0 || !r.Expired(it.now) {
		return false
	}
	it.o.Hid.Store(true)
	return true
}

func (it *Iterator) take(ok bool, otherwise position) bool {
	if !ok {
		return it.end(otherwise)
	}
	it.at, it.fast = onPair, true
	it.run, it.floor = it.settled.limit, it.settled.first
	it.showEntry()
	return true
}

// takeRare shows the settled pair to which a fast step has led, which expires or whose value lies apart and no batch takes, or goes on behind
// it.
func (it *Iterator) takeRare() bool {
	if !it.merged {
		return it.takeForward(true)
	}
	if it.expired(it.settled.record()) {
		return it.slowNext()
	}
	it.showEntry()
	return true
}

func (it *Iterator) end(at position) bool {
	it.fast, it.ahead, it.n, it.ready = false, false, 0, 0
	it.show(nil, record.Record{})
	it.at = at
	if it.err == nil {
		it.err = it.settled.err()
	}
	return false
}

// usable reports whether the iterator may still move. Where it was stopped it stands on no pair from then on.
func (it *Iterator) usable() bool {
	if err := it.stop.Err(); err != nil {
		it.end(afterLast)
		it.err = err
	}
	return it.err == nil
}

// Valid reports whether the iterator stands on a pair.
func (it *Iterator) Valid() bool { return it.at == onPair }

// Key returns the key of the current pair, valid until the next move.
func (it *Iterator) Key() []byte { return it.here().Key }

// Value returns the value of the current pair, valid until the next move; nil where there is none, where only keys were
// asked for, or where a value that lies apart cannot be read: see Err.
func (it *Iterator) Value() []byte {
	if it.plain {
		return it.here().Value
	}
	return it.slowValue()
}

// Err returns the error that ended the walk, nil when it ended at a bound. An iterator that was stopped on a pair shows it until the next move,
// but for a value that lies apart: else what it shows then would pass for an empty key and value.
func (it *Iterator) Err() error { return it.err }

// Close gives the pinned page up, and the iterator itself, which the next one takes over: nobody may touch it any more. It returns what
// Err would. The caller then gives the view up.
func (it *Iterator) Close() error {
	it.end(afterLast)
	it.enterSettled()
	err, memory, env := it.err, it.memory, it.view.env
	memory.settled, memory.hole = it.settled.close(), it.hole.start
	if cap(it.value) <= keptValue {
		memory.value = it.value[:0]
	}
	*it = Iterator{}
	env.giveBack(memory)
	return err
}
