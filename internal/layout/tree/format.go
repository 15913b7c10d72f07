package tree

import (
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// The format of nodes, filters and encoded roots; see docs/format/tree.md, which uses the same names.
const (
	nodeVersion   = 1
	filterVersion = 1
	rootVersion   = 1

	nodeFilterBlob = 1 << 0 // node flag: a filter pointer follows

	slotOpen   = 1 << 0 // slot flags
	slotApart  = 1 << 1
	slotExpiry = 1 << 2
	slotDeltas = 1 << 3
	slotFilter = 1 << 4
	slotDigest = 1 << 5
	slotWhole  = 1 << 6
	slotAll    = 1<<7 - 1

	// maxHeight bounds what a damaged file can make us do; 2^32 leaves of two children a node would fit.
	maxHeight = 32
	// maxChildren bounds the children of one node on disk.
	maxChildren = 1 << 16
	// maxNodeKeys bounds what the separators of one node take in memory: a long prefix is stored once, but each has it.
	maxNodeKeys = 64 << 20
	// minSlot is the length of the shortest slot.
	minSlot = 1 + segment.PointerSize + 1
)

// appendNode appends the stored form of b.
func appendNode(dst []byte, b *body) []byte {
	flags := byte(0)
	if !b.filterPtr.IsZero() {
		flags |= nodeFilterBlob
	}
	dst = append(dst, nodeVersion, byte(b.level), flags)
	dst = binary.AppendUvarint(dst, uint64(len(b.slots)))
	if flags&nodeFilterBlob != 0 {
		dst = segment.AppendPointer(dst, b.filterPtr)
	}
	dst = binary.AppendUvarint(dst, uint64(b.skip))
	dst = append(dst, b.keys[:b.skip]...)
	for i := range b.slots {
		dst = appendSlot(dst, b, i)
	}
	return dst
}

func appendSlot(dst []byte, b *body, i int) []byte {
	s := &b.slots[i]
	n, exact := b.count(i)
	var deltas []delta
	flags := byte(0)
	if b.level == 0 {
		deltas = b.deltasOf(i)
		if s.filter != noFilter {
			flags |= slotFilter
		}
		if s.whole {
			flags |= slotWhole
		}
	}
	if !exact {
		flags |= slotOpen
	}
	if s.apart {
		flags |= slotApart
	}
	if s.expiry != 0 {
		flags |= slotExpiry
	}
	if len(deltas) > 0 {
		flags |= slotDeltas | slotDigest
	}
	dst = append(dst, flags)
	if i > 0 {
		suffix := b.separator(i)[b.skip:]
		dst = binary.AppendUvarint(dst, uint64(len(suffix)))
		dst = append(dst, suffix...)
	}
	dst = segment.AppendPointer(dst, s.ptr)
	dst = binary.AppendUvarint(dst, uint64(n))
	if flags&slotExpiry != 0 {
		dst = binary.AppendUvarint(dst, s.expiry)
	}
	if flags&slotDeltas != 0 {
		dst = append(dst, byte(len(deltas)))
		for _, d := range deltas {
			dst = appendDelta(dst, d)
		}
	}
	if flags&slotFilter != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.filter))
	}
	return dst
}

func appendDelta(dst []byte, d delta) []byte {
	return binary.LittleEndian.AppendUint64(segment.AppendPointer(dst, d.Pointer), uint64(d.digest))
}

// reader takes a blob apart; after the first failure it gives zeroes.
type reader struct {
	raw []byte
	at  int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %d: %s: %w", r.at, fmt.Sprintf(format, args...), corrupt.Err)
	}
}

func (r *reader) byte() byte {
	if r.err != nil || r.at >= len(r.raw) {
		r.fail("truncated")
		return 0
	}
	r.at++
	return r.raw[r.at-1]
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.raw[r.at:])
	if n <= 0 {
		r.fail("bad number")
		return 0
	}
	r.at += n
	return v
}

// length reads a number that must not exceed limit.
func (r *reader) length(limit int) int {
	v := r.uvarint()
	if v > uint64(limit) {
		r.fail("%d is more than %d", v, limit)
		return 0
	}
	return int(v)
}

func (r *reader) bytes(n int) []byte {
	if r.err != nil || n > len(r.raw)-r.at {
		r.fail("truncated")
		return nil
	}
	r.at += n
	return r.raw[r.at-n : r.at : r.at]
}

func (r *reader) fixed64() uint64 {
	b := r.bytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (r *reader) pointer() segment.Pointer {
	b := r.bytes(segment.PointerSize)
	if b == nil {
		return segment.Pointer{}
	}
	p, err := segment.DecodePointer(b)
	if err != nil || p.IsZero() {
		r.fail("bad pointer")
	}
	return p
}

// decodeNode reads a node that must be of the given level. It believes nothing: the checksum says that the bytes are what
// was written, not that what was written was right.
func decodeNode(raw []byte, level int) (*body, error) {
	b := new(body)
	if err := b.decode(raw, level); err != nil {
		return nil, err
	}
	return b, nil
}

// decode is decodeNode into a body that nobody else has, whose arrays serve again. After an error it is not to be used.
func (b *body) decode(raw []byte, level int) error {
	r := &reader{raw: raw}
	if v := r.byte(); v != nodeVersion {
		r.fail("version %d of the node format is not known", v)
	}
	if l := int(r.byte()); l != level {
		r.fail("level %d instead of %d", l, level)
	}
	flags := r.byte()
	if flags&^nodeFilterBlob != 0 || (flags != 0 && level != 0) {
		r.fail("bad node flags %#x", flags)
	}
	n := r.length(min(maxChildren, len(raw)/minSlot))
	if n == 0 {
		r.fail("a node without children")
	}
	if r.err != nil {
		return r.err
	}
	b.level, b.filterPtr, b.filters = level, segment.Pointer{}, nil
	b.keys, b.deltas = b.keys[:0], b.deltas[:0]
	if flags&nodeFilterBlob != 0 {
		b.filterPtr = r.pointer()
	}
	prefix := r.bytes(r.length(record.MaxKey))
	b.allot(n)
	filters := uint32(0) // filters below this one belong to earlier leaves
	for i := 0; i < n && r.err == nil; i++ {
		r.slot(b, i, prefix, &filters)
	}
	if r.err == nil && r.at != len(raw) {
		r.fail("%d bytes after the last slot", len(raw)-r.at)
	}
	if r.err != nil {
		return r.err
	}
	b.index()
	if b.skip < len(prefix) && n > 1 {
		r.fail("separators do not share their prefix")
		return r.err
	}
	b.attach()
	return nil
}

// allot makes the arrays for n children.
func (b *body) allot(n int) {
	b.slots = cleared(b.slots, n)
	b.counts = cleared(b.counts, n)
	b.ends = cleared(b.ends, n)
}

// cleared returns n zero values, in the memory of s where that is enough.
func cleared[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// attach makes what a body needs beside its stored form: child nodes, or empty handles and filters.
func (b *body) attach() {
	n := len(b.slots)
	if b.level == 0 {
		b.handles = cleared(b.handles, n)
		b.filterEnds = cleared(b.filterEnds, n)
		return
	}
	nodes := make([]node, n)
	b.children = make([]*node, n)
	for i := range nodes {
		nodes[i].ptr, nodes[i].level = b.slots[i].ptr, b.level-1
		b.children[i] = &nodes[i]
	}
}

func (r *reader) slot(b *body, i int, prefix []byte, filters *uint32) {
	flags := r.byte()
	if flags&^slotAll != 0 || (b.level > 0 && flags&(slotDeltas|slotDigest|slotFilter|slotWhole) != 0) {
		r.fail("bad slot flags %#x", flags)
	}
	if i > 0 {
		suffix := r.bytes(r.length(record.MaxKey - len(prefix)))
		from := len(b.keys)
		if from+len(prefix)+len(suffix) > maxNodeKeys {
			r.fail("separators of more than %d bytes", maxNodeKeys)
			return
		}
		b.keys = append(append(b.keys, prefix...), suffix...)
		if i > 1 && r.err == nil && string(b.separator(i-1)) >= string(b.keys[from:]) {
			r.fail("separator %d is not greater than the one before it", i)
		}
	}
	b.ends[i] = uint32(len(b.keys))
	s := &b.slots[i]
	s.ptr = r.pointer()
	n := r.uvarint()
	if n >= openCount {
		r.fail("bad count")
	}
	b.counts[i].Store(joinCount(int64(n), flags&slotOpen == 0))
	s.apart, s.whole = flags&slotApart != 0, flags&slotWhole != 0
	if flags&slotExpiry != 0 {
		if s.expiry = r.uvarint(); s.expiry == 0 {
			r.fail("bad expiry")
		}
	}
	s.deltas = uint32(len(b.deltas))
	r.deltas(b, flags)
	s.filter = noFilter
	if flags&slotFilter != 0 {
		s.filter = uint32(r.length(maxChildren - 1))
		if *filters > s.filter {
			r.fail("filter %d out of order", s.filter)
		}
		*filters = s.filter + 1
		if b.filterPtr.IsZero() {
			r.fail("a filter without a filter blob")
		}
	}
}

// deltas reads those of a slot with the given flags.
func (r *reader) deltas(b *body, flags byte) {
	if flags&slotDeltas == 0 {
		if flags&slotDigest != 0 {
			r.fail("digests without deltas")
		}
		return
	}
	n := int(r.byte())
	if n == 0 {
		r.fail("no deltas")
	}
	for ; n > 0 && r.err == nil; n-- {
		d := delta{Pointer: r.pointer()}
		if flags&slotDigest != 0 {
			d.digest = digest(r.fixed64())
		}
		b.deltas = append(b.deltas, d)
	}
}

// rootInfo is the stored form of a root.
type rootInfo struct {
	ptr    segment.Pointer
	level  int
	count  uint64 // with openCount
	expiry uint64
	apart  bool
}

func appendRoot(dst []byte, info rootInfo) []byte {
	n, exact := splitCount(info.count)
	flags := byte(0)
	if !exact {
		flags |= slotOpen
	}
	if info.apart {
		flags |= slotApart
	}
	if info.expiry != 0 {
		flags |= slotExpiry
	}
	dst = append(dst, rootVersion, byte(info.level), flags)
	dst = segment.AppendPointer(dst, info.ptr)
	dst = binary.AppendUvarint(dst, uint64(n))
	if info.expiry != 0 {
		dst = binary.AppendUvarint(dst, info.expiry)
	}
	return dst
}

func decodeRoot(raw []byte) (rootInfo, error) {
	r := &reader{raw: raw}
	var info rootInfo
	if v := r.byte(); v != rootVersion {
		r.fail("version %d of the root format is not known", v)
	}
	info.level = int(r.byte())
	flags := r.byte()
	if flags&^(slotOpen|slotApart|slotExpiry) != 0 || info.level >= maxHeight {
		r.fail("bad level %d or flags %#x", info.level, flags)
	}
	info.ptr = r.pointer()
	n := r.uvarint()
	if n >= openCount {
		r.fail("bad count")
	}
	info.count = joinCount(int64(n), flags&slotOpen == 0)
	info.apart = flags&slotApart != 0
	if flags&slotExpiry != 0 {
		if info.expiry = r.uvarint(); info.expiry == 0 {
			r.fail("bad expiry")
		}
	}
	if r.err == nil && r.at != len(raw) {
		r.fail("%d bytes too many", len(raw)-r.at)
	}
	return info, r.err
}
