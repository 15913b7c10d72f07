package page

import (
	"sync/atomic"
	"unsafe"

	"github.com/pandodb/pando/internal/pageformat"
	"github.com/pandodb/pando/internal/record"
)

// Header is the first part of a resident page. It belongs to whoever owns the memory (package cache); loading a page leaves
// it alone, and this package never looks at it.
type Header struct {
	Generation atomic.Uint32 // of what the memory holds; a handle of another generation is stale
	Pins       atomic.Int32  // readers that keep the page beyond their epoch section
	Referenced atomic.Uint32 // not 0: used since the eviction's hand last came by
}

// HeaderSize is the part of a resident page that comes before everything else.
const HeaderSize = 64

// prefixRoom is the longest prefix that is repeated in the header, so that comparing it costs no further cache miss.
const prefixRoom = 24

// header is all of a resident page's first cache line. Offsets count from the header's first byte. After it come
// 1<<bits hash slots, the raw bytes, padding to four bytes, the offsets and the heads, count of each.
type header struct {
	Header
	keyspace  uint32 // whose keys the page has: it goes into their hashes
	count     uint32
	rawLen    uint32
	offsetsAt uint32
	prefixAt  uint32
	lengths   uint32 // of the prefix, in the high bits; below, in bitsBits, the number of hash bits
	slots     atomic.Uint32
	prefix    [prefixRoom]byte
}

// bitsBits is the part of header.lengths that tells the number of hash bits.
const bitsBits = 8

func (h *header) hashBits() uint64  { return uint64(h.lengths & (1<<bitsBits - 1)) }
func (h *header) prefixLen() uint32 { return h.lengths >> bitsBits }

// What header.slots says of the hash slots, which are filled when somebody asks the page for a key: many pages are only ever gone
// over in order.
const (
	slotsFilled  uint32 = iota
	slotsEmpty          // nobody has asked yet: the slots hold anything
	slotsClaimed        // somebody is filling them
	slotsNone           // there is no room for them: keys are searched for
)

// A hash slot is 0 when empty; no entry begins at offset 0 of a raw page.
const (
	offsetBits = 20 // low bits: offset of the entry in the raw bytes
	offsetMask = 1<<offsetBits - 1
	minBits    = 2
	maxBits    = 20
)

// Page is a view of a resident page; copy it freely. The zero Page is none: only IsZero may be asked of it.
type Page struct {
	base unsafe.Pointer // *header
	bits uint64         // as in the header; cached handles know it before the header has arrived
}

// At is the page that Load or Builder.Load has written to b.
func At(b []byte) Page {
	h := (*header)(unsafe.Pointer(unsafe.SliceData(b)))
	return Page{base: unsafe.Pointer(h), bits: h.hashBits()}
}

// AtPointer is the page at base whose number of hash bits the caller remembers, so that the header need not be read first.
func AtPointer(base unsafe.Pointer, bits uint64) Page { return Page{base: base, bits: bits} }

// IsZero reports whether p is no page at all.
func (p Page) IsZero() bool { return p.base == nil }

// HashBits is what AtPointer wants to know. It is 0 where there is no room for hash slots: then Get has to search.
func (p Page) HashBits() uint64 { return p.bits }

// Header is the part of the page that its memory's owner keeps.
func (p Page) Header() *Header { return (*Header)(p.base) }

func (p Page) header() *header { return (*header)(p.base) }

// slot is the address of hash slot i.
func (p Page) slot(i uint64) *uint32 {
	return (*uint32)(unsafe.Add(p.base, HeaderSize+i*4))
}

// entries is the address of the first of the raw bytes.
func (p Page) entries() unsafe.Pointer {
	return unsafe.Add(p.base, HeaderSize+4<<(p.bits&63))
}

// entry is the address of entry i.
func (p Page) entry(i int) unsafe.Pointer {
	h := p.header()
	if uint(i) >= uint(h.count) {
		panic("page: index out of range")
	}
	return unsafe.Add(p.entries(), *(*uint32)(unsafe.Add(p.base, uint(h.offsetsAt)+4*uint(i))))
}

// offsets is where each entry begins in the raw bytes.
func (p Page) offsets() []uint32 {
	h := p.header()
	return unsafe.Slice((*uint32)(unsafe.Add(p.base, h.offsetsAt)), h.count)
}

// heads is the beginning of each suffix: its first four bytes as a big-endian number, padded with zeros.
func (p Page) heads() []uint32 {
	h := p.header()
	return unsafe.Slice((*uint32)(unsafe.Add(p.base, h.offsetsAt+4*h.count)), h.count)
}

// Len is the number of entries.
func (p Page) Len() int { return int(p.header().count) }

// Raw is the page in its raw form.
func (p Page) Raw() []byte { return unsafe.Slice((*byte)(p.entries()), p.header().rawLen) }

// From is what of Raw begins with entry i.
func (p Page) From(i int) []byte {
	return p.Raw()[uintptr(p.entry(i))-uintptr(p.entries()):]
}

// Prefix is what all keys of the page begin with.
func (p Page) Prefix() []byte {
	h := p.header()
	return unsafe.Slice((*byte)(unsafe.Add(p.base, h.prefixAt)), h.prefixLen())
}

// Entry is key i without the page's prefix, and its record.
func (p Page) Entry(i int) (suffix []byte, r record.Record) {
	e := p.entry(i)
	data, n, meta := decodeCommon(e)
	if n >= 0x80 || meta&(pageformat.FlagExpiry|pageformat.FlagTombstone) != 0 {
		return decodeTrusted(e)
	}
	return unsafe.Slice((*byte)(data), n), record.Record{
		Kind:  record.Inline + record.Kind(meta&pageformat.FlagApart),
		Value: unsafe.Slice((*byte)(unsafe.Add(data, n)), meta>>pageformat.FlagBits),
	}
}

// Inline is key i without the page's prefix, and its value, if that lies in the page and never expires. Where it is false the
// caller asks Entry. It is for scans: a Record is too large for registers, and costs as much as the rest of the step.
func (p Page) Inline(i int) (suffix, value []byte, ok bool) {
	data, n, meta := decodeCommon(p.entry(i))
	if n >= 0x80 || meta&(pageformat.FlagApart|pageformat.FlagExpiry|pageformat.FlagTombstone) != 0 {
		return nil, nil, false
	}
	return unsafe.Slice((*byte)(data), n), unsafe.Slice((*byte)(unsafe.Add(data, n)), meta>>pageformat.FlagBits), true
}

// Suffix is key i without the page's prefix.
func (p Page) Suffix(i int) []byte { return suffixAt(p.entry(i)) }

// Record is the record of key i.
func (p Page) Record(i int) record.Record {
	_, r := p.Entry(i)
	return r
}

// AppendKey appends key i to dst.
func (p Page) AppendKey(dst []byte, i int) []byte {
	return append(append(dst, p.Prefix()...), p.Suffix(i)...)
}

// decodeCommon decodes the lengths of the entry at e, which Load has checked, where they take one and at most two bytes and no
// expiry comes after them; data is then where the suffix begins. Otherwise n is at least 0x80, or meta has flags.
func decodeCommon(e unsafe.Pointer) (data unsafe.Pointer, n, meta uint) {
	n, meta = uint(*(*byte)(e)), uint(*(*byte)(unsafe.Add(e, 1)))
	if meta < 0x80 {
		return unsafe.Add(e, 2), n, meta
	}
	high := uint(*(*byte)(unsafe.Add(e, 2)))
	return unsafe.Add(e, 3), n | high&0x80, meta&0x7f | high<<7
}

// suffixAt is the suffix of the entry at e.
func suffixAt(e unsafe.Pointer) []byte {
	data, n, meta := decodeCommon(e)
	if n < 0x80 && meta&pageformat.FlagExpiry == 0 {
		return unsafe.Slice((*byte)(data), n)
	}
	suffix, _ := decodeTrusted(e)
	return suffix
}

// decodeTrusted decodes an entry of any kind at e, which Load has checked.
func decodeTrusted(e unsafe.Pointer) (suffix []byte, r record.Record) {
	n, e := trustedUvarint(e)
	meta, e := trustedUvarint(e)
	r.Kind = kindOf(meta)
	if meta&pageformat.FlagExpiry != 0 {
		r.Expiry, e = trustedUvarint(e)
	}
	r.Value = unsafe.Slice((*byte)(unsafe.Add(e, n)), meta>>pageformat.FlagBits)
	return unsafe.Slice((*byte)(e), n), r
}

// trustedUvarint reads a number at e and returns the address after it.
func trustedUvarint(e unsafe.Pointer) (v uint64, next unsafe.Pointer) {
	for shift := uint(0); ; shift += 7 {
		b := *(*byte)(e)
		e = unsafe.Add(e, 1)
		v |= uint64(b&0x7f) << (shift & 63)
		if b < 0x80 {
			return v, e
		}
	}
}
