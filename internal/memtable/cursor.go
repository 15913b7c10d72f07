package memtable

import (
	"bytes"

	"github.com/pandodb/pando/internal/record"
)

// Cursor moves over the keys of one keyspace, in either direction, and stands at the newest version of each up to its
// sequence number. Tombstones appear like any other record; range deletes do not take effect. It sees every key that was
// published before it was made and has such a version, and may or may not see those published later.
//
// A cursor starts before the first key. When a move finds nothing it returns false, and the cursor stands behind the last
// or before the first key: Next and Prev go on from there. It is for one goroutine, it must not be copied
// once it has been used, and it must not be used after Free.
type Cursor struct {
	arena   *arena
	seq     uint64
	sources []source
	queue   []int // the sources that have a candidate in the present direction, nearest first
	forward bool
	valid   bool
	node    ref // what the cursor stands at, if valid
	version ref

	firstSources [maxRuns]source
	firstQueue   [maxRuns]int
	span         uintptr // bytes from node to the end of the version, of the longest record last chased, up to warmNear
}

// maxRuns is how many runs a cursor takes without an allocation: 4^7 * 256 keys are more than four million.
const maxRuns = 8

// source is a run under a cursor. What lies before the cursor are its first at entries, whatever the direction, so that a
// change of direction needs no search; the entry that the cursor stands at, if it is of this run, is number at.
type source struct {
	run     *run
	lens    lens
	at      int
	head    uint64 // the candidate's: the next visible entry in the present direction
	node    ref
	version ref
	warm    window
}

// NewCursor returns a cursor over the keys of ks at seq.
func (t *Table) NewCursor(ks uint32, seq uint64) *Cursor {
	c := new(Cursor)
	c.Reset(t, ks, seq)
	return c
}

// Reset makes of c what NewCursor would return, without allocating it.
func (c *Cursor) Reset(t *Table, ks uint32, seq uint64) {
	c.arena, c.seq, c.valid = &t.arena, seq, false
	c.sources, c.queue = c.firstSources[:0], c.firstQueue[:0]
	k := t.keyspace(ks)
	if k == nil {
		return
	}
	runs := t.ordered(k).runs
	switch len(runs) {
	case 0: // range deletes only
	case 1:
		c.sources = append(c.sources, source{run: runs[0]})
	default:
		prefix := sharedPrefix(c.arena, runs)
		for _, r := range runs {
			c.sources = append(c.sources, source{run: r, lens: r.through(c.arena, prefix)})
		}
	}
}

// Empty reports whether there is certainly nothing for the cursor to find. It looks at no record.
func (c *Cursor) Empty() bool { return len(c.sources) == 0 }

// Valid reports whether the cursor stands at a key.
func (c *Cursor) Valid() bool { return c.valid }

// Key returns the key that the cursor stands at. It aliases the arena.
func (c *Cursor) Key() []byte { return c.arena.key(c.node) }

// Record returns the version that the cursor stands at, and its sequence number. The value aliases the arena.
func (c *Cursor) Record() (r record.Record, seq uint64) {
	return c.arena.record(c.version), c.arena.seq(c.version)
}

// Inline returns the value that the cursor stands at, if it lies in the table and never expires. Where it is false the caller asks
// Record, which is too large for registers.
func (c *Cursor) Inline() (value []byte, ok bool) {
	meta := *c.arena.word(c.version, 1)
	if meta&metaExpiry != 0 || record.Kind(meta>>metaKindShift&metaKind) != record.Inline {
		return nil, false
	}
	return c.arena.bytes(c.version, versionHeader, int(meta&metaLength)), true
}

// First moves to the first key.
func (c *Cursor) First() bool {
	for i := range c.sources {
		c.sources[i].at = 0
	}
	c.valid = false
	return c.start(true)
}

// Last moves to the last key.
func (c *Cursor) Last() bool {
	for i := range c.sources {
		c.sources[i].at = len(c.sources[i].run.entries)
	}
	c.valid = false
	return c.start(false)
}

// SeekGE moves to the first key that is not below key.
func (c *Cursor) SeekGE(key []byte) bool {
	c.search(key)
	return c.start(true)
}

// SeekLT moves to the last key below key.
func (c *Cursor) SeekLT(key []byte) bool {
	c.search(key)
	return c.start(false)
}

func (c *Cursor) search(key []byte) {
	for i := range c.sources {
		s := &c.sources[i]
		s.at = s.run.search(c.arena, key)
	}
	c.valid = false
}

// Next moves to the next key.
func (c *Cursor) Next() bool {
	if len(c.sources) == 1 {
		return c.step(&c.sources[0])
	}
	if !c.valid || !c.forward {
		if c.valid {
			c.sources[c.queue[0]].at++ // what the cursor stands at is behind it from now on
		}
		return c.start(true)
	}
	s := &c.sources[c.queue[0]]
	s.at++
	return c.advance(s.nextVisible(c))
}

// Deleted reports whether the cursor stands at a tombstone. It spares the caller Record.
func (c *Cursor) Deleted() bool {
	return record.Kind(*c.arena.word(c.version, 1)>>metaKindShift&metaKind) == record.Tombstone
}

// TakeInline returns several pairs at once, from the one that the cursor stands at on, as many as there is room for: in the only run, and
// over tombstones, those with values that lie in the table and never expire. It returns how many there are, and how many tombstones it
// passed; after many of those alone it leaves the rest to the next call. The cursor then stands at what follows.
func (c *Cursor) TakeInline(pairs []record.Pair) (n, tombstones int) {
	if !c.valid || len(c.sources) != 1 {
		return 0, 0
	}
	s := &c.sources[0]
	for more := true; more && s.at < len(s.run.entries) && n < len(pairs) && (n > 0 || tombstones < manyTombstones); {
		if !s.warm.holds(s.at) {
			c.warmForward(s, s.at)
		}
		to := min(s.warm.batch.to, s.at+len(pairs)-n)
		taken, passed := c.takeFrom(s.run.entries[s.at:to], pairs[n:])
		n, tombstones, s.at, more = n+taken, tombstones+passed-taken, s.at+passed, s.at+passed == to
	}
	c.valid = false
	c.step(s)
	return n, tombstones
}

// manyTombstones is how many tombstones are passed without a pair in between.
const manyTombstones = 256

// takeFrom is TakeInline for some entries, for which there is room. It returns how many of them it has passed, too.
func (c *Cursor) takeFrom(entries []entry, pairs []record.Pair) (n, passed int) {
	a, seq := c.arena, c.seq
	for i := range entries {
		node := entries[i].node
		version := a.newest(node)
		meta := *a.word(version, 1)
		kind := meta >> metaKindShift // and, above it, whether it expires
		if a.seq(version) > seq || kind > uint32(record.Inline) {
			return n, i
		}
		// What follows a tombstone, whose kind is 0, takes its place: where there are many nobody could predict a branch.
		p := &pairs[n]
		p.Key, p.Value = a.key(node), a.bytes(version, versionHeader, int(meta&metaLength))
		n += int(kind)
	}
	return n, len(entries)
}

// Tombstones makes keys those of the tombstones that follow each other from the one that the cursor stands at on, as many as there is room
// for: in the only run. It returns how many there are, and does not move.
func (c *Cursor) Tombstones(keys [][]byte) (n int) {
	if !c.valid || len(c.sources) != 1 {
		return 0
	}
	s := &c.sources[0]
	a := c.arena
	if !s.warm.holds(s.at) {
		c.warmForward(s, s.at)
	}
	for _, e := range s.run.entries[s.at:min(s.warm.batch.to, s.at+len(keys))] {
		version := a.newest(e.node)
		if *a.word(version, 1)>>metaKindShift != uint32(record.Tombstone) || a.seq(version) > c.seq {
			break
		}
		keys[n] = a.key(e.node)
		n++
	}
	return n
}

// Skip moves over n keys that Tombstones has returned.
func (c *Cursor) Skip(n int) bool {
	s := &c.sources[0]
	s.at, c.valid = s.at+n, false
	return c.step(s)
}

// step is Next for a source that is alone. It has no candidate: what has just been stored in parts and is loaded as a whole
// stalls the processor.
func (c *Cursor) step(s *source) bool {
	if c.valid {
		s.at++
	}
	for entries := s.run.entries; s.at < len(entries); s.at++ {
		if !s.warm.holds(s.at) {
			c.warmForward(s, s.at)
		}
		node := entries[s.at].node
		if version := c.arena.versionAt(node, c.seq); version != 0 {
			c.node, c.version, c.valid = node, version, true
			return true
		}
	}
	c.valid = false
	return false
}

// stepBack is Prev for a source that is alone.
func (c *Cursor) stepBack(s *source) bool {
	for s.at > 0 {
		if !s.warm.holds(s.at - 1) {
			c.warmBackward(s, s.at)
		}
		s.at--
		node := s.run.entries[s.at].node
		if version := c.arena.versionAt(node, c.seq); version != 0 {
			c.node, c.version, c.valid = node, version, true
			return true
		}
	}
	c.valid = false
	return false
}

// Prev moves to the key before.
func (c *Cursor) Prev() bool {
	if len(c.sources) == 1 {
		return c.stepBack(&c.sources[0])
	}
	if !c.valid || c.forward {
		return c.start(false)
	}
	return c.advance(c.sources[c.queue[0]].prevVisible(c))
}

// stand makes the candidate of a source the cursor's position, if it was found.
func (c *Cursor) stand(s *source, found bool) bool {
	c.valid = found
	if found {
		c.node, c.version = s.node, s.version
	}
	return found
}

// start looks for the candidates of all sources in a direction, and moves to the nearest.
func (c *Cursor) start(forward bool) bool {
	c.forward, c.queue = forward, c.queue[:0]
	for i := range c.sources {
		s := &c.sources[i]
		if forward && s.nextVisible(c) || !forward && s.prevVisible(c) {
			c.queue = append(c.queue, i)
			c.sift(len(c.queue) - 1)
		}
	}
	return c.standAtNearest()
}

// advance puts the first of the queue, which has moved, in its new place, or drops it, and moves to the nearest.
func (c *Cursor) advance(found bool) bool {
	if !found {
		c.queue = append(c.queue[:0], c.queue[1:]...)
		return c.standAtNearest()
	}
	for i := 1; i < len(c.queue) && c.nearer(c.queue[i], c.queue[i-1]); i++ {
		c.queue[i], c.queue[i-1] = c.queue[i-1], c.queue[i]
	}
	return c.standAtNearest()
}

func (c *Cursor) standAtNearest() bool {
	if len(c.queue) == 0 {
		c.valid = false
		return false
	}
	s := &c.sources[c.queue[0]]
	if !c.forward {
		s.at--
	}
	return c.stand(s, true)
}

// sift moves the i-th of the queue up to its place.
func (c *Cursor) sift(i int) {
	for ; i > 0 && c.nearer(c.queue[i], c.queue[i-1]); i-- {
		c.queue[i], c.queue[i-1] = c.queue[i-1], c.queue[i]
	}
}

// nearer reports whether the candidate of source i comes before that of source j in the present direction.
func (c *Cursor) nearer(i, j int) bool {
	x, y := &c.sources[i], &c.sources[j]
	if x.head != y.head {
		return x.head < y.head == c.forward
	}
	return bytes.Compare(c.arena.key(x.node), c.arena.key(y.node)) < 0 == c.forward
}

// nextVisible makes the first visible entry from at on the candidate, and moves at there.
func (s *source) nextVisible(c *Cursor) bool {
	for entries := s.run.entries; s.at < len(entries); s.at++ {
		if !s.warm.holds(s.at) {
			c.warmForward(s, s.at)
		}
		if s.consider(c, entries[s.at]) {
			return true
		}
	}
	return false
}

// prevVisible makes the last visible entry before at the candidate, and moves at behind it.
func (s *source) prevVisible(c *Cursor) bool {
	for ; s.at > 0; s.at-- {
		if !s.warm.holds(s.at - 1) {
			c.warmBackward(s, s.at)
		}
		if s.consider(c, s.run.entries[s.at-1]) {
			return true
		}
	}
	return false
}

func (s *source) consider(c *Cursor, e entry) bool {
	version := c.arena.versionAt(e.node, c.seq)
	if version == 0 {
		return false
	}
	s.head, s.node, s.version = s.lens.head(e.head), e.node, version
	return true
}
