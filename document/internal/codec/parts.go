package codec

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Dictionaries are stored in parts. A store of many collections loads those of one after the other, and most of them for a document or
// two: so the entries of a column stay as they are stored, and are unpacked when so many have been looked for that it pays, or when a
// document is encoded.

// part is a piece of a dictionary as it is stored.
type part struct {
	path     []byte
	patterns bool
	first    int    // number of its first entry
	count    int    // of its entries
	entries  []byte // as they are stored: of each its length, in one byte, and its bytes
	number   uint32
	intake   int // 1 + which of loading.intakes it belongs to; 0: there are too many columns
}

// intake is what comes to a column while parts are taken in.
type intake struct {
	column *column
	bytes  int // of the entries that come
	count  int
	next   *dictionary
}

// loading is memory for what is known of parts while they are taken in.
type loading struct {
	parts       []part
	intakes     []intake
	definitions []byte // the parts alias it, or what it was before it grew
	compiler    compiler
}

var loadings = sync.Pool{New: func() any { return new(loading) }}

// done gives the memory back.
func (l *loading) done() {
	clear(l.parts)
	clear(l.intakes)
	l.compiler.forget()
	l.parts, l.intakes, l.definitions = l.parts[:0], l.intakes[:0], l.definitions[:0]
	loadings.Put(l)
}

// takeParts appends to the dictionaries what is not in them yet. Each is published once, however many parts it has.
func (c *Codec) takeParts(l *loading) error {
	l.parts = slices.DeleteFunc(l.parts, func(p part) bool { return p.number < dictionaryNumber+c.parts })
	slices.SortFunc(l.parts, func(a, b part) int { return int(a.number) - int(b.number) })
	l.takeColumns(c)
	last := c.parts
	for i := range l.parts {
		p := &l.parts[i]
		var next *dictionary
		if p.intake > 0 {
			next = l.intakes[p.intake-1].next
		}
		if next == nil || next.count() != p.first || p.first+p.count > MaxEntries {
			return fmt.Errorf("codec: part %d of a dictionary, entries from %d of %q: %w", p.number-dictionaryNumber, p.first, p.path, ErrCorrupt)
		}
		p.addTo(next)
		last = p.number - dictionaryNumber + 1
	}
	for _, in := range l.intakes {
		c.publish(in.column, in.next)
	}
	c.parts = last
	return nil
}

// takeColumns finds the columns of the parts, and makes dictionaries that have what is known, and room for what comes.
func (l *loading) takeColumns(c *Codec) {
	for i := range l.parts {
		p := &l.parts[i]
		col := c.columnOf(p)
		if col == nil {
			continue
		}
		if col.intake == 0 {
			l.intakes = append(l.intakes, intake{column: col})
			col.intake = len(l.intakes)
		}
		p.intake = col.intake
		in := &l.intakes[p.intake-1]
		in.bytes, in.count = in.bytes+len(p.entries), in.count+p.count
	}
	for i := range l.intakes {
		in := &l.intakes[i]
		in.next, in.column.intake = in.column.state.Load().withRoom(in), 0
	}
}

// columnOf returns the column that a part is of, or nil when there are too many columns.
func (c *Codec) columnOf(p *part) *column {
	col := c.columns[string(p.path)]
	if col == nil {
		col = c.column(string(p.path))
	}
	if p.patterns && col != nil {
		col = col.patterns
	}
	return col
}

// withRoom returns a dictionary that has the entries of d, and room for what comes. If d is unpacked so is the answer: it is in use.
func (d *dictionary) withRoom(in *intake) *dictionary {
	if d != nil && d.stored == nil {
		next := d.next()
		next.arena = slices.Grow(next.arena, in.bytes+stringOverhead*in.count)
		next.ends = slices.Grow(next.ends, in.count)
		return next
	}
	s := &storedEntries{patterns: in.column.patterns == nil}
	var old []byte
	if d != nil {
		old, s.count = d.stored.packed, d.stored.count
	}
	s.packed = append(make([]byte, 0, len(old)+in.bytes), old...)
	return &dictionary{stored: s}
}

// addTo adds the entries of the part to a dictionary that nobody else has seen yet.
func (p *part) addTo(d *dictionary) {
	if s := d.stored; s != nil {
		s.packed, s.count = append(s.packed, p.entries...), s.count+p.count
		return
	}
	d.addStored(p.entries, p.patterns)
}

// addStored adds entries as they are stored.
func (d *dictionary) addStored(entries []byte, patterns bool) {
	var length [4]byte
	for len(entries) > 0 {
		end := 1 + int(entries[0])
		if patterns {
			d.add(entries[1:end])
		} else {
			binary.LittleEndian.PutUint32(length[:], uint32(end))
			d.add(length[:], entries[1:end], []byte{0})
		}
		entries = entries[end:]
	}
}

// storedEntries is the entries of a column as they are stored: a document has few of them, and each is found by going over those before
// it. They never change.
type storedEntries struct {
	packed   []byte
	count    int
	patterns bool
	passed   atomic.Int64 // entries that were gone over
}

const (
	// stringOverhead is how much longer an entry is in the arena than as it is stored: its length takes four bytes, and a zero follows.
	stringOverhead = 4
	// unpackAfter is how many times as many entries as there are have to be gone over before they are unpacked: that takes about as long.
	unpackAfter = 4
)

// size returns how many bytes the entries take, unpacked.
func (d *dictionary) size() int {
	switch {
	case d == nil:
		return 0
	case d.stored == nil:
		return len(d.arena)
	case d.stored.patterns:
		return len(d.stored.packed) - d.stored.count
	}
	return len(d.stored.packed) + stringOverhead*d.stored.count
}

// storedEntry is entry for what d has not unpacked, if it has that.
func (col *column) storedEntry(d *dictionary, i int) []byte {
	if d == nil || d.stored == nil || i >= d.stored.count {
		return nil
	}
	s := d.stored
	if s.passed.Add(int64(i)) > unpackAfter*int64(s.count) {
		return col.unpacked().entry(i)
	}
	entries := s.packed
	for range i {
		entries = entries[1+int(entries[0]):]
	}
	end := 1 + int(entries[0])
	if s.patterns {
		return entries[1:end]
	}
	entry := binary.LittleEndian.AppendUint32(make([]byte, 0, stringOverhead+end), uint32(end))
	return append(append(entry, entries[1:end]...), 0)
}

// unpacked returns the dictionary of a column with its entries in the arena.
func (col *column) unpacked() *dictionary {
	d := col.state.Load()
	if d == nil || d.stored == nil {
		return d
	}
	col.codec.mu.Lock()
	defer col.codec.mu.Unlock()
	return col.codec.unpack(col)
}

// unpack is unpacked for who holds the lock.
func (c *Codec) unpack(col *column) *dictionary {
	d := col.state.Load()
	if d == nil || d.stored == nil {
		return d
	}
	next := &dictionary{arena: make([]byte, 0, d.size()), ends: make([]uint32, 0, d.count())}
	next.addStored(d.stored.packed, d.stored.patterns)
	c.publish(col, next)
	return next
}
