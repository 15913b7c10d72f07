package parts

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/pandodb/pando/internal/pageformat"
)

const (
	stencilLine = 12 // of the table: beginning of the first key, checksum
	word        = 8  // bytes that are compared, and put, at once
	leastEntry  = 2 * word
	maxEntry    = 1024 // bytes of an entry that a stencil is sought for
	maxRuns     = 4    // bounds what it costs to put an entry together
	leastAlike  = 4    // fewer bytes that are alike are not worth a run of their own
	// worthBytes: a stencil must save one in as many bytes, or the page is stored without one.
	worthBytes = 32
)

// stencil is what all entries of a page have at the same place, and how the rest lies between that.
type stencil struct {
	alike []byte // of all runs, in the page or in the table
	runs  [maxRuns]run
	used  int // of runs
	count int // entries of the page
	per   int // entries of each part but the last
	kept  int // bytes of each entry that parts hold; 0: there is no stencil
	entry int // bytes of a whole entry
}

// run is bytes that all entries have, and how many follow that differ.
type run struct {
	word   uint64 // the first ones that are alike
	from   uint16 // where these lie in stencil.alike
	alike  uint16
	differ uint16
}

// alikeOf returns the bytes that all entries have in run r.
func (s *stencil) alikeOf(r *run) []byte { return s.alike[r.from : r.from+r.alike] }

// AppendStencil appends to dst the stored form of page with a stencil. It is false, and the answer dst, when that does not save
// enough, or there is no page; dst's memory behind its end may have changed then.
func AppendStencil(dst, page []byte) ([]byte, bool) {
	h, ok := beginning(page)
	if !ok || len(page) < Least || len(page) > maxPage {
		return dst, false
	}
	first, ok := pageformat.ParseEntry(page, h.Size)
	if !ok {
		return dst, false
	}
	s := stencil{entry: first.End() - h.Size}
	entries := page[h.Size:]
	if s.count = len(entries) / s.entry; uint64(s.count) != h.Count || s.count*s.entry != len(entries) || s.count < 2 {
		return dst, false
	}
	if s.entry < leastEntry || s.entry > maxEntry {
		return dst, false
	}
	lengths := first.Suffix - h.Size
	if !s.compare(entries, lengths) {
		return dst, false
	}
	s.per = (partBytes + s.kept - 1) / s.kept
	begin := len(dst)
	dst = s.appendTable(dst, page[:h.Size], entries, lengths)
	covered := len(dst) - begin
	plain := len(page) + fixedBytes + lineBytes*(len(page)/partBytes)
	if size := covered + s.count*s.kept; size >= len(page) || size > plain-plain/worthBytes {
		return dst[:begin], false
	}
	binary.LittleEndian.PutUint32(dst[begin:], uint32(covered))
	dst = s.appendParts(dst, entries)
	table := dst[begin+fixedBytes:]
	for i, at := 0, begin+covered; at < len(dst); i++ {
		end := min(at+s.per*s.kept, len(dst))
		binary.LittleEndian.PutUint64(table[i*stencilLine+4:], xxh3.Hash(dst[at:end]))
		at = end
	}
	return dst, true
}

// appendParts appends what entries have outside of the stencil.
func (s *stencil) appendParts(dst, entries []byte) []byte {
	dst = slices.Grow(dst, s.count*s.kept)
	begin := len(dst)
	dst = dst[:begin+s.count*s.kept]
	rest, at := dst[begin:], 0
	for range s.count {
		for i := range s.runs[:s.used] {
			r := &s.runs[i]
			at += int(r.alike)
			copy(rest[:r.differ], entries[at:])
			rest, at = rest[r.differ:], at+int(r.differ)
		}
	}
	return dst
}

// compare finds the runs. It is false when entries are not all of one shape: of the same lengths, which stand at the beginning of each.
func (s *stencil) compare(entries []byte, lengths int) bool {
	var differ [maxEntry]byte
	for i := 0; i < s.entry; i += word {
		i := min(i, s.entry-word)
		model, d := binary.LittleEndian.Uint64(entries[i:]), uint64(0)
		for at := i + s.entry; at+word <= len(entries); at += s.entry {
			d |= binary.LittleEndian.Uint64(entries[at:at+word]) ^ model
		}
		binary.LittleEndian.PutUint64(differ[i:], d)
		if i == 0 && !allZero(differ[:lengths]) {
			return false
		}
	}
	s.alike = entries[:s.entry]
	for at := 0; at < s.entry && s.used < maxRuns; s.used++ {
		alike := at
		for alike < s.entry && differ[alike] == 0 {
			alike++
		}
		end := alike
		for end < s.entry && (s.used == maxRuns-1 || !allZeroFor(differ[end:s.entry], leastAlike)) {
			end++
		}
		s.runs[s.used] = run{from: uint16(at), alike: uint16(alike - at), differ: uint16(end - alike)}
		s.kept += end - alike
		at = end
	}
	return s.kept > 0
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// allZeroFor reports whether b begins with n zeros.
func allZeroFor(b []byte, n int) bool { return len(b) >= n && allZero(b[:n]) }

// appendTable appends all that stands before the parts, without what is only known when they are there.
func (s *stencil) appendTable(dst, head, entries []byte, lengths int) []byte {
	n := (s.count + s.per - 1) / s.per
	dst = binary.LittleEndian.AppendUint64(dst, uint64(n)<<32)
	suffix, _ := binary.Uvarint(entries)
	for i := range n {
		e := entries[i*s.per*s.entry:]
		dst = binary.LittleEndian.AppendUint32(dst, pageformat.FirstFour(e[lengths:lengths+int(suffix)]))
		dst = binary.LittleEndian.AppendUint64(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(s.per))
	dst = binary.AppendUvarint(dst, uint64(s.used))
	for i := range s.runs[:s.used] {
		r := &s.runs[i]
		dst = binary.AppendUvarint(dst, uint64(r.alike))
		dst = binary.AppendUvarint(dst, uint64(r.differ))
		dst = append(dst, s.alikeOf(r)...)
	}
	return append(dst, head...)
}

// ParseStencil is Parse for a page that AppendStencil has stored.
func (t *Table) ParseStencil(covered []byte, length int) error {
	n, err := countParts(covered, stencilLine)
	if err != nil {
		return err
	}
	begin := fixedBytes + n*stencilLine
	*t = Table{lines: covered[fixedBytes:begin], line: stencilLine, parts: n, from: len(covered)}
	s := &t.stencil
	rest, ok := s.parse(covered[begin:])
	h, isHead := beginning(rest)
	if !ok || !isHead || h.Size != len(rest) {
		return fmt.Errorf("%w: no stencil and beginning of a page", errDamaged)
	}
	t.head, t.prefix = rest, h.Prefix
	if h.Count == 0 || h.Count > maxPage || int(h.Count)*s.entry > maxPage || int(h.Count)*s.kept != length-t.from {
		return fmt.Errorf("%w: %d entries of %d bytes in %d", errDamaged, h.Count, s.kept, length-t.from)
	}
	if s.count = int(h.Count); n != (s.count+s.per-1)/s.per {
		return fmt.Errorf("%w: %d parts of %d entries for %d", errDamaged, n, s.per, s.count)
	}
	return nil
}

// parse reads the stencil and returns what follows it.
func (s *stencil) parse(b []byte) (rest []byte, ok bool) {
	s.alike = b
	at := s.number(0, maxPage, &s.per)
	at = s.number(at, maxRuns, &s.used)
	for i := 0; i < s.used && at >= 0; i++ {
		r := &s.runs[i]
		var alike, differ int
		at = s.number(at, maxEntry, &alike)
		at = s.number(at, maxEntry, &differ)
		if at < 0 || alike > len(b)-at {
			return nil, false
		}
		*r = run{from: uint16(at), alike: uint16(alike), differ: uint16(differ)}
		if at+word <= len(b) {
			r.word = binary.LittleEndian.Uint64(b[at:]) // of which what is too much is written over
		} else {
			var first [word]byte
			copy(first[:], b[at:])
			r.word = binary.LittleEndian.Uint64(first[:])
		}
		at += alike
		s.entry, s.kept = s.entry+alike+differ, s.kept+differ
	}
	if at < 0 || s.per == 0 || s.kept == 0 || s.entry < leastEntry || s.entry > maxEntry {
		return nil, false
	}
	return b[at:], true
}

// number reads a number of at most limit from s.alike and returns where it ends, negative where there is none.
func (s *stencil) number(at, limit int, to *int) int {
	if at < 0 {
		return at
	}
	v, n := binary.Uvarint(s.alike[at:])
	if n <= 0 || v > uint64(limit) {
		return -1
	}
	*to = int(v)
	return at + n
}

// Size is how many bytes the entries of r have in the page.
func (t *Table) Size(r Range) int {
	if t.stencil.kept > 0 {
		return t.entries(r) * t.stencil.entry
	}
	_, length := t.Place(r)
	return length
}

// Put puts the entries of verified parts, which lie in stored one behind the other, as the page has them into dst, which has as much
// room as Size says. There is a stencil.
func (t *Table) Put(dst, stored []byte) {
	s := &t.stencil
	others := len(stored)/s.kept - 1 // than the last one, behind which is no room
	if others < 0 {
		return
	}
	at, from := 0, 0
	for i := range s.runs[:s.used] {
		r := &s.runs[i]
		s.spread(r, dst[at:], stored[from:], others, s.entry-at)
		at, from = at+int(r.alike)+int(r.differ), from+int(r.differ)
	}
	dst, stored = dst[others*s.entry:], stored[others*s.kept:]
	for i := range s.runs[:s.used] {
		r := &s.runs[i]
		dst = dst[copy(dst, s.alikeOf(r)):]
		copy(dst, stored[:r.differ])
		dst, stored = dst[r.differ:], stored[r.differ:]
	}
}

// spread puts one run of the first n entries into their places; at least one entry follows. From the run on an entry has room bytes.
// Words are quicker than exact lengths where what is too much of them stays within the entry: later runs are written over it.
func (s *stencil) spread(r *run, dst, stored []byte, n, room int) {
	a, d := int(r.alike), int(r.differ)
	switch {
	case a <= word && d <= 2*word && a+2*word <= room && s.kept >= 2*word:
		for range n {
			binary.LittleEndian.PutUint64(dst, r.word)
			binary.LittleEndian.PutUint64(dst[a:], binary.LittleEndian.Uint64(stored))
			binary.LittleEndian.PutUint64(dst[a+word:], binary.LittleEndian.Uint64(stored[word:]))
			dst, stored = dst[s.entry:], stored[s.kept:]
		}
	case a <= word && word <= room:
		for range n {
			binary.LittleEndian.PutUint64(dst, r.word)
			copy(dst[a:a+d], stored)
			dst, stored = dst[s.entry:], stored[s.kept:]
		}
	default:
		alike := s.alikeOf(r)
		for range n {
			copy(dst, alike)
			copy(dst[a:a+d], stored)
			dst, stored = dst[s.entry:], stored[s.kept:]
		}
	}
}

// Expand puts the page in a stored one with a stencil, of which everything was verified, into dst, which must be as long as the page.
func Expand(dst, stored []byte) error {
	covered, err := Covered(stored, len(stored))
	if err != nil {
		return err
	}
	var t Table
	if err := t.ParseStencil(stored[:covered], len(stored)); err != nil {
		return err
	}
	if n := len(t.head) + t.Size(t.All()); n != len(dst) {
		return fmt.Errorf("%w: a page of %d bytes instead of %d", errDamaged, n, len(dst))
	}
	t.Put(dst[copy(dst, t.head):], stored[covered:])
	return nil
}
