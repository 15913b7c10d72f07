package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
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
}

// intake is what comes to a column while parts are taken in.
type intake struct {
	column *column
	count  int    // of the entries
	packed []byte // as they are stored

	// What a passing codec has of the column.
	lent    dictionary
	entries storedEntries
}

// loading is memory for what is taken in: it serves for one collection after the other.
type loading struct {
	intakes  []*intake
	parts    uint32 // parts of dictionaries in the store
	compiler compiler

	templates []*template // in the order of their numbers

	// passing decodes for one collection after the other. It keeps its templates from each to the next one, with their columns: where
	// documents of many collections have the same shape, it has that already.
	passing *Codec
	rest    Definitions // what it has not read yet; nil: nothing
	fault   error       // of reading that
}

var loadings = sync.Pool{New: func() any { return new(loading) }}

// done gives the memory back.
func (l *loading) done() {
	l.forget()
	l.compiler.forget()
	loadings.Put(l)
}

// forget gives up what was taken in, apart from its memory.
func (l *loading) forget() {
	for _, in := range l.intakes {
		in.column.intake = 0
		*in = intake{packed: in.packed[:0]}
	}
	l.intakes = l.intakes[:0]
	clear(l.templates) // which hold on to their codec
}

// take takes in a part. They come in order, so each goes on where the one before it in its column ended.
func (l *loading) take(c *Codec, number uint32, definition []byte) (*intake, error) {
	p, err := parsePart(number, definition)
	if err != nil {
		return nil, err
	}
	in := l.intakeOf(c, &p)
	if in == nil || p.first != in.count || p.first+p.count > MaxEntries {
		return nil, p.misplaced(number)
	}
	in.column.newest = lastPart{number: number - dictionaryNumber, first: p.first, size: len(definition)}
	in.packed, in.count = append(in.packed, p.entries...), in.count+p.count
	l.parts = max(l.parts, number-dictionaryNumber+1)
	return in, nil
}

// misplaced says of a part that it does not go on where the one before it ended.
func (p *part) misplaced(number uint32) error {
	return fmt.Errorf("codec: part %d of a dictionary, entries from %d of %q: %w", number-dictionaryNumber, p.first, p.path, ErrCorrupt)
}

// intakeOf returns what comes to the column of a part, or nil when there are too many columns.
func (l *loading) intakeOf(c *Codec, p *part) *intake {
	col := c.columns[string(p.path)]
	if col == nil {
		if col = c.column(string(p.path)); col == nil {
			return nil
		}
	}
	if p.patterns {
		col = col.patterns
	}
	if col.intake == 0 {
		n := len(l.intakes)
		if n < cap(l.intakes) {
			l.intakes = l.intakes[:n+1]
		} else {
			l.intakes = append(l.intakes, nil)
		}
		if l.intakes[n] == nil { // else it has the memory of an earlier one
			l.intakes[n] = new(intake)
		}
		l.intakes[n].column, col.intake = col, n+1
	}
	return l.intakes[col.intake-1]
}

// publish shows what was taken in to everybody: each dictionary once, however many parts came to it.
func (l *loading) publish(c *Codec) {
	for _, in := range l.intakes {
		entries := &storedEntries{packed: bytes.Clone(in.packed), count: in.count, patterns: in.column.patterns == nil}
		c.publish(in.column, &dictionary{stored: entries})
	}
	c.parts = l.parts
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
// it. They never change, but that those of a passing codec become more while it decodes.
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
	if l := col.codec.lender; l != nil && i >= d.count() {
		d = l.fetch(col, i)
	}
	if i >= d.count() {
		return nil
	}
	if d.stored == nil {
		return d.entry(i)
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
