package memtable

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/pandodb/pando/internal/offheap"
	"github.com/pandodb/pando/internal/record"
)

// ref addresses an item or a version in the arena: its byte offset divided by 8. No item has the ref 0.
type ref uint32

// The arena is a sequence of items in the order in which they were put. All begin at a multiple of 8 bytes, all integers
// are in the machine's own byte order (nothing of this reaches a disk), and all bytes but the word newest are never
// changed once they are published.
//
//	key node      newest u32 | itemNode + key length u32 | keyspace u32 | key, padded | first version
//	update        node u32   | itemUpdate u32            | version
//	range delete  keyspace   | itemRange + flags u32     | length of lo u32 | length of hi u32 | seq u64 | lo, padded | hi, padded
//	version       older u32  | meta u32                  | seq u64 | expiry u64, if any | value, padded
//
// The second word says which item it is, so that the items can be walked from any mark on.
const (
	itemNode   = 1 << 31
	itemUpdate = 1 << 30
	itemRange  = 1 << 29
	rangeOpen  = 1 << 28 // the range delete reaches to the end of the keyspace

	nodeHeader    = 12
	updateHeader  = 8
	rangeHeader   = 24
	versionHeader = 16

	// meta is the length of the value with these above it.
	metaLength    = 1<<17 - 1
	metaKindShift = 17
	metaKind      = 3
	metaExpiry    = 1 << 19
	keyLength     = 1<<17 - 1

	// itemOverhead bounds what one item needs beyond its key and value (or lo and hi): a node's and a version's header,
	// an expiry, and the padding of both.
	itemOverhead = nodeHeader + 7 + versionHeader + 8 + 7

	// markSpacing is how many bytes of items lie between two marks.
	markSpacing = 4 << 10
	markSize    = 16
	maxArena    = 8 << 32 // what a ref can address

	refBytes = 4

	// firstItem is where items begin: no item has the ref 0.
	firstItem = 8
)

// arena is the block of memory that the items lie in, and after them, at the end, the marks. What lies in it before it is written to does
// not matter.
//
// It is addressed through pointers instead of slices, to save the bounds checks on the hot paths: every ref comes from the
// arena itself and lies within what has been allocated. Words are aligned as atomic operations demand on every machine,
// because the block starts at a page and items at multiples of 8.
type arena struct {
	block []byte
	base  unsafe.Pointer
	size  int // bytes for items
}

// newArena makes an arena of a block of the pool, or of a new one. It returns how much of it, from the start, an earlier table has written
// to: the system has provided that memory.
func newArena(size int, p *Pool) (a arena, touched int, err error) {
	size &^= 7
	if size < 0 || uint64(size) > maxArena {
		return arena{}, 0, fmt.Errorf("memtable of %d bytes: impossible size", size)
	}
	size = max(size, 8)
	n := size + (size/markSpacing+2)*markSize
	block, touched := p.take(n)
	if block == nil {
		if block, err = offheap.Alloc(n); err != nil {
			return arena{}, 0, fmt.Errorf("memtable of %d bytes: %w", size, err)
		}
		// The marks are few: in the huge page that they begin in they would take all of it.
		offheap.Split(block[size&^(offheap.HugePage-1):])
	}
	a.size = size
	a.use(block)
	return a, touched, nil
}

// use makes a block what the items lie in. There are none yet.
func (a *arena) use(block []byte) {
	a.block, a.base = block, unsafe.Pointer(unsafe.SliceData(block))
}

// word returns the i-th 32-bit word of what r addresses.
func (a *arena) word(r ref, i uintptr) *uint32 {
	return (*uint32)(unsafe.Add(a.base, uintptr(r)*8+i*4))
}

// long returns the i-th 64-bit word of what r addresses.
func (a *arena) long(r ref, i uintptr) *uint64 {
	return (*uint64)(unsafe.Add(a.base, uintptr(r)*8+i*8))
}

// bytes returns n bytes from offset on of what r addresses.
func (a *arena) bytes(r ref, offset uintptr, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(a.base, uintptr(r)*8+offset)), n)
}

func (a *arena) keyLen(node ref) int { return int(*a.word(node, 1) & keyLength) }

func (a *arena) key(node ref) []byte { return a.bytes(node, nodeHeader, a.keyLen(node)) }

func (a *arena) keyspace(node ref) uint32 { return *a.word(node, 2) }

func (a *arena) seq(version ref) uint64 { return *a.long(version, 1) }

// newest returns the newest version of a node.
func (a *arena) newest(node ref) ref { return ref(atomic.LoadUint32(a.word(node, 0))) }

// versionAt returns the newest version of a node that a reader at seq may see, 0 if there is none.
func (a *arena) versionAt(node ref, seq uint64) ref {
	v := a.newest(node)
	for v != 0 && a.seq(v) > seq {
		v = ref(*a.word(v, 0))
	}
	return v
}

// record returns what a version holds; the value aliases the arena.
func (a *arena) record(version ref) record.Record {
	meta := *a.word(version, 1)
	r := record.Record{Kind: record.Kind(meta >> metaKindShift & metaKind)}
	offset := uintptr(versionHeader)
	if meta&metaExpiry != 0 {
		r.Expiry = *a.long(version, 2)
		offset += 8
	}
	if n := int(meta & metaLength); n > 0 {
		r.Value = a.bytes(version, offset, n)
	}
	return r
}

// nodeSize is the number of bytes before a node's first version.
func nodeSize(keyLen int) int { return (nodeHeader + keyLen + 7) &^ 7 }

func versionSize(r record.Record) int {
	n := versionHeader + len(r.Value)
	if r.Expiry != 0 {
		n += 8
	}
	return (n + 7) &^ 7
}

// writeVersion writes a version at v.
func (a *arena) writeVersion(v, older ref, seq uint64, r record.Record) {
	meta := uint32(len(r.Value)) | uint32(r.Kind)<<metaKindShift
	offset := uintptr(versionHeader)
	if r.Expiry != 0 {
		meta |= metaExpiry
		*a.long(v, 2) = r.Expiry
		offset += 8
	}
	*a.word(v, 0) = uint32(older)
	*a.word(v, 1) = meta
	*a.long(v, 1) = seq
	copy(a.bytes(v, offset, len(r.Value)), r.Value)
}

// writtenVersionSize is versionSize of a version that lies in the arena.
func (a *arena) writtenVersionSize(v ref) int {
	meta := *a.word(v, 1)
	n := versionHeader + int(meta&metaLength)
	if meta&metaExpiry != 0 {
		n += 8
	}
	return (n + 7) &^ 7
}

// mark says that every item before the ref has a sequence number of at most seq.
type mark struct {
	seq  uint64
	item ref
}

func (a *arena) mark(i int) *mark {
	return (*mark)(unsafe.Add(a.base, a.marksAt()+i*markSize))
}

// marksAt is where the marks begin: at a multiple of 8, as size is one.
func (a *arena) marksAt() int { return a.size }
