package hash

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/pandodb/pando/internal/segment"
)

// entry is what an index page knows of a record: where it lies, and the first hashBits bits of its key's hash, the others zero.
type entry struct {
	hash  uint64
	at    segment.Piece
	apart bool // its value lies apart
}

const (
	hashBits = 36
	keptBits = (1<<hashBits - 1) << (64 - hashBits)

	imageHead   = 16
	offsetDepth = 8
	offsetWidth = 9 // three bytes: bits that lengths, numbers of segments and offsets have in a packed image; zeros: it is a plain one
	offsetPage  = 12

	// From the lowest bit of a plain place: offset, length, which of the page's segments, apart, and the last bits of the hash.
	offsetBits  = 31
	lengthBits  = 18
	segmentBits = 10
	lengthAt    = offsetBits
	segmentAt   = lengthAt + lengthBits
	apartAt     = segmentAt + segmentBits
	restAt      = apartAt + 1
	restBits    = 64 - restAt

	// maxSegments is how many segments an index page can number. A plain one with more names the segment of each entry.
	maxSegments = 1 << segmentBits
	// stepsMost is how far find goes step by step from where an entry should be, before it halves what is left.
	stepsMost = 48
)

// image is an index page, as it is stored and as it lies in the cache:
//
//	4  number of entries n
//	4  number of segments m; 0: each entry has one of its own
//	1  depth: the first so many bits of all hashes are the same
//	3  of a packed page the bits of lengths, of numbers of segments and of offsets, zeros in a plain one
//	4  number of the page: what the hashes begin with
//	4m numbers of segments, or 4n
//	   a plain page:
//	4n the first 32 bits of the hashes, ascending
//	8n places
//	   a packed one:
//	8n words, ascending: from the highest bit on the hash behind the first depth bits, whether the value lies apart, the length, the
//	   number of the segment, the offset
//
// A packed page is smaller, and a look-up in it meets with one cache miss. But all of that must fit into 64 bits, as it does with short
// records. Pages are read where they lie; checkHead has to be asked first whether that can be done.
type image []byte

func (p image) len() int      { return int(binary.LittleEndian.Uint32(p)) }
func (p image) segments() int { return int(binary.LittleEndian.Uint32(p[4:])) }
func (p image) depth() int    { return int(p[offsetDepth]) }
func (p image) packed() bool  { return p[offsetWidth+2] != 0 }

// widths is how many bits the parts of a word have.
type widths struct{ length, segment, offset int }

func (p image) widths() widths {
	return widths{length: int(p[offsetWidth]), segment: int(p[offsetWidth+1]), offset: int(p[offsetWidth+2])}
}

// fit reports whether a word has room for parts of these widths at a depth.
func (w widths) fit(depth int) bool {
	return w.offset > 0 && w.offset <= offsetBits && w.length <= lengthBits && w.segment <= segmentBits &&
		hashBits-depth+1+w.length+w.segment+w.offset <= 64
}

// names is how many numbers of segments there are.
func (p image) names() int {
	if m := p.segments(); m > 0 {
		return m
	}
	return p.len()
}

// words says where the words of a packed page begin, or the hashes of a plain one.
func (p image) words() int { return imageHead + 4*p.names() }

// places says where the places of a plain page begin.
func (p image) places() int { return p.words() + 4*p.len() }

func (p image) word(at, i int) uint64 { return binary.LittleEndian.Uint64(p[at+8*i:]) }

// entry returns entry i.
func (p image) entry(i int) (e entry) {
	number := i
	if p.packed() {
		w, word := p.widths(), p.word(p.words(), i)
		e.at.Offset = uint32(word & (1<<w.offset - 1))
		number = int(word >> w.offset & (1<<w.segment - 1))
		e.at.Length = uint32(word >> (w.offset + w.segment) & (1<<w.length - 1))
		e.apart = word>>(w.offset+w.segment+w.length)&1 != 0
		e.hash = p.hash(i)
	} else {
		place := p.word(p.places(), i)
		e.at.Offset = uint32(place & (1<<offsetBits - 1))
		e.at.Length = uint32(place >> lengthAt & (1<<lengthBits - 1))
		if p.segments() > 0 {
			number = int(place >> segmentAt & (maxSegments - 1))
		}
		e.apart = place>>apartAt&1 != 0
		e.hash = p.hash(i)
	}
	if number < p.names() {
		e.at.Segment = binary.LittleEndian.Uint32(p[imageHead+4*number:])
	}
	return e
}

// hash returns the hash of entry i.
func (p image) hash(i int) uint64 {
	if p.packed() {
		return p.prefix() | p.word(p.words(), i)>>p.depth()&keptBits
	}
	return uint64(p.high(p.words(), i))<<32 | p.word(p.places(), i)>>restAt<<(32-restBits)
}

// page is the number of the page, and prefix what all its hashes begin with, the other bits zero.
func (p image) page() uint64   { return uint64(binary.LittleEndian.Uint32(p[offsetPage:])) }
func (p image) prefix() uint64 { return p.page() << (64 - p.depth()) }

func (p image) high(at, i int) uint32 { return binary.LittleEndian.Uint32(p[at+4*i:]) }

// find returns the entries whose hash begins like that given: those from first on, before end.
func (p image) find(hash uint64) (first, end int) {
	n, depth := p.len(), p.depth()
	// Hashes lie evenly between the bounds of the page, or nearly: where one should be, it is not far.
	near := int(hash << depth >> 32 * uint64(n) >> 32)
	if p.packed() {
		return p.findPacked(near, hash<<depth&(keptBits<<depth))
	}
	at, want := p.words(), uint32(hash>>32)
	places, rest := p.places(), hash>>(32-restBits)&(1<<restBits-1)
	i := lowerBound(n, near, func(i int) bool { return p.high(at, i) < want })
	for i < n && p.high(at, i) == want && p.word(places, i)>>restAt < rest {
		i++
	}
	first = i
	for i < n && p.high(at, i) == want && p.word(places, i)>>restAt == rest {
		i++
	}
	return first, i
}

// findPacked is find for the words of a packed page: want is what they begin with.
func (p image) findPacked(near int, want uint64) (first, end int) {
	n, words := p.len(), p[p.words():]
	known := uint64(keptBits) << p.depth()
	i := near
	for steps := 0; i > 0 && word(words, i-1) >= want; i-- {
		if steps++; steps > stepsMost {
			return p.endOf(known, want, sort.Search(i, func(j int) bool { return word(words, j) >= want }))
		}
	}
	for steps := 0; i < n && word(words, i) < want; i++ {
		if steps++; steps > stepsMost {
			rest := i
			return p.endOf(known, want, rest+sort.Search(n-rest, func(j int) bool { return word(words, rest+j) >= want }))
		}
	}
	return p.endOf(known, want, i)
}

func word(words []byte, i int) uint64 { return binary.LittleEndian.Uint64(words[8*i:]) }

// endOf returns first, and where the words end that begin as it does.
func (p image) endOf(known, want uint64, first int) (int, int) {
	n, words, end := p.len(), p[p.words():], first
	for end < n && word(words, end)&known == want {
		end++
	}
	return first, end
}

// lowerBound returns the first of n for which less is false, which is near a place that is given.
func lowerBound(n, near int, less func(i int) bool) int {
	i := near
	for steps := 0; i > 0 && !less(i-1); i-- {
		if steps++; steps > stepsMost {
			return sort.Search(i, func(j int) bool { return !less(j) })
		}
	}
	for steps := 0; i < n && less(i); i++ {
		if steps++; steps > stepsMost {
			from := i
			return from + sort.Search(n-from, func(j int) bool { return !less(from + j) })
		}
	}
	return i
}

// refers reports whether an entry may lie in one of the segments.
func (p image) refers(to *segment.Set) bool {
	if to.Empty() {
		return false
	}
	for i := range p.names() {
		if to.Has(p.name(i)) {
			return true
		}
	}
	return false
}

// name returns the segment of a number.
func (p image) name(number int) uint32 { return binary.LittleEndian.Uint32(p[imageHead+4*number:]) }

// number returns what numbers the segment of entry i.
func (p image) number(i int) int {
	switch {
	case p.packed():
		w := p.widths()
		return int(p.word(p.words(), i) >> w.offset & (1<<w.segment - 1))
	case p.segments() == 0:
		return i
	}
	return int(p.word(p.places(), i) >> segmentAt & (maxSegments - 1))
}

// checkHead tells what makes no sense in the beginning of an image of page number, or returns nil: then a key can be looked up in it, and
// what is wrong in it leads nowhere but to records of other keys.
func (p image) checkHead(depth int, number uint64) error {
	if len(p) < imageHead || p.depth() != depth || p.page() != number {
		return fmt.Errorf("no index page %d of depth %d in %d bytes", number, depth, len(p))
	}
	// Both numbers may be more than an int has where that has 32 bits.
	n, segments, size := uint64(binary.LittleEndian.Uint32(p)), uint64(binary.LittleEndian.Uint32(p[4:])), uint64(8)
	if w := p.widths(); !p.packed() {
		size += 4
	} else if !w.fit(depth) || segments == 0 {
		return fmt.Errorf("index page of depth %d with parts of %+v bits", depth, w)
	}
	names := segments
	if segments == 0 {
		names = n
	}
	if segments > maxSegments || uint64(len(p)) != imageHead+4*names+size*n {
		return fmt.Errorf("index page of %d bytes with %d entries, %d segments", len(p), n, segments)
	}
	return nil
}

// check tells what makes no sense in the entries of an image whose head was checked, or returns nil: then changes can be merged into it.
func (p image) check() error {
	last, alike, most := uint64(0), 0, 0
	for i := range p.len() {
		hash := p.hash(i)
		if hash != last {
			alike = 0
		}
		alike++
		most = max(most, alike)
		if hash < last || pageOf(hash, p.depth()) != p.page() {
			return fmt.Errorf("entry %d of page %d has the hash %016x, after %016x", i, p.page(), hash, last)
		}
		if p.number(i) >= p.names() {
			return fmt.Errorf("entry %d of page %d is in a segment that the page does not have", i, p.page())
		}
		last = hash
	}
	if most > fewAlike {
		return lieApart(p.len(), p.hash, func(i int) segment.Piece { return p.entry(i).at })
	}
	return nil
}

// appendTo appends all entries to list.
func (p image) appendTo(list []entry) []entry {
	for i := range p.len() {
		list = append(list, p.entry(i))
	}
	return list
}

// pageOf returns the number of the page that a hash belongs to.
func pageOf(hash uint64, depth int) uint64 { return hash >> (64 - uint(depth)) }
