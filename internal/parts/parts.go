// Package parts is the stored form of a page that does not compress: it can be verified, and searched, by parts, so that
// somebody who looks for one key reads a few cache lines in front and one part of the page, not all of it.
//
// In front of the page comes a table with a line for each part: how far it reaches, how many entries it has, the beginning of
// its first key, and a checksum. The checksum of the blob (package segment) covers the table and what stands in the page before
// its entries, and by way of the table everything. The bytes are described in docs/format/segment.md, those of a page in
// docs/format/page.md.
//
// There are two forms. In the plain one (Append) the page follows as it is. In the other one (AppendStencil), for pages whose entries
// are all of one length, what all of them have at the same place stands once, in the stencil, and each part holds the rest of its
// entries: less to store, to copy and to verify, and to be put together again by whoever reads.
//
// It promises that Page and Expand give the very bytes that Append and AppendStencil were given, and that an excerpt has a key when the page has it. It
// never reads out of bounds, whatever it is given, and believes no part before its checksum is verified: what makes no sense is
// an error.
package parts

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/pandodb/pando/internal/pageformat"
)

const (
	// Least is the length of the shortest page that is worth a table.
	Least = 2 * partBytes
	// partBytes is how long a part gets before the next one begins.
	partBytes = 768
	maxPage   = pageformat.MaxSize // bytes of a page
	// maxPrefix is the longest prefix of a page that is stored this way: whoever looks for a key reads it.
	maxPrefix = 512

	fixedBytes = 8  // in front of the table: bytes that the blob's checksum covers, and number of parts
	lineBytes  = 16 // of the table: end and count, beginning of the first key, checksum
	countBits  = 12 // of a line's first number: entries of the part; above them the offset where it ends
	maxCount   = 1<<countBits - 1
)

// errDamaged is what is found in bytes that Append did not make.
var errDamaged = errors.New("parts make no sense")

// Append appends the stored form of page to dst. It is false, and the answer dst, when page is too short for that, or no
// page; dst's memory behind its end may have changed then.
func Append(dst, page []byte) ([]byte, bool) {
	h, ok := beginning(page)
	if !ok || len(page) < Least || len(page) > maxPage {
		return dst, false
	}
	begin := len(dst)
	dst = append(dst, make([]byte, fixedBytes)...)
	n := 0
	for at := h.Size; at < len(page); n++ {
		var line [lineBytes]byte
		end, count := at, 0
		for end < len(page) && end-at < partBytes && count < maxCount {
			e, ok := pageformat.ParseEntry(page, end)
			if !ok {
				return dst[:begin], false
			}
			if count == 0 {
				binary.LittleEndian.PutUint32(line[4:], pageformat.FirstFour(page[e.Suffix:e.Value]))
			}
			end, count = e.End(), count+1
		}
		binary.LittleEndian.PutUint32(line[:], uint32(end-h.Size)<<countBits|uint32(count))
		binary.LittleEndian.PutUint64(line[8:], xxh3.Hash(page[at:end]))
		dst, at = append(dst, line[:]...), end
	}
	binary.LittleEndian.PutUint32(dst[begin:], uint32(fixedBytes+n*lineBytes+h.Size))
	binary.LittleEndian.PutUint32(dst[begin+4:], uint32(n))
	return append(dst, page...), true
}

// beginning reads what stands before the entries of a page. It is not ok where there is no page, or its prefix is too long.
func beginning(page []byte) (h pageformat.Head, ok bool) {
	h, ok = pageformat.ParseHead(page)
	return h, ok && h.Prefix <= maxPrefix
}

// Covered returns how many of the first bytes of a stored page the checksum of its blob covers. It looks at the first four
// bytes, which nobody has verified yet; length is that of the stored page.
func Covered(stored []byte, length int) (int, error) {
	if len(stored) < fixedBytes {
		return 0, fmt.Errorf("%w: %d bytes", errDamaged, len(stored))
	}
	n := binary.LittleEndian.Uint32(stored)
	if n < fixedBytes || uint64(n) > uint64(length) {
		return 0, fmt.Errorf("%w: a table of %d bytes in %d", errDamaged, n, length)
	}
	return int(n), nil
}

// Table is what the checksum of the blob covers, verified.
type Table struct {
	lines   []byte
	line    int // how many bytes of them each part takes
	parts   int
	head    []byte // of the page: count, length of the prefix, prefix
	prefix  int
	from    int // where the first part begins in the stored page
	stencil stencil
}

// Parse reads what Covered told the length of, and what was verified since. length is that of the stored page.
func (t *Table) Parse(covered []byte, length int) error {
	n, err := countParts(covered, lineBytes)
	if err != nil {
		return err
	}
	begin := fixedBytes + n*lineBytes
	*t = Table{lines: covered[fixedBytes:begin], line: lineBytes, parts: n, head: covered[begin:], from: len(covered)}
	h, ok := beginning(t.head)
	if !ok || h.Size != len(t.head) {
		return fmt.Errorf("%w: no beginning of a page", errDamaged)
	}
	t.prefix = h.Prefix
	at := 0
	for i := 0; i < len(t.lines); i += lineBytes {
		number := binary.LittleEndian.Uint32(t.lines[i:])
		end := int(number >> countBits)
		if end <= at || number&maxCount == 0 {
			return fmt.Errorf("%w: part %d is empty", errDamaged, i/lineBytes)
		}
		at = end
	}
	if at != length-t.from {
		return fmt.Errorf("%w: parts of %d bytes in %d", errDamaged, at, length-t.from)
	}
	return nil
}

// countParts returns how many lines of so many bytes the table says that it has.
func countParts(covered []byte, line int) (int, error) {
	n := uint64(binary.LittleEndian.Uint32(covered[4:]))
	if n > uint64(len(covered)-fixedBytes)/uint64(line) {
		return 0, fmt.Errorf("%w: %d parts in a table of %d bytes", errDamaged, n, len(covered))
	}
	return int(n), nil
}

// behind returns the part's line from the beginning of its first key on: all of it with a stencil, as where parts end follows from how
// many entries they have then, which is the same for all.
func (t *Table) behind(i int) []byte {
	end := (i + 1) * t.line
	return t.lines[end-stencilLine : end]
}

// end is where part i ends, from the first part on.
func (t *Table) end(i int) int {
	if s := &t.stencil; s.kept > 0 {
		return min((i+1)*s.per, s.count) * s.kept
	}
	return int(t.number(i) >> countBits)
}

// count is how many entries part i has.
func (t *Table) count(i int) int {
	if s := &t.stencil; s.kept > 0 {
		return min(s.per, s.count-i*s.per)
	}
	return int(t.number(i) & maxCount)
}

func (t *Table) number(i int) uint32 { return binary.LittleEndian.Uint32(t.lines[i*lineBytes:]) }
func (t *Table) first(i int) uint32  { return binary.LittleEndian.Uint32(t.behind(i)) }
func (t *Table) sum(i int) uint64    { return binary.LittleEndian.Uint64(t.behind(i)[4:]) }

// shared is what all keys begin with.
func (t *Table) shared() []byte { return t.head[len(t.head)-t.prefix:] }

// begin is where part i begins, behind the table.
func (t *Table) begin(i int) int {
	if i == 0 {
		return 0
	}
	return t.end(i - 1)
}

// Range is a run of parts: those from First on, before End.
type Range struct{ First, End int }

// Find returns the parts that may have key.
func (t *Table) Find(key []byte) Range {
	if len(key) < t.prefix || string(key[:t.prefix]) != string(t.shared()) {
		return Range{}
	}
	want := pageformat.FirstFour(key[t.prefix:])
	var r Range
	for r.End < t.parts && t.first(r.End) <= want {
		// The part before may end with keys that begin like this one's first.
		if t.first(r.End) < want {
			r.First = r.End
		}
		r.End++
	}
	return r
}

// All returns all parts.
func (t *Table) All() Range { return Range{0, t.parts} }

// Place returns where the parts of r lie in the stored page.
func (t *Table) Place(r Range) (from, length int) {
	if r.First >= r.End {
		return t.from, 0
	}
	from = t.begin(r.First)
	return t.from + from, t.end(r.End-1) - from
}

// Verify checks the parts of r, which lie in raw one behind the other.
func (t *Table) Verify(r Range, raw []byte) error {
	at := 0
	for i := r.First; i < r.End; i++ {
		n := t.end(i) - t.begin(i)
		if got := xxh3.Hash(raw[at : at+n]); got != t.sum(i) {
			return fmt.Errorf("checksum mismatch in part %d: %016x, want %016x", i, got, t.sum(i))
		}
		at += n
	}
	return nil
}

// AppendBeginning appends to dst what stands before the entries of a page that has those of r only.
func (t *Table) AppendBeginning(dst []byte, r Range) []byte {
	return pageformat.AppendHead(dst, t.entries(r), t.shared())
}

// entries is how many entries the parts of r have.
func (t *Table) entries(r Range) int {
	count := 0
	for i := r.First; i < r.End; i++ {
		count += t.count(i)
	}
	return count
}

// Page returns the page in a stored one of which everything was verified.
func Page(stored []byte) ([]byte, error) {
	covered, err := Covered(stored, len(stored))
	if err != nil {
		return nil, err
	}
	var t Table
	if err := t.Parse(stored[:covered], len(stored)); err != nil {
		return nil, err
	}
	return stored[fixedBytes+len(t.lines):], nil
}
