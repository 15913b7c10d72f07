package segment

import (
	"unsafe"

	"github.com/pandodb/pando/internal/parts"
	"github.com/pandodb/pando/internal/prefetch"
)

// Who knows early which blob will be read asks for it at once: a part of a page of random place comes from memory in about the time
// that it takes to find out that it has to be read. The mapping may be given back meanwhile, as nothing is touched.

const (
	// nearBytes is how much is asked for of a blob that is read from its beginning on, and nearPart how much about the place where a key
	// may lie in a page: as much as a part has. Twice as much finds few more keys, and waits for lines that nobody reads. So few come into
	// the processor's innermost cache at once: out of the second one a get takes a twelfth longer. allBytes bounds what is asked for of a
	// blob of which all will be read.
	nearBytes = 640
	allBytes  = 16 << 10
	nearPart  = parts.Least / 2
	// shares is how finely Prefetch is told where in a page a key lies.
	shares = 1 << 8
)

// Prefetch asks the processor for the beginning of the blob under p, which will be read soon.
func (s *Store) Prefetch(p Pointer) {
	if m := s.mappedIn(p.Segment); m != nil {
		m.prefetch(p, 0, nearBytes)
	}
}

// PrefetchAll asks the processor for all of the blob under p, or as much of it as is worth asking for, which will be read soon.
func (s *Store) PrefetchAll(p Pointer) {
	m := s.mappedIn(p.Segment)
	if m == nil {
		return
	}
	if n := min(int(p.Length), allBytes); int64(p.Offset)+int64(n) <= int64(len(m.data)) && n > 0 {
		prefetch.Lines(unsafe.Pointer(&m.data[p.Offset]), linesOf(p.Offset, n))
	}
}

// PrefetchExcerpt asks the processor for what ReadExcerpt of the page under p will read, if the key comes after so much of the keys in
// the page, in 256ths; less than none where that is not known.
func (s *Store) PrefetchExcerpt(p Pointer, share int) {
	m := s.mappedIn(p.Segment)
	if m == nil {
		return
	}
	m.prefetch(p, 0, excerptHead)
	if behind := int(p.Length) - excerptHead; share >= 0 && behind > nearPart {
		m.prefetch(p, max(excerptHead+behind*share/shares-nearPart/2, excerptHead), nearPart)
	}
}

// prefetchPart asks for part i of x, if there is one: whoever goes over parts in order reads it next.
func (s *Store) prefetchPart(x *Excerpt, i int) {
	if m := s.mappedIn(x.p.Segment); m != nil && i < x.Parts() {
		at, n := x.table.Place(parts.Range{First: i, End: i + 1})
		m.prefetch(x.p, HeaderSize+at, n)
	}
}

// mappedIn is the mapping of a segment; nil: there is none.
func (s *Store) mappedIn(id uint32) *mapped {
	if f := s.files.Load().find(id); f != nil {
		return s.mappingOf(f)
	}
	return nil
}

// prefetch asks for n bytes of the blob under p, or as many as it has, from one on.
func (m *mapped) prefetch(p Pointer, from, n int) {
	n = min(n, int(p.Length)-from)
	begin := int64(p.Offset) + int64(from)
	if n > 0 && begin+int64(n) <= int64(len(m.data)) {
		prefetch.Near(unsafe.Pointer(&m.data[begin]), (n+prefetch.Line-1)/prefetch.Line)
	}
}

// linesOf is how many lines n bytes take that begin at an offset, which is anywhere in a line.
func linesOf(offset uint32, n int) int {
	return (int(offset%prefetch.Line) + n + prefetch.Line - 1) / prefetch.Line
}
