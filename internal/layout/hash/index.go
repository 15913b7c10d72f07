package hash

import (
	"encoding/binary"
	"fmt"
	"slices"
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
	hashBits   = 36
	keptBits   = (1<<hashBits - 1) << (64 - hashBits)
	imageHead  = 12 // number of entries, of segments, depth
	placeBytes = 8

	// From the lowest bit of a place: offset, length, which of the page's segments, apart, and the last bits of the hash.
	offsetBits  = 31
	lengthBits  = 18
	segmentBits = 10
	lengthAt    = offsetBits
	segmentAt   = lengthAt + lengthBits
	apartAt     = segmentAt + segmentBits
	restAt      = apartAt + 1
	restBits    = 64 - restAt

	// maxSegments is how many segments an index page can number. One with more names the segment of each entry.
	maxSegments = 1 << segmentBits
	// stepsMost is how far find goes step by step from where an entry should be, before it halves what is left.
	stepsMost = 48
)

// image is an index page, as it is stored and as it lies in the cache:
//
//	4  number of entries n
//	4  number of segments m; 0: each entry has one of its own
//	4  depth: the first so many bits of all hashes are the same
//	4m numbers of segments, or 4n
//	4n the first 32 bits of the hashes, ascending
//	8n places
//
// All of it is read where it lies; check has to be asked first whether it makes sense.
type image []byte

func (p image) len() int   { return int(binary.LittleEndian.Uint32(p)) }
func (p image) depth() int { return int(binary.LittleEndian.Uint32(p[8:])) }

// parts says where hashes and places begin.
func (p image) parts() (n, hashes, places int) {
	n = p.len()
	m := int(binary.LittleEndian.Uint32(p[4:]))
	if m == 0 {
		m = n
	}
	hashes = imageHead + 4*m
	return n, hashes, hashes + 4*n
}

// entry returns entry i.
func (p image) entry(i int) (e entry) {
	_, hashes, places := p.parts()
	high := uint64(binary.LittleEndian.Uint32(p[hashes+4*i:])) << 32
	place := binary.LittleEndian.Uint64(p[places+placeBytes*i:])
	e.hash = high | place>>restAt<<(32-restBits)
	e.apart = place>>apartAt&1 != 0
	number := i
	if binary.LittleEndian.Uint32(p[4:]) != 0 {
		number = int(place >> segmentAt & (maxSegments - 1))
	}
	if at := imageHead + 4*number; at < hashes {
		e.at.Segment = binary.LittleEndian.Uint32(p[at:])
	}
	e.at.Offset = uint32(place & (1<<offsetBits - 1))
	e.at.Length = uint32(place >> lengthAt & (1<<lengthBits - 1))
	return e
}

// hash returns the hash of entry i.
func (p image) hash(i int) uint64 {
	_, hashes, places := p.parts()
	return uint64(hashOf(p[hashes:], i))<<32 | p.rest(places, i)<<(32-restBits)
}

// find returns the entries whose hash begins like that given: those from first on, before end.
func (p image) find(hash uint64) (first, end int) {
	n, at, places := p.parts()
	if n == 0 {
		return 0, 0
	}
	hashes, want := p[at:places], uint32(hash>>32)
	// Hashes lie evenly between the bounds of the page, or nearly: where one should be, it is not far.
	i := int(uint64(want<<(p.depth()&31)) * uint64(n) >> 32)
	low := i - stepsMost
	for i > 0 && i > low && hashOf(hashes, i-1) >= want {
		i--
	}
	high := i + 2*stepsMost
	for i < n && i < high && hashOf(hashes, i) < want {
		i++
	}
	if i == low || i == high {
		i = sort.Search(n, func(j int) bool { return hashOf(hashes, j) >= want })
	}
	rest := hash >> (32 - restBits) & (1<<restBits - 1)
	for i < n && hashOf(hashes, i) == want && p.rest(places, i) < rest {
		i++
	}
	first = i
	for i < n && hashOf(hashes, i) == want && p.rest(places, i) == rest {
		i++
	}
	return first, i
}

func hashOf(hashes []byte, i int) uint32 { return binary.LittleEndian.Uint32(hashes[4*i:]) }

func (p image) rest(places, i int) uint64 {
	return binary.LittleEndian.Uint64(p[places+placeBytes*i:]) >> restAt
}

// refers reports whether an entry may lie in one of the segments.
func (p image) refers(to func(segment uint32) bool) bool {
	_, hashes, _ := p.parts()
	for i := imageHead; i < hashes; i += 4 {
		if to(binary.LittleEndian.Uint32(p[i:])) {
			return true
		}
	}
	return false
}

// checkHead tells what makes no sense in the beginning of an image, or returns nil: then it can be read, and what is wrong in it leads
// nowhere but to records of other keys.
func (p image) checkHead(depth int) error {
	if len(p) < imageHead {
		return fmt.Errorf("index page of %d bytes", len(p))
	}
	n, m := uint64(p.len()), uint64(binary.LittleEndian.Uint32(p[4:]))
	if m > maxSegments || p.depth() != depth {
		return fmt.Errorf("index page of depth %d with %d segments, want depth %d", p.depth(), m, depth)
	}
	if m == 0 {
		m = n
	}
	if uint64(len(p)) != imageHead+4*m+(4+placeBytes)*n {
		return fmt.Errorf("index page of %d bytes with %d entries, %d segments", len(p), n, m)
	}
	return nil
}

// check tells what makes no sense in the entries of an image whose head was checked, that of page number, or returns nil.
func (p image) check(depth int, number uint64) error {
	m, last := uint64(binary.LittleEndian.Uint32(p[4:])), uint64(0)
	wide := m == 0
	for i := range p.len() {
		_, _, places := p.parts()
		place, hash := binary.LittleEndian.Uint64(p[places+placeBytes*i:]), p.hash(i)
		if hash < last || pageOf(hash, depth) != number {
			return fmt.Errorf("entry %d of page %d has the hash %016x, after %016x", i, number, hash, last)
		}
		if !wide && place>>segmentAt&(maxSegments-1) >= m {
			return fmt.Errorf("entry %d is in a segment that the page does not have", i)
		}
		last = hash
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

// imager makes images. The zero value is ready.
type imager struct {
	segments []uint32
}

// append appends the image of entries, which are sorted by hash, to dst.
func (m *imager) append(dst []byte, depth int, list []entry) image {
	m.collect(list)
	n, count := len(list), len(m.segments)
	wide := count > maxSegments
	if wide {
		count = 0
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(count))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(depth))
	if wide {
		for i := range list {
			dst = binary.LittleEndian.AppendUint32(dst, list[i].at.Segment)
		}
	} else {
		for _, s := range m.segments {
			dst = binary.LittleEndian.AppendUint32(dst, s)
		}
	}
	for i := range list {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(list[i].hash>>32))
	}
	last, number := uint32(0), 0
	for i := range list {
		e := &list[i]
		if !wide && e.at.Segment != last {
			number, _ = slices.BinarySearch(m.segments, e.at.Segment)
			last = e.at.Segment
		}
		dst = binary.LittleEndian.AppendUint64(dst, e.place()|uint64(number)<<segmentAt)
	}
	return dst
}

// collect lists the segments of entries.
func (m *imager) collect(list []entry) {
	m.segments = m.segments[:0]
	last := uint32(0)
	for i := range list {
		if s := list[i].at.Segment; s != last {
			last = s
			if at, found := slices.BinarySearch(m.segments, s); !found {
				m.segments = slices.Insert(m.segments, at, s)
			}
		}
	}
}

// merge appends the image of what p has after the changes to dst. It copies what lies between them, and numbers of segments stay: those that
// are new come last.
func (m *imager) merge(dst []byte, p image, ops []op) image {
	n, hashes, places := p.parts()
	m.segments = m.segments[:0]
	for i := imageHead; i < hashes; i += 4 {
		m.segments = append(m.segments, binary.LittleEndian.Uint32(p[i:]))
	}
	narrow := n == 0 || binary.LittleEndian.Uint32(p[4:]) != 0
	for i := range ops {
		if ops[i].flags&opAdd != 0 && narrow {
			m.number(ops[i].at.Segment)
		}
	}
	if !narrow || len(m.segments) > maxSegments {
		return m.append(dst, p.depth(), merge(nil, p.appendTo(nil), ops))
	}
	begin := len(dst)
	dst = append(dst, p[:imageHead]...)
	for _, s := range m.segments {
		dst = binary.LittleEndian.AppendUint32(dst, s)
	}
	from := len(dst)
	// Hashes first, then places: the same stretches are copied of both.
	at := 0
	m.steps(p, ops, func(until, skip int, added []op) {
		dst = append(dst, p[hashes+4*at:hashes+4*until]...)
		for i := len(added) - 1; i >= 0; i-- {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(added[i].hash>>32))
		}
		at = until + skip
	})
	dst = append(dst, p[hashes+4*at:places]...)
	count := (len(dst) - from) / 4
	at = 0
	m.steps(p, ops, func(until, skip int, added []op) {
		dst = append(dst, p[places+placeBytes*at:places+placeBytes*until]...)
		for i := len(added) - 1; i >= 0; i-- {
			dst = binary.LittleEndian.AppendUint64(dst, added[i].place()|uint64(m.number(added[i].at.Segment))<<segmentAt)
		}
		at = until + skip
	})
	dst = append(dst, p[places+placeBytes*at:]...)
	binary.LittleEndian.PutUint32(dst[begin:], uint32(count))
	binary.LittleEndian.PutUint32(dst[begin+4:], uint32(len(m.segments)))
	return dst
}

// steps calls fn for the changes of each hash in turn: entries up to until stay, skip of those that follow go, and added come in their
// place, the last one first.
func (m *imager) steps(p image, ops []op, fn func(until, skip int, added []op)) {
	for i := 0; i < len(ops); {
		from, end := i, i
		dropped := false
		for ; end < len(ops) && ops[end].hash == ops[i].hash; end++ {
			if ops[end].flags&opDrop != 0 {
				dropped, from = true, end
			}
		}
		first, last := p.find(ops[i].hash)
		skip := 0
		if dropped {
			skip = last - first
		}
		if ops[from].flags&opAdd == 0 {
			from++
		}
		fn(first, skip, ops[from:end])
		i = end
	}
}

// number returns the number of a segment, which it appends to those that there are when it is new.
func (m *imager) number(segment uint32) int {
	for i := len(m.segments) - 1; i >= 0; i-- {
		if m.segments[i] == segment {
			return i
		}
	}
	m.segments = append(m.segments, segment)
	return len(m.segments) - 1
}

// place is what a page has of an entry besides the first bits of the hash and the segment.
func (e *entry) place() uint64 {
	place := uint64(e.at.Offset) | uint64(e.at.Length)<<lengthAt | e.hash>>(32-restBits)<<restAt
	if e.apart {
		place |= 1 << apartAt
	}
	return place
}
