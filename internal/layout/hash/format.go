package hash

import (
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

// The format of roots and groups; see docs/format/hash.md, which uses the same names.
const (
	rootVersion  = 1
	groupVersion = 1

	rootOpen  = 1 << 0 // root flags
	rootApart = 1 << 1
	rootAll   = 1<<2 - 1

	slotOpen   = 1 << 0 // slot flags
	slotApart  = 1 << 1
	slotLost   = 1 << 2
	slotExpiry = 1 << 3
	slotBase   = 1 << 4
	slotAll    = 1<<5 - 1

	// groupSlots is how many slots a group has, where there are as many pages.
	groupSlots = 256
	groupBits  = 8
	// maxDepth is the most bits of a hash that number the pages; with more records than fit there, pages grow.
	maxDepth = 24
	// deltasMost bounds the deltas of a page.
	deltasMost = 255
)

// slot is what a group knows of an index page.
type slot struct {
	base   segment.Pointer // zero: the page is its deltas
	deltas []segment.Pointer
	count  uint32 // entries
	open   bool   // there may be fewer records than entries
	apart  bool   // a value of it may lie apart
	lost   bool   // the base cannot be found any more
	expiry uint64 // no record of it expires earlier; 0: none expires
}

func (t *slot) deltaBytes() int {
	n := 0
	for i := range t.deltas {
		n += int(t.deltas[i].Length)
	}
	return n
}

func (t *slot) empty() bool { return t.base.IsZero() && len(t.deltas) == 0 && !t.lost }

// groupsOf returns how many groups there are at a depth, and slotsOf how many slots each has.
func groupsOf(depth int) int { return max(1<<depth>>groupBits, 1) }
func slotsOf(depth int) int  { return min(1<<depth, groupSlots) }

// Encode implements layout.Root.
func (r *root) Encode(dst []byte) []byte {
	if len(r.groups) == 0 {
		return dst
	}
	flags := byte(0)
	if r.open {
		flags |= rootOpen
	}
	if r.apart {
		flags |= rootApart
	}
	dst = append(dst, rootVersion, byte(r.depth), flags)
	dst = binary.AppendUvarint(dst, uint64(r.count))
	dst = binary.AppendUvarint(dst, r.expiry)
	for _, g := range r.groups {
		dst = segment.AppendPointer(dst, g.ptr)
	}
	return dst
}

// decode is the inverse of Encode.
func (r *root) decode(b []byte) error {
	d := decoder{b: b}
	version, depth, flags := d.byte(), int(d.byte()), d.byte()
	count, expiry := d.uvarint(), d.uvarint()
	if d.bad || version != rootVersion || depth > maxDepth || flags&^rootAll != 0 || count > 1<<62 {
		return corrupt.New("catalogue", 0, 0, "root of a hash table: version %d, depth %d, flags %x", version, depth, flags)
	}
	n := groupsOf(depth)
	if len(d.b) != n*segment.PointerSize {
		return corrupt.New("catalogue", 0, 0, "root of a hash table: %d bytes for %d groups", len(d.b), n)
	}
	r.depth, r.count, r.expiry = depth, int64(count), expiry
	r.open, r.apart = flags&rootOpen != 0, flags&rootApart != 0
	r.groups = make([]*group, n)
	for i := range r.groups {
		r.groups[i] = &group{ptr: d.pointer()}
	}
	if d.bad {
		return corrupt.New("catalogue", 0, 0, "root of a hash table: a group lies where nothing can lie")
	}
	return nil
}

// appendGroup appends the stored form of slots.
func appendGroup(dst []byte, slots []slot) []byte {
	dst = append(dst, groupVersion)
	dst = binary.AppendUvarint(dst, uint64(len(slots)))
	for i := range slots {
		dst = appendSlot(dst, &slots[i])
	}
	return dst
}

func appendSlot(dst []byte, t *slot) []byte {
	flags := byte(0)
	for _, f := range []struct {
		on  bool
		bit byte
	}{{t.open, slotOpen}, {t.apart, slotApart}, {t.lost, slotLost}, {t.expiry != 0, slotExpiry}, {!t.base.IsZero(), slotBase}} {
		if f.on {
			flags |= f.bit
		}
	}
	dst = append(dst, flags, byte(len(t.deltas)))
	dst = binary.AppendUvarint(dst, uint64(t.count))
	if t.expiry != 0 {
		dst = binary.AppendUvarint(dst, t.expiry)
	}
	if !t.base.IsZero() {
		dst = segment.AppendPointer(dst, t.base)
	}
	for i := range t.deltas {
		dst = segment.AppendPointer(dst, t.deltas[i])
	}
	return dst
}

// decodeGroup reads what appendGroup wrote, of so many slots.
func decodeGroup(raw []byte, slots int) (*body, error) {
	d := decoder{b: raw}
	version, n := d.byte(), d.uvarint()
	if d.bad || version != groupVersion || n != uint64(slots) {
		return nil, fmt.Errorf("group of version %d with %d slots, want %d", version, n, slots)
	}
	b := newBody(slots)
	for i := range b.slots {
		b.slots[i] = d.slot()
	}
	if d.bad || len(d.b) != 0 {
		return nil, fmt.Errorf("group: slots make no sense, %d bytes are left", len(d.b))
	}
	return b, nil
}

// decoder reads numbers off the front of b. bad says that something was missing or impossible.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) slot() (t slot) {
	flags, deltas, count := d.byte(), int(d.byte()), d.uvarint()
	if flags&^slotAll != 0 || count > 1<<32-1 {
		d.bad = true
		return t
	}
	t.count = uint32(count)
	t.open, t.apart, t.lost = flags&slotOpen != 0, flags&slotApart != 0, flags&slotLost != 0
	if flags&slotExpiry != 0 {
		t.expiry = d.uvarint()
	}
	if flags&slotBase != 0 {
		t.base = d.pointer()
	}
	if deltas*segment.PointerSize > len(d.b) {
		d.bad = true
		return t
	}
	if deltas > 0 {
		t.deltas = make([]segment.Pointer, deltas)
	}
	for i := range t.deltas {
		t.deltas[i] = d.pointer()
	}
	return t
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) pointer() segment.Pointer {
	if len(d.b) < segment.PointerSize {
		d.bad, d.b = true, nil
		return segment.Pointer{}
	}
	p, err := segment.DecodePointer(d.b[:segment.PointerSize])
	d.bad = d.bad || err != nil
	d.b = d.b[segment.PointerSize:]
	return p
}
