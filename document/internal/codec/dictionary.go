package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// The low bits of a fingerprint say how often the string has been seen.
const (
	noteOnce  = 1
	noteTwice = 2
)

// column is the strings under one path, in all templates: those that come again get numbers.
type column struct {
	codec    *Codec
	path     string
	patterns *column // nil in the column of the patterns itself
	state    atomic.Pointer[dictionary]
	notes    atomic.Pointer[[]uint32] // fingerprints of strings seen lately; its length is a power of two
	missed   atomic.Uint32            // a sixteenth of the strings that were no entry since notes has its length

	waiting [][]byte // guarded by the codec's lock: strings that will be in the next part
}

// dictionary is the entries of a column at one moment. It is replaced, never changed; arena and ends are shared with earlier
// ones, which do not look behind their own end.
type dictionary struct {
	arena []byte   // each entry, as a BSON string: length, bytes, zero; of patterns, as it is
	ends  []uint32 // where each entry ends in arena
	slots []uint16 // hash table: 1 + number of the entry; 0 is empty. Its length is a power of two
}

// count returns how many entries there are.
func (d *dictionary) count() int {
	if d == nil {
		return 0
	}
	return len(d.ends)
}

// entry returns an entry, or nil when there is none of that number.
func (d *dictionary) entry(i int) []byte {
	if i >= d.count() {
		return nil
	}
	start, end := uint32(0), d.ends[i]
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.arena[start:end:end]
}

// find returns the number of the entry s, whose hash is given, or -1.
func (d *dictionary) find(hash uint64, s []byte) int {
	if d == nil {
		return -1
	}
	mask := len(d.slots) - 1
	for at := int(hash) & mask; d.slots[at] != 0; at = (at + 1) & mask {
		i := int(d.slots[at]) - 1
		if bytes.Equal(d.entry(i), s) {
			return i
		}
	}
	return -1
}

// with returns a dictionary that has more entries.
func (d *dictionary) with(seed maphash.Seed, entries [][]byte) *dictionary {
	next := &dictionary{}
	if d != nil {
		next.arena, next.ends = d.arena, d.ends
	}
	for _, e := range entries {
		next.arena = append(next.arena, e...)
		next.ends = append(next.ends, uint32(len(next.arena)))
	}
	next.slots = make([]uint16, 1<<bits.Len(uint(2*len(next.ends))))
	mask := len(next.slots) - 1
	for i := range next.ends {
		at := int(maphash.Bytes(seed, next.entry(i))) & mask
		for next.slots[at] != 0 {
			at = (at + 1) & mask
		}
		next.slots[at] = uint16(i + 1)
	}
	return next
}

// column returns the column of a path, or nil when there are too many. The caller holds the lock.
func (c *Codec) column(path string) *column {
	col := c.columns[path]
	if col == nil && len(c.columns) < MaxColumns && len(path) <= MaxDefinition {
		col = &column{codec: c, path: path, patterns: &column{codec: c, path: path}}
		c.columns[path] = col
	}
	return col
}

// number returns the number of the entry s, a BSON string or a pattern, or -1. One that
// comes again and again becomes an entry.
func (col *column) number(s []byte) (int, error) {
	c := col.codec
	hash := maphash.Bytes(c.seed, s)
	d := col.state.Load()
	if i := d.find(hash, s); i >= 0 {
		return i, nil
	}
	notes := col.notes.Load()
	if notes == nil || (hash>>60 == 0 && col.missed.Add(1) > uint32(len(*notes))/2) {
		notes = col.grow(notes)
	}
	place, mark := &(*notes)[int(hash>>16)&(len(*notes)-1)], uint32(hash>>32)&^noteTwice|noteOnce
	switch atomic.LoadUint32(place) {
	case mark | noteTwice:
	case mark:
		if d.count() >= headEntry2 { // the shortest numbers are given away: ask for more
			atomic.StoreUint32(place, mark|noteTwice)
			return -1, nil
		}
	default:
		atomic.StoreUint32(place, mark)
		return -1, nil
	}
	return c.promote(col, hash, s)
}

// grow makes a column remember more strings: one that has few of them takes little memory.
func (col *column) grow(old *[]uint32) *[]uint32 {
	n := rememberedStrings
	if old != nil {
		n = 8 * len(*old)
	}
	if n > rememberedStringsMax {
		return old
	}
	notes := make([]uint32, n)
	if col.notes.CompareAndSwap(old, &notes) {
		col.missed.Store(0)
	}
	return col.notes.Load()
}

// promote makes s an entry, as soon as there are enough for a part.
func (c *Codec) promote(col *column, hash uint64, s []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := col.state.Load()
	if i := d.find(hash, s); i >= 0 {
		return i, nil
	}
	n := d.count()
	if n+len(col.waiting) >= MaxEntries || c.dictionary+len(s) > MaxDictionaries {
		return -1, nil
	}
	for _, w := range col.waiting {
		if bytes.Equal(w, s) {
			return -1, nil
		}
	}
	col.waiting = append(col.waiting, bytes.Clone(s))
	if len(col.waiting) <= n/8 {
		return -1, nil
	}
	if err := c.store.Store(dictionaryNumber+c.parts, appendPart(nil, col, n, col.waiting)); err != nil {
		return -1, fmt.Errorf("codec: store part %d of the dictionaries: %w", c.parts, err)
	}
	c.parts++
	c.publish(col, col.waiting)
	col.waiting = nil
	return col.state.Load().find(hash, s), nil
}

// publish shows entries that are in the store to everybody. The caller holds the lock.
func (c *Codec) publish(col *column, entries [][]byte) {
	d := col.state.Load().with(c.seed, entries)
	col.state.Store(d)
	for _, e := range entries {
		c.dictionary += len(e)
	}
}

// appendPart appends the definition of a part of a dictionary.
func appendPart(dst []byte, col *column, first int, entries [][]byte) []byte {
	kind := byte(definitionDictionary)
	if col.patterns == nil {
		kind = definitionPatterns
	}
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(col.path)))
	dst = append(dst, col.path...)
	dst = binary.AppendUvarint(dst, uint64(first))
	for _, e := range entries {
		if kind == definitionDictionary {
			e = e[4 : len(e)-1]
		}
		dst = binary.AppendUvarint(dst, uint64(len(e)))
		dst = append(dst, e...)
	}
	return dst
}

// parsePart reads the definition of a part of a dictionary.
func parsePart(number uint32, definition []byte) (part, error) {
	p := part{number: number}
	wrong := func(what string) (part, error) {
		return part{}, fmt.Errorf("codec: part %d of the dictionaries: %s: %w", number-dictionaryNumber, what, ErrCorrupt)
	}
	if len(definition) == 0 || (definition[0] != definitionDictionary && definition[0] != definitionPatterns) {
		return wrong("not the definition of one")
	}
	p.patterns = definition[0] == definitionPatterns
	path, pos := readLong(definition, 1)
	if pos < 0 || len(path) > MaxDefinition {
		return wrong("a path that reaches behind the end")
	}
	first, n := binary.Uvarint(definition[pos:])
	if n <= 0 || first >= MaxEntries {
		return wrong("the first number")
	}
	p.path, p.first, pos = string(path), int(first), pos+n
	for pos < len(definition) {
		var entry []byte
		if entry, pos = readLong(definition, pos); pos < 0 || len(entry) > MaxEntry || len(p.entries) == MaxEntries {
			return wrong("an entry that is too long, or one too many")
		}
		switch {
		case !p.patterns:
			entry = append(binary.LittleEndian.AppendUint32(nil, uint32(len(entry)+1)), entry...)
			entry = append(entry, 0)
		case !isPattern(entry):
			return wrong("what is no pattern")
		}
		p.entries = append(p.entries, entry)
	}
	if len(p.entries) == 0 {
		return wrong("no entries")
	}
	return p, nil
}
