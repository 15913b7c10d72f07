package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
	"unicode/utf8"
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

	// Guarded by the codec's lock.
	waiting [][]byte // strings that will be stored next
	newest  lastPart
	intake  int // while parts are taken in: 1 + which of loading.intakes is of this column
}

// lastPart is the part of a column that was stored last. While it is short, entries that come are stored with it, in its place: a
// collection's dictionaries begin with an entry now and then, and whoever opens the collection goes over all the parts.
type lastPart struct {
	number uint32 // of the part
	first  int    // entry
	size   int    // of its definition; 0: there is no part
}

// shortPart is how long the definition of a part gets by entries that are added.
const shortPart = 512

// dictionary is the entries of a column at one moment. It is replaced, never changed; arena and ends are shared with earlier
// ones, which do not look behind their own end.
type dictionary struct {
	arena  []byte   // each entry, as a BSON string: length, bytes, zero; of patterns, as it is
	ends   []uint32 // where each entry ends in arena
	found  atomic.Pointer[entryNumbers]
	stored *storedEntries // nil: the entries are in arena. Else they are here, and arena is empty
}

// entryNumbers finds the number of an entry. It is made when a string is first looked for: who only reads records does without.
type entryNumbers struct {
	slots []uint32 // hash table: the top of a hash above 1 + number of the entry; 0 is empty. Its length is a power of two
	sound bool     // all entries are UTF-8
}

// count returns how many entries there are.
func (d *dictionary) count() int {
	switch {
	case d == nil:
		return 0
	case d.stored != nil:
		return d.stored.count
	}
	return len(d.ends)
}

// entry returns an entry, or nil when there is none of that number. It must not be appended to.
func (col *column) entry(i int) []byte {
	d := col.state.Load()
	if d == nil || i >= len(d.ends) {
		return col.storedEntry(d, i)
	}
	return d.entry(i)
}

// entry returns an entry that is in arena. Others lie behind it.
func (d *dictionary) entry(i int) []byte {
	start, end := uint32(0), d.ends[i]
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.arena[start:end:len(d.arena)]
}

// since returns the entries from one on, of a dictionary that is unpacked.
func (d *dictionary) since(first int) [][]byte {
	var list [][]byte
	for i := first; i < d.count(); i++ {
		list = append(list, d.entry(i))
	}
	return list
}

// find returns the number of the entry s, whose hash is given, or -1.
func (d *dictionary) find(seed maphash.Seed, hash uint64, s []byte) int {
	if d == nil {
		return -1
	}
	all := d.numbers(seed)
	mask := len(all.slots) - 1
	for at := int(hash) & mask; all.slots[at] != 0; at = (at + 1) & mask {
		if slot := all.slots[at]; slot>>16 == uint32(hash>>48) { // else it is another string, and none needs to be looked at
			if i := int(slot&0xffff) - 1; bytes.Equal(d.entry(i), s) {
				return i
			}
		}
	}
	return -1
}

// numbers returns the hash table of the entries.
func (d *dictionary) numbers(seed maphash.Seed) *entryNumbers {
	if all := d.found.Load(); all != nil {
		return all
	}
	all := &entryNumbers{slots: make([]uint32, 1<<bits.Len(uint(2*len(d.ends)))), sound: true}
	mask := len(all.slots) - 1
	for i := range d.ends {
		e := d.entry(i)
		all.sound = all.sound && (len(e) < 4 || utf8.Valid(e[4:])) // that of patterns says nothing
		hash := maphash.Bytes(seed, e)
		at := int(hash) & mask
		for all.slots[at] != 0 {
			at = (at + 1) & mask
		}
		all.slots[at] = uint32(hash>>48)<<16 | uint32(i+1)
	}
	d.found.Store(all)
	return all
}

// next returns a dictionary with the same entries, to which nobody but the caller adds more before it is published.
func (d *dictionary) next() *dictionary {
	if d == nil {
		return &dictionary{}
	}
	return &dictionary{arena: d.arena, ends: d.ends}
}

// add appends an entry, the pieces of which are given.
func (d *dictionary) add(pieces ...[]byte) {
	for _, s := range pieces {
		d.arena = append(d.arena, s...)
	}
	d.ends = append(d.ends, uint32(len(d.arena)))
}

// column returns the column of a path, or nil when there are too many. The caller holds the lock.
func (c *Codec) column(path string) *column {
	col := c.columns[path]
	if col == nil && len(c.columns) < c.maxColumns && len(path) <= MaxDefinition {
		col = &column{codec: c, path: path, patterns: &column{codec: c, path: path}}
		c.columns[path] = col
	}
	return col
}

// hash returns the hash of a string or a pattern.
func (col *column) hash(s []byte) uint64 { return maphash.Bytes(col.codec.seed, s) }

// number returns the number of the entry s, a BSON string or a pattern, or -1. One that
// comes again and again becomes an entry.
func (col *column) number(s []byte) (int, error) {
	hash, d := col.hash(s), col.unpacked()
	if i := d.find(col.codec.seed, hash, s); i >= 0 {
		return i, nil
	}
	return col.note(d, hash, s)
}

// note is number for what is no entry of d.
func (col *column) note(d *dictionary, hash uint64, s []byte) (int, error) {
	c := col.codec
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
	if i, enough := c.enlist(col, hash, s); !enough {
		return i, nil
	}
	c.defining <- struct{}{}
	defer func() { <-c.defining }()
	d, waiting := c.due(col)
	if waiting == nil { // somebody was faster
		return d.find(c.seed, hash, s), nil
	}
	n := d.count()
	part := lastPart{number: c.parts, first: n}
	definition := appendPart(nil, col, n, waiting)
	if last := col.newest; last.size > 0 && last.size+len(definition) <= shortPart {
		part = last
		definition = appendPart(nil, col, last.first, append(d.since(last.first), waiting...))
	}
	err := c.store.Store(dictionaryNumber+part.number, definition)
	if errors.Is(err, ErrNoRoom) {
		return -1, nil // all that wait are in the next one that is tried
	}
	if err != nil {
		return -1, fmt.Errorf("codec: store part %d of the dictionaries: %w", part.number, err)
	}
	part.size = len(definition)
	next := d.next()
	for _, e := range waiting {
		next.add(e)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	col.newest, col.waiting = part, slices.Clone(col.waiting[len(waiting):])
	c.parts = max(c.parts, part.number+1)
	c.publish(col, next)
	return next.find(c.seed, hash, s), nil
}

// enlist returns the number of the entry s. If it is none it is put to those that wait to be, unless it waits already or there is no room,
// and the number is -1; enough says that there are enough for a part now.
func (c *Codec) enlist(col *column, hash uint64, s []byte) (number int, enough bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.unpack(col)
	if i := d.find(c.seed, hash, s); i >= 0 {
		return i, false
	}
	if d.count()+len(col.waiting) >= MaxEntries || c.dictionary+len(s) > MaxDictionaries {
		return -1, false
	}
	for _, w := range col.waiting {
		if bytes.Equal(w, s) {
			return -1, false
		}
	}
	col.waiting = append(col.waiting, bytes.Clone(s))
	return -1, col.isDue(d)
}

// isDue reports whether enough wait to be entries for a part of them. The caller holds the lock.
func (col *column) isDue(d *dictionary) bool { return len(col.waiting) > d.count()/8 }

// due returns the entries of a column, and those that are to become some; nil: not enough of them wait. The caller is the one who defines.
func (c *Codec) due(col *column) (d *dictionary, waiting [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d = c.unpack(col); col.isDue(d) {
		waiting = col.waiting
	}
	return d, waiting
}

// publish shows entries that are in the store to everybody. The caller holds the lock.
func (c *Codec) publish(col *column, next *dictionary) {
	c.dictionary += next.size() - col.state.Load().size()
	col.state.Store(next)
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
	var p part
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
	p.path, p.first, p.entries = path, int(first), definition[pos+n:]
	for entries := p.entries; len(entries) > 0; p.count++ {
		end := 1 + int(entries[0])
		if end > 1+MaxEntry || end > len(entries) || p.count == MaxEntries {
			return wrong("an entry that is too long, or one too many")
		}
		if p.patterns && !isPattern(entries[1:end]) {
			return wrong("what is no pattern")
		}
		entries = entries[end:]
	}
	if p.count == 0 {
		return wrong("no entries")
	}
	return p, nil
}
