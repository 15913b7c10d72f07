package page

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/pageformat"
	"github.com/pandodb/pando/internal/record"
)

// Builder collects the entries of one page, in the form that they have in it. The zero value is ready; Reset makes it so again and
// keeps its buffers, so that a warm builder allocates nothing. Not for concurrent use.
type Builder struct {
	data   []byte // the entries, as they stand in the raw form
	list   []added
	prefix []byte // what all keys begin with
	spare  []byte // memory for data when the entries are written anew
	expiry uint64
}

// added is where one entry lies in Builder.data.
type added struct {
	at     uint32
	suffix uint32
	value  uint32 // up to where the next entry begins
}

// Reset empties the builder.
func (b *Builder) Reset() {
	*b = Builder{data: b.data[:0], list: b.list[:0], prefix: b.prefix[:0], spare: b.spare}
}

// Add appends an entry, of which it keeps a copy. Keys must be strictly increasing. An error leaves the builder as it was.
func (b *Builder) Add(key []byte, r record.Record) error {
	if len(key) > record.MaxKey {
		return fmt.Errorf("page: key of %d bytes: %w", len(key), ErrTooLarge)
	}
	if err := badRecord(r); err != nil {
		return err
	}
	shared := len(key)
	if len(b.list) > 0 {
		shared = commonPrefix(b.prefix, key)
		if !b.precedes(key, shared) {
			return fmt.Errorf("page: %w", ErrOrder)
		}
	}
	meta := meta(r.Kind, r.Expiry, len(r.Value))
	if b.full(key, shared, meta, r) {
		return fmt.Errorf("page: entry %d of %d bytes: %w", len(b.list), len(key)+len(r.Value), ErrFull)
	}
	if len(b.list) == 0 {
		b.prefix = append(b.prefix, key...)
	} else if shared < len(b.prefix) {
		b.shorten(shared)
	}
	data := pageformat.AppendLengths(b.data, len(key)-shared, meta, r.Expiry)
	suffix := len(data)
	data = append(data, key[shared:]...)
	b.list = append(b.list, added{at: uint32(len(b.data)), suffix: uint32(suffix), value: uint32(len(data))})
	b.data = append(data, r.Value...)
	if r.Expiry != 0 && (b.expiry == 0 || r.Expiry < b.expiry) {
		b.expiry = r.Expiry
	}
	return nil
}

// precedes reports whether the last key, which there is, is less than key, of which so many bytes are shared with all.
func (b *Builder) precedes(key []byte, shared int) bool {
	if shared < len(b.prefix) {
		return shared < len(key) && b.prefix[shared] < key[shared]
	}
	return less(b.lastSuffix(), key[shared:])
}

func (b *Builder) lastSuffix() []byte {
	last := &b.list[len(b.list)-1]
	return b.data[last.suffix:last.value]
}

// maxLengths is what the numbers in the head of a page and before the suffix of an entry take at most.
const maxLengths = 5 * binary.MaxVarintLen64

// full reports whether the page would outgrow MaxRaw by an entry, of whose key so many bytes are shared with all.
func (b *Builder) full(key []byte, shared int, meta uint64, r record.Record) bool {
	more := max(len(b.prefix)-shared, 0)
	bound := len(b.data) + 2*len(key) + len(r.Value) + maxLengths // the prefix is as long as key at most
	if more > 0 {
		bound += len(b.list) * (more + binary.MaxVarintLen64)
	}
	if bound <= MaxRaw {
		return false // as nearly always
	}
	size := len(b.data) + pageformat.UvarintLen(uint64(len(key)-shared)) + len(key) - shared + pageformat.UvarintLen(meta) + len(r.Value)
	if r.Expiry != 0 {
		size += pageformat.UvarintLen(r.Expiry)
	}
	if more > 0 {
		for i := range b.list {
			n := int(b.list[i].value - b.list[i].suffix)
			size += more + pageformat.UvarintLen(uint64(n+more)) - pageformat.UvarintLen(uint64(n))
		}
	}
	return sizeOf(len(b.list)+1, shared, size) > MaxRaw
}

// shorten leaves so many bytes of the prefix, and gives the others back to the keys. That writes all entries anew: the keys of a page
// have most in common while there are two of them, so that it is seldom, and early.
func (b *Builder) shorten(prefix int) {
	old, rest := b.data, b.prefix[prefix:]
	b.data, b.spare = b.spare[:0], old
	for i := range b.list {
		a := &b.list[i]
		e, _ := pageformat.ParseEntry(old, int(a.at)) // as Add has written it
		a.at = uint32(len(b.data))
		b.data = pageformat.AppendLengths(b.data, len(rest)+e.Value-e.Suffix, e.Meta, e.Expiry)
		a.suffix = uint32(len(b.data))
		b.data = append(append(b.data, rest...), old[e.Suffix:e.Value]...)
		a.value = uint32(len(b.data))
		b.data = append(b.data, old[e.Value:e.End()]...)
	}
	b.prefix = b.prefix[:prefix]
}

// Count is the number of entries.
func (b *Builder) Count() int { return len(b.list) }

// LeastExpiry is the moment at which the first of the entries expires, 0 if none ever does.
func (b *Builder) LeastExpiry() uint64 { return b.expiry }

// Size is the length of the raw form if the page were finished now.
func (b *Builder) Size() int { return sizeOf(len(b.list), len(b.prefix), len(b.data)) }

// SharedWith is how many of the first bytes that all keys have in common key has too.
func (b *Builder) SharedWith(key []byte) int { return commonPrefix(b.prefix, key) }

// Shared is how many bytes the raw form does without because all keys have more than their first n bytes in common.
func (b *Builder) Shared(n int) int { return (len(b.prefix) - n) * len(b.list) }

// AppendLastKey appends the last key, of which there has to be one, to dst.
func (b *Builder) AppendLastKey(dst []byte) []byte {
	return append(append(dst, b.prefix...), b.lastSuffix()...)
}

// Append appends the raw form of the page to dst.
func (b *Builder) Append(dst []byte) []byte {
	return append(pageformat.AppendHead(dst, len(b.list), b.prefix), b.data...)
}

// ResidentSize is how much memory Load needs.
func (b *Builder) ResidentSize() int { return shapeOf(len(b.list), b.Size()).size }

// Load makes the resident form of the page in dst, as the function Load would from the raw form. dst must be aligned to 8
// bytes and hold ResidentSize; its Header stays.
func (b *Builder) Load(dst []byte, ks uint32) error {
	l, err := newLoader(dst, len(b.list), b.Size(), shapeOf(len(b.list), b.Size()), ks)
	if err != nil {
		return err
	}
	begin := len(b.Append(l.raw[:0])) - len(b.data)
	l.setPrefix(begin-len(b.prefix), len(b.prefix))
	for i := range b.list {
		a := &b.list[i]
		l.offsets[i], l.heads[i] = uint32(begin)+a.at, pageformat.FirstFour(b.data[a.suffix:a.value])
	}
	return nil
}

// sizeOf is the length of a raw page whose entries take raw bytes.
func sizeOf(count, prefix, raw int) int {
	return pageformat.UvarintLen(uint64(count)) + pageformat.UvarintLen(uint64(prefix)) + prefix + raw
}

// meta is the number that tells an entry's value length and flags.
func meta(kind record.Kind, expiry uint64, value int) uint64 {
	m := uint64(value) << pageformat.FlagBits
	switch kind {
	case record.Tombstone:
		m |= pageformat.FlagTombstone
	case record.Apart:
		m |= pageformat.FlagApart
	}
	if expiry != 0 {
		m |= pageformat.FlagExpiry
	}
	return m
}

// kindOf is the kind of record that meta tells of.
func kindOf(meta uint64) record.Kind {
	if meta&pageformat.FlagTombstone != 0 {
		return record.Tombstone
	}
	return record.Inline + record.Kind(meta&pageformat.FlagApart)
}

// commonPrefix is the length of what a and b both begin with.
func commonPrefix(a, b []byte) int {
	if bytes.HasPrefix(b, a) {
		return len(a)
	}
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
