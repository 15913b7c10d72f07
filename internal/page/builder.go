package page

import (
	"bytes"
	"fmt"

	"github.com/pandodb/pando/internal/pageformat"
	"github.com/pandodb/pando/internal/record"
)

// Builder collects the entries of one page. The zero value is ready; Reset makes it so again and keeps its buffers, so that
// a warm builder allocates nothing. Not for concurrent use.
type Builder struct {
	data   []byte // each entry's key, then its value
	list   []added
	prefix int // length of what all keys begin with
	raw    int // length of the raw form without what stands before the entries
	long   int // length of the longest key
	expiry uint64
	dead   int
}

// added is where one entry lies in Builder.data.
type added struct {
	expiry uint64
	at     uint32
	key    uint32
	value  uint32
	kind   record.Kind
}

// Reset empties the builder.
func (b *Builder) Reset() { *b = Builder{data: b.data[:0], list: b.list[:0]} }

// Add appends an entry, of which it keeps a copy. Keys must be strictly increasing. An error leaves the builder as it was.
func (b *Builder) Add(key []byte, r record.Record) error {
	if len(key) > record.MaxKey {
		return fmt.Errorf("page: key of %d bytes: %w", len(key), ErrTooLarge)
	}
	if err := badRecord(r); err != nil {
		return err
	}
	prefix, raw := len(key), b.raw
	if n := len(b.list); n > 0 {
		last := b.key(n - 1)
		prefix = commonPrefix(last[:b.prefix], key)
		if !less(last[prefix:], key[prefix:]) {
			return fmt.Errorf("page: %w", ErrOrder)
		}
	}
	// A shorter common prefix makes all suffixes longer, and their lengths' encodings perhaps.
	long := max(b.long, len(key))
	if prefix != b.prefix {
		raw += (b.prefix - prefix) * len(b.list)
		if long-prefix >= 0x80 {
			for _, a := range b.list {
				raw += pageformat.UvarintLen(uint64(int(a.key)-prefix)) - pageformat.UvarintLen(uint64(int(a.key)-b.prefix))
			}
		}
	}
	meta := meta(r.Kind, r.Expiry, len(r.Value))
	raw += pageformat.UvarintLen(uint64(len(key)-prefix)) + len(key) - prefix + pageformat.UvarintLen(meta) + len(r.Value)
	if r.Expiry != 0 {
		raw += pageformat.UvarintLen(r.Expiry)
	}
	if sizeOf(len(b.list)+1, prefix, raw) > MaxRaw {
		return fmt.Errorf("page: entry %d of %d bytes: %w", len(b.list), len(key)+len(r.Value), ErrFull)
	}
	b.prefix, b.raw, b.long = prefix, raw, long
	b.list = append(b.list, added{expiry: r.Expiry, at: uint32(len(b.data)), key: uint32(len(key)), value: uint32(len(r.Value)), kind: r.Kind})
	b.data = append(append(b.data, key...), r.Value...)
	if r.Expiry != 0 && (b.expiry == 0 || r.Expiry < b.expiry) {
		b.expiry = r.Expiry
	}
	if r.Kind == record.Tombstone {
		b.dead++
	}
	return nil
}

// Count is the number of entries.
func (b *Builder) Count() int { return len(b.list) }

// Tombstones is the number of entries that are tombstones.
func (b *Builder) Tombstones() int { return b.dead }

// LeastExpiry is the moment at which the first of the entries expires, 0 if none ever does.
func (b *Builder) LeastExpiry() uint64 { return b.expiry }

// Size is the length of the raw form if the page were finished now.
func (b *Builder) Size() int { return sizeOf(len(b.list), b.prefix, b.raw) }

// SharedWith is how many of the first bytes that all keys have in common key has too.
func (b *Builder) SharedWith(key []byte) int {
	if len(b.list) == 0 {
		return 0
	}
	return commonPrefix(b.key(0)[:b.prefix], key)
}

// Shared is how many bytes the raw form does without because all keys have more than their first n bytes in common.
func (b *Builder) Shared(n int) int { return (b.prefix - n) * len(b.list) }

// FirstKey is the first key, nil if there is none; valid until the builder is reset or added to.
func (b *Builder) FirstKey() []byte {
	if len(b.list) == 0 {
		return nil
	}
	return b.key(0)
}

// LastKey is the last key, nil if there is none; valid until the builder is reset or added to.
func (b *Builder) LastKey() []byte {
	if len(b.list) == 0 {
		return nil
	}
	return b.key(len(b.list) - 1)
}

func (b *Builder) key(i int) []byte {
	a := &b.list[i]
	return b.data[a.at : a.at+a.key : a.at+a.key]
}

// Append appends the raw form of the page to dst.
func (b *Builder) Append(dst []byte) []byte {
	dst = b.appendHead(dst)
	for i := range b.list {
		dst = b.appendEntry(dst, &b.list[i])
	}
	return dst
}

func (b *Builder) appendHead(dst []byte) []byte {
	return pageformat.AppendHead(dst, len(b.list), b.FirstKey()[:b.prefix])
}

func (b *Builder) appendEntry(dst []byte, a *added) []byte {
	dst = pageformat.AppendLengths(dst, int(a.key)-b.prefix, meta(a.kind, a.expiry, int(a.value)), a.expiry)
	return append(dst, b.data[int(a.at)+b.prefix:a.at+a.key+a.value]...)
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
	raw := b.appendHead(l.raw[:0])
	l.setPrefix(len(raw)-b.prefix, b.prefix)
	for i := range b.list {
		l.offsets[i], l.heads[i] = uint32(len(raw)), pageformat.FirstFour(b.key(i)[b.prefix:])
		raw = b.appendEntry(raw, &b.list[i])
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
