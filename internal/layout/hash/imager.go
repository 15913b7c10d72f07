package hash

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// imager makes images. The zero value is ready.
type imager struct {
	segments []uint32
	guesses  [maxSegments]uint16 // the number that a segment of such an id, modulo their number, had last
	spans    []span
	list     []entry
	other    []entry
	used     []bool
}

// span is where the entries of one hash are in a page, and which of the changes belong to them.
type span struct {
	first, skip int // entries from first on, skip of them, go
	from, end   int // changes that add, the last one foremost
}

// append appends the image of entries, which are sorted by hash, to dst. Segments that no entry lies in are left out.
func (m *imager) append(dst []byte, depth int, page uint64, list []entry) image {
	m.segments = m.segments[:0]
	longest, farthest := uint32(0), uint32(0)
	for i := range list {
		at := &list[i].at
		longest, farthest = max(longest, at.Length), max(farthest, at.Offset)
		if len(m.segments) <= maxSegments { // of more, one too many says enough
			m.number(at.Segment)
		}
	}
	w := widths{length: bits.Len32(longest), segment: bits.Len(uint(len(m.segments))), offset: max(bits.Len32(farthest), 1)}
	w = w.grow(depth)
	switch {
	case len(list) == 0 || len(m.segments) > maxSegments:
		return m.appendPlain(dst, depth, page, list)
	case w.fit(depth):
		return m.appendPacked(dst, depth, page, w, list)
	}
	return m.appendPlain(dst, depth, page, list)
}

// grow gives room that is left to parts that may become larger as entries are merged into the page.
func (w widths) grow(depth int) widths {
	for more := w; ; {
		switch {
		case more.segment < segmentBits && more.segment <= w.segment+1:
			more.segment++
		case more.length < lengthBits:
			more.length++
		case more.offset < offsetBits:
			more.offset++
		default:
			return more
		}
		if !more.fit(depth) {
			return w
		}
		w = more
	}
}

func (m *imager) appendHead(dst []byte, depth int, page uint64, n, segments int, w widths) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(segments))
	dst = append(dst, byte(depth), byte(w.length), byte(w.segment), byte(w.offset))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(page))
	for _, s := range m.segments[:segments] {
		dst = binary.LittleEndian.AppendUint32(dst, s)
	}
	return dst
}

func (m *imager) appendPacked(dst []byte, depth int, page uint64, w widths, list []entry) image {
	dst = m.appendHead(dst, depth, page, len(list), len(m.segments), w)
	for i := range list {
		e := &list[i]
		dst = binary.LittleEndian.AppendUint64(dst, w.word(depth, e, m.number(e.at.Segment)))
	}
	return dst
}

func (m *imager) appendPlain(dst []byte, depth int, page uint64, list []entry) image {
	wide := len(m.segments) > maxSegments
	if wide {
		dst = m.appendHead(dst, depth, page, len(list), 0, widths{})
		for i := range list {
			dst = binary.LittleEndian.AppendUint32(dst, list[i].at.Segment)
		}
	} else {
		dst = m.appendHead(dst, depth, page, len(list), len(m.segments), widths{})
	}
	for i := range list {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(list[i].hash>>32))
	}
	for i := range list {
		number := 0
		if !wide {
			number = m.number(list[i].at.Segment)
		}
		dst = binary.LittleEndian.AppendUint64(dst, list[i].place()|uint64(number)<<segmentAt)
	}
	return dst
}

// word makes a word of an entry.
func (w widths) word(depth int, e *entry, number int) uint64 {
	word := e.hash<<depth | uint64(number)<<w.offset | uint64(e.at.Offset) | uint64(e.at.Length)<<(w.offset+w.segment)
	if e.apart {
		word |= 1 << (w.offset + w.segment + w.length)
	}
	return word
}

// holds reports whether a word has room for an entry.
func (w widths) holds(e *entry, number int) bool {
	return bits.Len32(e.at.Length) <= w.length && bits.Len32(e.at.Offset) <= w.offset && bits.Len(uint(number)) <= w.segment
}

// place is what a plain page has of an entry besides the first bits of the hash and the segment.
func (e *entry) place() uint64 {
	place := uint64(e.at.Offset) | uint64(e.at.Length)<<lengthAt | e.hash>>(32-restBits)<<restAt
	if e.apart {
		place |= 1 << apartAt
	}
	return place
}

// number returns the number of a segment, which it appends to those that there are when it is new.
func (m *imager) number(segment uint32) int {
	guess := &m.guesses[segment%maxSegments]
	if n := int(*guess); n < len(m.segments) && m.segments[n] == segment {
		return n
	}
	n := slices.Index(m.segments, segment)
	if n < 0 {
		n = len(m.segments)
		m.segments = append(m.segments, segment)
	}
	*guess = uint16(min(n, math.MaxUint16))
	return n
}

// merge appends the image of what p has after the changes to dst. It copies what lies between them, and numbers of segments stay: those that
// are new come last. Where that cannot be done all of the page is made anew.
func (m *imager) merge(dst []byte, p image, ops []op) image {
	m.segments = m.segments[:0]
	for i := range p.segments() {
		m.segments = append(m.segments, p.name(i))
	}
	if p.len() == 0 || p.segments() == 0 || !m.fits(p, ops) {
		return m.rebuild(dst, p, ops)
	}
	m.find(p, ops)
	n := p.len()
	for _, s := range m.spans {
		n += s.end - s.from - s.skip
	}
	dst = m.appendHead(dst, p.depth(), p.page(), n, len(m.segments), p.widths())
	if !p.packed() {
		hashes, at := p[p.words():p.places()], 0
		for _, s := range m.spans {
			dst = append(dst, hashes[4*at:4*s.first]...)
			for i := s.end - 1; i >= s.from; i-- {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(ops[i].hash>>32))
			}
			at = s.first + s.skip
		}
		dst = append(dst, hashes[4*at:]...)
	}
	words, at := p[len(p)-8*p.len():], 0
	for _, s := range m.spans {
		dst = append(dst, words[8*at:8*s.first]...)
		for i := s.end - 1; i >= s.from; i-- {
			dst = binary.LittleEndian.AppendUint64(dst, m.wordOf(p, &ops[i].entry))
		}
		at = s.first + s.skip
	}
	return append(dst, words[8*at:]...)
}

// wordOf is the word, or the place, of an entry that is merged into p.
func (m *imager) wordOf(p image, e *entry) uint64 {
	number := m.number(e.at.Segment)
	if p.packed() {
		return p.widths().word(p.depth(), e, number)
	}
	return e.place() | uint64(number)<<segmentAt
}

// fits reports whether the changes can be merged into p as it is, and numbers their segments.
func (m *imager) fits(p image, ops []op) bool {
	w, packed := p.widths(), p.packed()
	for i := range ops {
		if ops[i].flags&opAdd == 0 {
			continue
		}
		number := m.number(ops[i].at.Segment)
		if packed && !w.holds(&ops[i].entry, number) || number >= maxSegments {
			return false
		}
	}
	return true
}

// compact is merge, but leaves out segments that no entry lies in any more.
func (m *imager) compact(dst []byte, p image, ops []op) image {
	merged := m.merge(dst, p, ops)
	m.used = append(m.used[:0], make([]bool, merged.names())...)
	unused := len(m.used)
	for i := range merged.len() {
		if n := merged.number(i); !m.used[n] {
			m.used[n] = true
			unused--
		}
	}
	if unused == 0 {
		return merged
	}
	m.list = merged.appendTo(m.list[:0])
	return m.append(merged[:0], p.depth(), p.page(), m.list)
}

// rebuild is merge by way of the entries.
func (m *imager) rebuild(dst []byte, p image, ops []op) image {
	m.list = p.appendTo(m.list[:0])
	m.other = merge(m.other[:0], m.list, ops)
	return m.append(dst, p.depth(), p.page(), m.other)
}

// find makes m.spans, one for each hash that changes.
func (m *imager) find(p image, ops []op) {
	m.spans = m.spans[:0]
	for i := 0; i < len(ops); {
		s, dropped, hash := span{from: i, end: i}, false, ops[i].hash
		for ; s.end < len(ops) && ops[s.end].hash == hash; s.end++ {
			if ops[s.end].flags&opDrop != 0 {
				dropped, s.from = true, s.end
			}
		}
		if ops[s.from].flags&opAdd == 0 {
			s.from++
		}
		last := 0
		s.first, last = p.find(hash)
		if dropped {
			s.skip = last - s.first
		}
		m.spans = append(m.spans, s)
		i = s.end
	}
}
