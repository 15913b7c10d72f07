package page

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/pandodb/pando/internal/record"
)

// shape is how the parts of a resident page lie.
type shape struct {
	bits      uint64 // hash slots, as a power of two
	offsetsAt int
	size      int
}

// shapeOf lays out a page of so many entries and raw bytes. At most three of four hash slots are taken.
func shapeOf(count, rawLen int) shape {
	s := shape{bits: minBits}
	for s.bits < maxBits && 3<<s.bits < 4*count {
		s.bits++
	}
	s.offsetsAt = (HeaderSize + 4<<s.bits + rawLen + 3) &^ 3
	s.size = s.offsetsAt + 8*count
	return s
}

// ResidentSize is how much memory Load needs for raw. It looks at no more than the beginning of raw.
func ResidentSize(raw []byte) (int, error) {
	h, err := decodeHead(raw)
	if err != nil {
		return 0, err
	}
	return shapeOf(h.count, len(raw)).size, nil
}

// Load makes the resident form of raw in dst, for the keyspace whose keys are hashed with ks. It checks everything, so that
// damaged bytes are an error and dst then no page. dst must be aligned to 8 bytes and hold ResidentSize; its Header stays.
func Load(dst, raw []byte, ks uint32) error { return load(dst, raw, ks, true) }

// LoadOrdered is Load for a reader who only goes over the page in order and searches it: Get and Lookup find nothing. It costs
// half as much.
func LoadOrdered(dst, raw []byte) error { return load(dst, raw, 0, false) }

func load(dst, raw []byte, ks uint32, hashed bool) error {
	h, err := decodeHead(raw)
	if err != nil {
		return err
	}
	l, err := newLoader(dst, h.count, len(raw))
	if err != nil {
		return err
	}
	raw = l.raw[:copy(l.raw, raw)]
	l.setPrefix(h.size-len(h.prefix), len(h.prefix))
	return l.loadEntries(raw, h, ks, hashed)
}

// loadEntries checks the entries of raw, which is the page's own copy by now, and enters them into the indexes.
func (l *loader) loadEntries(raw []byte, h head, ks uint32, hashed bool) error {
	keys := joiner{raw: raw, prefix: h.prefix}
	for i := range keys.room {
		copy(keys.room[i][:], h.prefix)
	}
	at, last, lastHead := h.size, []byte(nil), uint32(0)
	for i := range l.offsets {
		begin, value, next := span(raw, at, len(h.prefix))
		if next == 0 {
			var err error
			if begin, value, next, err = spanAny(raw, at, len(h.prefix)); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
		suffix := raw[begin:value]
		head := headOf(suffix)
		if head <= lastHead && i > 0 && (head < lastHead || bytes.Compare(last, suffix) >= 0) {
			return fmt.Errorf("entry %d: %w", i, damaged(at, "key is not greater than the one before it"))
		}
		l.offsets[i], l.heads[i] = uint32(at), head
		last, lastHead, at = suffix, head, next
		if !hashed {
			continue
		}
		keys.add(begin, suffix)
		if keys.n == joined || i == len(l.offsets)-1 {
			for j := range keys.n {
				l.enter(l.offsets[i-keys.n+1+j], record.Hash(ks, keys.key(j)))
			}
			keys.n = 0
		}
	}
	if at != len(raw) {
		return damaged(at, "%d bytes after the last entry", len(raw)-at)
	}
	return nil
}

const (
	joined   = 8  // keys in a joiner
	joinRoom = 64 // longest key that a joiner keeps without an allocation
)

// joiner puts keys together from prefix and suffix, a few at a time: a processor that loads a word of which two stores have
// just written a part each waits until both have reached the cache, so we do not hash a key at once.
type joiner struct {
	raw    []byte
	prefix []byte
	n      int
	length [joined]int
	long   [joined][]byte         // keys that are not in room; nil if they are
	room   [joined][joinRoom]byte // as much of the prefix as there is room for, then the suffix
}

// add appends the key with this suffix, which begins at offset begin of the raw page.
func (k *joiner) add(begin int, suffix []byte) {
	room, length := &k.room[k.n], len(k.prefix)+len(suffix)
	k.length[k.n], k.long[k.n] = length, nil
	switch {
	case len(k.prefix) == 0:
		k.long[k.n] = suffix
	case len(suffix) <= 16 && begin+16 <= len(k.raw) && len(k.prefix)+16 <= joinRoom:
		// Copying two words more than needed is cheaper than a call that copies just enough.
		two := k.raw[begin : begin+16 : begin+16]
		binary.LittleEndian.PutUint64(room[len(k.prefix):], binary.LittleEndian.Uint64(two))
		binary.LittleEndian.PutUint64(room[len(k.prefix)+8:], binary.LittleEndian.Uint64(two[8:]))
	case length <= joinRoom:
		copy(room[len(k.prefix):], suffix)
	default:
		k.long[k.n] = append(append(make([]byte, 0, length), k.prefix...), suffix...)
	}
	k.n++
}

// key is key j of those that have been added.
func (k *joiner) key(j int) []byte {
	if k.long[j] != nil {
		return k.long[j]
	}
	return k.room[j][:k.length[j]]
}

// loader fills the indexes of a resident page.
type loader struct {
	page    Page
	raw     []byte
	offsets []uint32
	heads   []uint32
}

// newLoader lays out a page in dst with empty indexes.
func newLoader(dst []byte, count, rawLen int) (loader, error) {
	s := shapeOf(count, rawLen)
	if len(dst) < s.size {
		return loader{}, fmt.Errorf("page: %d bytes for a page of %d: %w", len(dst), s.size, ErrShort)
	}
	base := unsafe.Pointer(unsafe.SliceData(dst))
	h := (*header)(base)
	h.count, h.rawLen = uint32(count), uint32(rawLen)
	h.offsetsAt, h.bits = uint32(s.offsetsAt), uint32(s.bits)
	p := Page{base: base, bits: s.bits}
	l := loader{
		page:    p,
		raw:     p.Raw(),
		offsets: p.offsets(),
		heads:   p.heads(),
	}
	clear(unsafe.Slice(p.slot(0), 1<<s.bits))
	return l, nil
}

// setPrefix tells the header where the prefix lies in the raw bytes. A short one is repeated in the header.
func (l *loader) setPrefix(at, length int) {
	h := l.page.header()
	h.prefixLen = uint32(length)
	h.prefixAt = uint32(HeaderSize + 4<<l.page.bits + at)
	if length <= prefixRoom {
		copy(h.prefix[:], l.raw[at:at+length])
		h.prefixAt = uint32(unsafe.Offsetof(h.prefix))
	}
}

// enter makes the entry at offset at known to the hash slots.
func (l *loader) enter(at uint32, hash uint64) {
	mask := uint64(1)<<(l.page.bits&63) - 1
	s := hash >> ((64 - l.page.bits) & 63)
	for *l.page.slot(s) != 0 {
		s = (s + 1) & mask
	}
	*l.page.slot(s) = uint32(hash)<<offsetBits | at
}
