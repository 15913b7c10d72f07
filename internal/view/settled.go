package view

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/prefetch"
	"github.com/pandodb/pando/internal/record"
)

// settled steps through the settled pairs of a keyspace. It works on one pinned page at a time and asks the layout's cursor
// only when it leaves that page, so that a step costs no call through an interface.
type settled struct {
	cursor       layout.Cursor // nil: nothing has settled
	lower, upper []byte        // bounds of the whole walk; nil is open
	page         page.Page
	at           int
	first, limit int // the entries of page inside the bounds: [first, limit)
	valid        bool
	failed       bool // the last move of cursor has failed: what follows, or comes before, is not known
	kind         record.Kind
	prefix       int    // how much of buf is the page's prefix
	key          []byte // aliases the page or buf
	value        []byte // as in the record
	expiry       uint64
	buf          []byte
	small        [32]byte // buf, as long as keys are short
	short        bool     // few pairs will be looked at
	back         bool     // the walk has come to the page from behind it
	told         int      // the entry of page with which those end, in the direction of the walk, whose values were asked for
	looked       int      // the entry of page whose value was read last; before one was, that before the first of the walk
}

// record is the record under the cursor.
func (s *settled) record() record.Record {
	return record.Record{Kind: s.kind, Expiry: s.expiry, Value: s.value}
}

// load decodes the entry under the cursor. The fields are stored one by one, and read where they lie: a Record that is
// written and copied at once stalls the processor longer than all the rest of the step.
func (s *settled) load() {
	suffix, value, ok := s.page.Inline(s.at)
	if ok {
		s.kind, s.expiry, s.value = record.Inline, 0, value
	} else {
		var r record.Record
		suffix, r = s.page.Entry(s.at)
		s.kind, s.expiry, s.value = r.Kind, r.Expiry, r.Value
	}
	if s.prefix == 0 {
		s.key = suffix
		return
	}
	n, end := len(suffix), s.prefix+len(suffix)
	if n < 8 || n > 16 || end > len(s.buf) {
		s.join(suffix)
		return
	}
	// Two overlapping words cost a quarter of a call of memmove.
	binary.LittleEndian.PutUint64(s.buf[s.prefix:], binary.LittleEndian.Uint64(suffix))
	binary.LittleEndian.PutUint64(s.buf[end-8:], binary.LittleEndian.Uint64(suffix[n-8:]))
	s.key = s.buf[:end]
}

// join puts prefix and suffix together.
func (s *settled) join(suffix []byte) {
	s.buf = append(s.buf[:s.prefix], suffix...)
	s.key = s.buf
	s.buf = s.buf[:cap(s.buf)]
}

// arrive takes over the page to which the layout's cursor has moved, to walk over it from there.
func (s *settled) arrive(ok, back bool) bool { return s.arriveFrom(ok, back, false) }

// arriveFrom is arrive, told whether the cursor stands where the walk begins.
func (s *settled) arriveFrom(ok, back, fromLower bool) bool {
	if s.failed = !ok && s.cursor.Err() != nil; !ok {
		s.valid = false
		return false
	}
	s.page, s.at = s.cursor.Window()
	s.back, s.told, s.looked = back, s.at, s.at-1
	if back {
		s.looked = s.at + 1
	}
	s.first, s.limit = 0, s.page.Len()
	prefix := s.page.Prefix()
	s.prefix = len(prefix)
	if s.buf == nil {
		s.buf = s.small[:0]
	}
	s.buf = append(s.buf[:0], prefix...)
	s.buf = s.buf[:cap(s.buf)]
	if s.upper != nil && s.compare(s.limit-1, s.upper) >= 0 {
		s.limit, _ = s.page.Search(s.upper)
	}
	switch {
	case s.lower == nil || s.at == 0 && !back:
	case fromLower:
		s.first = s.at
	case s.compare(0, s.lower) < 0:
		s.first, _ = s.page.Search(s.lower)
	}
	if s.at < s.first || s.at >= s.limit {
		s.valid = false
		return false
	}
	s.valid = true
	s.warmUp(back)
	s.load()
	return true
}

// warmUp asks for the lines of the page that lie before the walk, all at once: the steps that follow would wait for one after the other.
func (s *settled) warmUp(back bool) {
	raw := s.page.Raw()
	if back {
		raw = raw[:len(raw)-len(s.page.From(s.at))]
	} else {
		raw = s.page.From(s.at)
	}
	if s.short && len(raw) > shortWalk {
		if back {
			raw = raw[len(raw)-shortWalk:]
		} else {
			raw = raw[:shortWalk]
		}
	}
	prefetch.Lines(unsafe.Pointer(unsafe.SliceData(raw)), (len(raw)+prefetch.Line-1)/prefetch.Line)
}

// shortWalk is about how many bytes a short walk looks at.
const shortWalk = 8 * prefetch.Line

// compare compares the key of entry i with key.
func (s *settled) compare(i int, key []byte) int {
	prefix := s.page.Prefix()
	if len(key) < len(prefix) {
		if c := bytes.Compare(prefix[:len(key)], key); c != 0 {
			return c
		}
		return 1
	}
	if c := bytes.Compare(prefix, key[:len(prefix)]); c != 0 {
		return c
	}
	return bytes.Compare(s.page.Suffix(i), key[len(prefix):])
}

func (s *settled) seekFirst() bool {
	if s.cursor == nil {
		return false
	}
	if s.lower != nil {
		return s.arriveFrom(s.cursor.SeekGE(s.lower), false, true)
	}
	return s.arrive(s.cursor.First(), false)
}

func (s *settled) seekLast() bool {
	if s.cursor == nil {
		return false
	}
	if s.upper != nil {
		return s.arrive(s.cursor.SeekLT(s.upper), true)
	}
	return s.arrive(s.cursor.Last(), true)
}

func (s *settled) seekGE(key []byte) bool {
	return s.cursor != nil && s.arrive(s.cursor.SeekGE(s.lasting(key)), false)
}
func (s *settled) seekLT(key []byte) bool {
	return s.cursor != nil && s.arrive(s.cursor.SeekLT(s.lasting(key)), true)
}

// lasting returns key, or a copy of it if it lies in the page at hand, as what the iterator shows does: the cursor gives that up, and may read
// another one into its memory, before it has found its place.
func (s *settled) lasting(key []byte) []byte {
	if !s.valid {
		return key
	}
	raw := s.page.Raw()
	from, at := uintptr(unsafe.Pointer(unsafe.SliceData(raw))), uintptr(unsafe.Pointer(unsafe.SliceData(key)))
	if at-from < uintptr(len(raw)) {
		return bytes.Clone(key)
	}
	return key
}

func (s *settled) next() bool {
	if !s.valid {
		return false
	}
	if s.at+1 < s.limit {
		s.at++
		s.load()
		return true
	}
	if s.limit < s.page.Len() { // the upper bound lies inside this page
		s.valid = false
		return false
	}
	s.cursor.MoveTo(s.at)
	return s.arrive(s.cursor.Next(), false)
}

// catchUp moves on to what follows the page at hand, if that has been passed altogether.
func (s *settled) catchUp() {
	if s.valid && s.at == s.limit {
		s.at--
		s.next()
	}
}

func (s *settled) prev() bool {
	if !s.valid {
		return false
	}
	if s.at > s.first {
		s.at--
		s.load()
		return true
	}
	if s.first > 0 {
		s.valid = false
		return false
	}
	s.cursor.MoveTo(s.at)
	return s.arrive(s.cursor.Prev(), true)
}

func (s *settled) err() error {
	if s.cursor == nil {
		return nil
	}
	return s.cursor.Err()
}

// close closes the layout's cursor and returns it; nil when there is none. What could fail has been asked for by err.
func (s *settled) close() layout.Cursor {
	c := s.cursor
	if c == nil {
		return nil
	}
	_ = c.Close()
	s.cursor, s.valid = nil, false
	return c
}
