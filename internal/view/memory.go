package view

import (
	"bytes"
	"math"
	"sort"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/memtable"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// source is one memtable under a merging cursor.
type source struct {
	cursor *memtable.Cursor
	ranges []memtable.Range // its range deletes in the keyspace, sorted by Lo, disjoint
	valid  bool
	key    []byte // of the record under the cursor, while valid
	head   uint64 // where next has been: the beginning of key
}

// set notes the outcome of a move of the source's cursor.
func (s *source) set(ok bool) {
	s.valid = ok
	if ok {
		s.key = s.cursor.Key()
	}
}

// covering returns the range delete of the source that covers key, or nil.
func (s *source) covering(key []byte) *memtable.Range {
	n := len(s.ranges)
	if n == 0 {
		return nil
	}
	i := sort.Search(n, func(i int) bool { return bytes.Compare(s.ranges[i].Lo, key) > 0 }) - 1
	if i < 0 {
		return nil
	}
	r := &s.ranges[i]
	if r.Hi != nil && bytes.Compare(key, r.Hi) >= 0 {
		return nil
	}
	return r
}

// cursors is memory for one iterator and its sources. Iterators that come and go hand it on: each walk would leave more garbage behind
// than it looks at otherwise.
type cursors struct {
	it      Iterator
	sources []source
	list    []*memtable.Cursor
	used    int
	batch   page.Batch
	settled layout.Cursor // closed, to be recycled; nil: there is none
	hole    []byte        // of the iterator
	overlay int           // sources that are of an overlay, which are the first
	value   []byte        // of the iterator
}

// keptValue is how much memory for values that lie apart an iterator leaves to the next one.
const keptValue = 64 << 10

// next returns a cursor.
func (c *cursors) next() *memtable.Cursor {
	if c.used == len(c.list) {
		c.list = append(c.list, new(memtable.Cursor))
	}
	c.used++
	return c.list[c.used-1]
}

func (e *Environment) takeCursors() *cursors {
	if c, ok := e.spare.Get().(*cursors); ok {
		return c
	}
	return new(cursors)
}

// giveBack takes what takeCursors returned. It must not keep tables in memory.
func (e *Environment) giveBack(c *cursors) {
	for _, m := range c.list[:c.used] {
		*m = memtable.Cursor{}
	}
	c.used = 0
	clear(c.sources)
	e.spare.Put(c)
}

// openSources opens a cursor over each table that has anything of the keyspace at seq, newest first. They lie in memory.
func openSources(memory *cursors, overlay []Layer, tables []*Table, keyspace uint32, seq uint64) []source {
	memory.sources = memory.sources[:0]
	for _, l := range overlay {
		memory.append(l.Table, keyspace, l.Seq)
	}
	memory.overlay = len(memory.sources)
	for _, t := range tables {
		memory.append(t.Table, keyspace, seq)
	}
	return memory.sources
}

func (c *cursors) append(t *memtable.Table, keyspace uint32, seq uint64) {
	if t.Newer(seq) {
		return
	}
	s := source{}
	if t.HasRanges() {
		s.ranges = t.Ranges(keyspace, seq)
	}
	if t.Len() > 0 {
		s.cursor = c.next()
		s.cursor.Reset(t, keyspace, seq)
		if s.cursor.Empty() {
			s.cursor = nil
		}
	}
	if s.cursor != nil || len(s.ranges) > 0 {
		c.sources = append(c.sources, s)
	}
}

// Changes merges what a group of memtables says of one keyspace into one change a key, in key order: the newest record of
// each key, tombstones included. What a range delete of the group hides does not appear: apply Ranges first.
// It implements layout.Changes.
type Changes struct {
	sources []source
	alone   bool // there is one source, without range deletes: nothing to merge or to hide
	started bool
	upper   []byte // stop before this key; nil: at the end
	key     []byte
	change  layout.Change
}

// NewChanges opens the merge of tables (newest first) at seq.
func NewChanges(tables []*Table, keyspace uint32, seq uint64) *Changes {
	sources := openSources(new(cursors), nil, tables, keyspace, seq)
	return &Changes{sources: sources, alone: len(sources) == 1 && len(sources[0].ranges) == 0}
}

// Next moves to the next changed key.
func (c *Changes) Next() bool {
	if c.started && c.alone {
		return c.next()
	}
	if !c.started {
		c.started = true
		c.each(func(s *source) { s.set(s.cursor.First()) })
	} else {
		c.advance()
	}
	return c.settle()
}

// SeekGE moves to the first changed key that is not below key.
func (c *Changes) SeekGE(key []byte) bool {
	c.started = true
	c.each(func(s *source) { s.set(s.cursor.SeekGE(key)) })
	return c.settle()
}

// Change returns the change under the cursor, valid until the next move.
func (c *Changes) Change() *layout.Change { return &c.change }

func (c *Changes) each(fn func(*source)) {
	for i := range c.sources {
		if c.sources[i].cursor != nil {
			fn(&c.sources[i])
		}
	}
}

// next is Next for a source that is alone.
func (c *Changes) next() bool {
	s := &c.sources[0]
	if s.set(s.cursor.Next()); !s.valid {
		return false
	}
	c.key = s.key
	if c.upper != nil && bytes.Compare(c.key, c.upper) >= 0 {
		return false
	}
	c.change.Key = c.key
	if value, ok := s.cursor.Inline(); ok { // field by field: see layout.Changes
		c.change.Record.Kind, c.change.Record.Expiry, c.change.Record.Value = record.Inline, 0, value
		return true
	}
	if s.cursor.Deleted() {
		c.change.Record.Kind, c.change.Record.Expiry, c.change.Record.Value = record.Tombstone, 0, nil
		return true
	}
	c.change.Record, _ = s.cursor.Record()
	return true
}

// advance moves every source that stands on the current key past it.
func (c *Changes) advance() {
	for i := range c.sources {
		if s := &c.sources[i]; s.valid && bytes.Equal(s.key, c.key) {
			s.set(s.cursor.Next())
		}
	}
}

func (c *Changes) settle() bool {
	for {
		winner := -1
		for i := range c.sources {
			s := &c.sources[i]
			if s.valid && (winner < 0 || bytes.Compare(s.key, c.sources[winner].key) < 0) {
				winner = i
			}
		}
		if winner < 0 {
			return false
		}
		// Keys in the arena never move, so the key stays valid when its source advances.
		c.key = c.sources[winner].key
		if c.upper != nil && bytes.Compare(c.key, c.upper) >= 0 {
			return false
		}
		r, seq := c.sources[winner].cursor.Record()
		if !hidden(c.sources, winner, c.key, seq) {
			c.change = layout.Change{Key: c.key, Record: r}
			return true
		}
		c.advance()
	}
}

// hidden reports whether a range delete hides the record of sources[at] with the given key and sequence number: any range
// delete of a newer source, or a later one of the same source. at = len(sources) asks for settled records.
func hidden(sources []source, at int, key []byte, seq uint64) bool {
	for i := 0; i <= at && i < len(sources); i++ {
		if len(sources[i].ranges) == 0 {
			continue
		}
		if r := sources[i].covering(key); r != nil && (i < at || r.Seq > seq) {
			return true
		}
	}
	return false
}

// Ranges returns the union of the range deletes that a group of tables holds for a keyspace: sorted, disjoint, none empty.
func Ranges(tables []*Table, keyspace uint32, seq uint64) []layout.Range {
	var all []layout.Range
	for _, t := range tables {
		all = appendRanges(all, t.Table, keyspace, seq)
	}
	all = coalesce(all)
	if len(all) > 0 && len(all[0].Lo) == 0 {
		all[0].Lo = nil // a layout without order knows the whole keyspace by its having no bounds
	}
	return all
}

func appendRanges(all []layout.Range, t *memtable.Table, keyspace uint32, seq uint64) []layout.Range {
	if !t.HasRanges() {
		return all
	}
	for _, r := range t.Ranges(keyspace, seq) {
		all = append(all, layout.Range{Lo: r.Lo, Hi: r.Hi})
	}
	return all
}

// coalesce sorts ranges and joins those that touch.
func coalesce(all []layout.Range) []layout.Range {
	sort.Slice(all, func(i, j int) bool { return bytes.Compare(all[i].Lo, all[j].Lo) < 0 })
	out := all[:0]
	for _, r := range all {
		last := len(out) - 1
		if last < 0 || (out[last].Hi != nil && bytes.Compare(out[last].Hi, r.Lo) < 0) {
			out = append(out, r)
			continue
		}
		if out[last].Hi != nil && (r.Hi == nil || bytes.Compare(r.Hi, out[last].Hi) > 0) {
			out[last].Hi = r.Hi
		}
	}
	return out
}

// MaxSeq stands for "whatever is there".
const MaxSeq = math.MaxUint64

var _ layout.Changes = (*Changes)(nil)
