// Package columns turns the page of a leaf into columns, so that an entropy coder sees alike bytes side by side, and back.
//
// Entries whose key and value have the same lengths are taken together: their first bytes are a column, their second ones,
// and so on. Records of one kind have counters, numbers and codes at the same places, and a column of those takes a part
// of what the same bytes take row by row. Entries that have no company stay as they are, in a rest that the caller
// compresses. The bytes are described in docs/format/segment.md.
//
// It promises that Decode gives the very bytes that Split was given, whatever they are. It must never read or write out of
// bounds, nor allocate more than in proportion to the page, whatever Decode is given: what makes no sense is an error.
package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/klauspost/compress/fse"
	"github.com/klauspost/compress/huff0"

	"github.com/pandodb/pando/internal/pageformat"
)

const (
	minEntries = 64                 // of a page that is split
	minClass   = 24                 // entries of the same lengths that are taken together
	maxClasses = 128                // of a page
	maxColumns = 2048               // of a class
	maxPage    = pageformat.MaxSize // bytes of a page
	lengthBits = 24                 // more than a length in a page has
)

// How a column is written: the lowest two bits of its first byte.
const (
	kindConstant = 0 // one byte: all are that; this many columns are, see runShift
	kindPlain    = 1
	kindHuffman  = 2 // a block of package huff0, behind its length
	kindFSE      = 3 // a block of package fse, behind its length
	kindBits     = 3
	deltaBit     = 4                                     // the first byte of the column comes first, and what follows are differences
	kindCopy     = kindConstant | deltaBit | 1<<runShift // the number of an equal column among those remembered
	kindSparse   = kindPlain | 1<<runShift               // what most bytes are, and which ones are not
	runShift     = 3                                     // constant columns: one less than how many
	maxRun       = 1 << (8 - runShift)
)

// errDamaged is what Decode finds in bytes that Split did not make.
var errDamaged = errors.New("columns make no sense")

func damaged(what string) error { return fmt.Errorf("%w: %s", errDamaged, what) }

// Coder holds what splitting and joining need, from page to page. It is used by one goroutine at a time.
type Coder struct {
	classes []class
	byShape map[uint64]int32
	entries []entry
	of      []byte   // the class of each entry
	places  []uint32 // of the entries' keys in the page, class by class
	keys    []uint32 // of the same in the order of the page
	values  []uint32 // and of their values
	column  []byte
	deltas  []byte
	sparse  []byte
	lengths []byte // of all classes, as the page has them before each entry
	huff    huff0.Scratch
	seed    maphash.Seed
	earlier []earlier // columns of the same entries that are neither constant nor copies
	byHash  map[uint64]int
	fse     fse.Scratch
}

// class is the entries of a page whose lengths are the same.
type class struct {
	suffix, meta uint64
	count        int
	from         int // in Coder.places
	number       int // on disk; -1: it is too small
	lengths      []byte
}

// width returns the bytes of an entry behind its lengths.
func (c *class) width() int { return int(c.suffix) + c.value() }

func (c *class) value() int { return int(c.meta >> pageformat.FlagBits) }

// entry is where an entry of a page begins, where its key does, and where it ends.
type entry struct {
	at, key, end uint32
	class        int32 // -1: it has an expiry
}

// uvarint reads a number in as few bytes as possible, as package page writes it. n is 0 when there is none.
func uvarint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	v, n = binary.Uvarint(b)
	if n <= 0 || b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// readHead reads what a page of size bytes begins with. It is not ok when there is none, or one that Decode would not make again.
func readHead(b []byte, size int) (h pageformat.Head, ok bool) {
	h, ok = pageformat.ParseHead(b)
	return h, ok && h.Shortest() && h.Count <= uint64(size)/pageformat.MinEntry
}

// readEntry reads the entry at offset at. It is not ok when there is none, or one that Decode would not make again.
func readEntry(b []byte, at int) (e pageformat.Entry, ok bool) {
	e, ok = pageformat.ParseEntry(b, at)
	return e, ok && e.Shortest(at) && possible(uint64(e.Value-e.Suffix), e.Meta)
}

// possible reports whether an entry of a page may have these lengths.
func possible(suffix, meta uint64) bool {
	return suffix < 1<<lengthBits && meta>>pageformat.FlagBits < 1<<lengthBits
}

// Split appends the columns of a page to dst, and the entries that are in none to rest. It is not ok when page is none, or
// when columns are not worth while; dst and rest are as they were then.
func (c *Coder) Split(dst, rest, page []byte) (cols, left []byte, ok bool) {
	h, ok := readHead(page, len(page))
	if !ok || h.Count < minEntries || len(page) > maxPage || !c.survey(page, h.Size, int(h.Count)) || !c.choose() {
		return dst, rest, false
	}
	dst = append(dst, page[:h.Size]...)
	chosen := c.chosen()
	dst = binary.AppendUvarint(dst, uint64(len(chosen)))
	for _, k := range chosen {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, k.suffix), k.meta)
	}
	rest = c.place(rest, page, chosen)
	shared := c.share(page, chosen)
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(shared.key)), uint64(shared.value))
	dst = c.appendColumn(dst, c.of)
	c.forget()
	dst = c.appendColumns(dst, page, c.keys, 0, shared.key)
	dst = c.appendColumns(dst, page, c.values, 0, shared.value)
	for _, k := range chosen {
		places := c.places[k.from-k.count : k.from]
		c.forget()
		dst = c.appendColumns(dst, page, places, shared.key, int(k.suffix))
		dst = c.appendColumns(dst, page, places, int(k.suffix)+shared.value, k.width())
	}
	return dst, rest, true
}

// place finds the places of the entries of the chosen classes, and appends the others to rest.
func (c *Coder) place(rest, page []byte, chosen []*class) []byte {
	total := 0
	for _, k := range chosen {
		k.from = total
		total += k.count
	}
	c.places = slices.Grow(c.places[:0], total)[:total]
	c.keys, c.values = slices.Grow(c.keys[:0], total), slices.Grow(c.values[:0], total)
	c.of = slices.Grow(c.of[:0], len(c.entries))[:len(c.entries)]
	for i, e := range c.entries {
		if e.class < 0 || c.classes[e.class].number < 0 {
			c.of[i] = byte(len(chosen))
			rest = append(rest, page[e.at:e.end]...)
			continue
		}
		k := &c.classes[e.class]
		c.of[i] = byte(k.number)
		c.places[k.from] = e.key
		k.from++
		c.keys, c.values = append(c.keys, e.key), append(c.values, e.key+uint32(k.suffix))
	}
	return rest
}

// shared is how many of the first bytes of keys and values make columns of all classes together.
type shared struct{ key, value int }

// share finds what the classes had better share: lengths differ by what comes last, mostly, and what comes first is alike.
func (c *Coder) share(page []byte, chosen []*class) shared {
	most := shared{int(chosen[0].suffix), chosen[0].value()}
	for _, k := range chosen[1:] {
		most.key, most.value = min(most.key, int(k.suffix)), min(most.value, k.value())
	}
	if len(chosen) == 1 {
		return most
	}
	return shared{
		key:   c.gain(page, chosen, c.keys, most.key, func(*class) int { return 0 }),
		value: c.gain(page, chosen, c.values, most.value, func(k *class) int { return int(k.suffix) }),
	}
}

// gain returns how many first columns, at most most, all classes should share for the whole to be shortest. places are those of
// all entries, and at tells where the columns of a class begin.
func (c *Coder) gain(page []byte, chosen []*class, places []uint32, most int, at func(k *class) int) int {
	best, bestGain, gain := 0, 0, 0
	for p := range most {
		gain -= c.estimate(page, places, p)
		for _, k := range chosen {
			gain += c.estimate(page, c.places[k.from-k.count:k.from], at(k)+p)
		}
		if gain >= bestGain {
			best, bestGain = p+1, gain
		}
	}
	return best
}

// survey finds the entries of a page and their classes.
func (c *Coder) survey(page []byte, at, count int) bool {
	if c.byShape == nil {
		c.byShape = map[uint64]int32{}
	}
	clear(c.byShape)
	c.classes, c.entries = c.classes[:0], slices.Grow(c.entries[:0], count)
	last, lastShape := int32(-1), uint64(0)
	for range count {
		p, ok := readEntry(page, at)
		if !ok {
			return false
		}
		e := entry{uint32(at), uint32(p.Suffix), uint32(p.End()), -1}
		if p.Meta&pageformat.FlagExpiry == 0 {
			suffix := uint64(p.Value - p.Suffix)
			shape := suffix<<(lengthBits+pageformat.FlagBits) | p.Meta
			if last < 0 || shape != lastShape {
				i, ok := c.byShape[shape]
				if !ok {
					i = int32(len(c.classes))
					c.byShape[shape] = i
					c.classes = append(c.classes, class{suffix: suffix, meta: p.Meta, number: -1})
				}
				last, lastShape = i, shape
			}
			c.classes[last].count++
			e.class = last
		}
		c.entries = append(c.entries, e)
		at = p.End()
	}
	return at == len(page)
}

// choose numbers the classes that are large enough, in the order of their first entries, and reports whether they are worth
// while.
func (c *Coder) choose() bool {
	taken, number := 0, 0
	for i := range c.classes {
		k := &c.classes[i]
		if k.count >= minClass && k.width() <= maxColumns && number < maxClasses {
			k.number = number
			number++
			taken += k.count
		}
	}
	return taken > len(c.entries)/2
}

// chosen returns the classes that choose has numbered.
func (c *Coder) chosen() []*class {
	list := make([]*class, 0, 16)
	for i := range c.classes {
		if c.classes[i].number >= 0 {
			list = append(list, &c.classes[i])
		}
	}
	return list
}

// earlier is a column that may come again: an _id is in the key and in the value.
type earlier struct {
	places []uint32
	p      int
}

// forget begins with other entries.
func (c *Coder) forget() {
	c.earlier = c.earlier[:0]
	if c.byHash == nil {
		c.byHash, c.seed = map[uint64]int{}, maphash.MakeSeed()
	}
	clear(c.byHash)
}

// remembered returns the number of the column that is equal to c.column, which is column p of the entries at places, or remembers
// that.
func (c *Coder) remembered(page []byte, places []uint32, p int) (int, bool) {
	hash := maphash.Bytes(c.seed, c.column)
	if i, ok := c.byHash[hash]; ok && c.equals(page, c.earlier[i]) {
		return i, true
	}
	c.byHash[hash] = len(c.earlier)
	c.earlier = append(c.earlier, earlier{places, p})
	return 0, false
}

// equals reports whether c.column is equal to an earlier one.
func (c *Coder) equals(page []byte, e earlier) bool {
	for j, at := range e.places {
		if page[int(at)+e.p] != c.column[j] {
			return false
		}
	}
	return true
}

// gather makes c.column the column p of the entries at places, and reports whether it is constant.
func (c *Coder) gather(page []byte, places []uint32, p int) bool {
	c.column = slices.Grow(c.column[:0], len(places))[:len(places)]
	same := byte(0)
	first := page[int(places[0])+p]
	for j, at := range places {
		b := page[int(at)+p]
		c.column[j] = b
		same |= b ^ first
	}
	return same == 0
}

// appendColumns appends columns [from, to) of the entries at places in page.
func (c *Coder) appendColumns(dst, page []byte, places []uint32, from, to int) []byte {
	run := -1 // where the first byte of the constant columns at hand is in dst
	for p := from; p < to; p++ {
		switch same := c.gather(page, places, p); {
		case !same:
			run = -1
			if earlier, ok := c.remembered(page, places, p); ok {
				dst = binary.AppendUvarint(append(dst, kindCopy), uint64(earlier))
				continue
			}
			dst = c.appendColumn(dst, c.column)
		case run >= 0 && dst[run]>>runShift < maxRun-1:
			dst[run] += 1 << runShift
			dst = append(dst, c.column[0])
		default:
			run = len(dst)
			dst = append(dst, kindConstant, c.column[0])
		}
	}
	return dst
}
