// Package pageformat is how the bytes of a page lie on disk: where its entries begin, and where in each of them the key, the
// value and the next entry do. Package page reads and writes pages by it; packages columns and parts, which only want to
// know where things lie, do so too. The bytes are described in docs/format/page.md.
//
// It promises that what it finds lies in the bytes that it was given, whatever they are, and that what is appended by it is
// found by it. It knows no limits but those of the bytes, and no order of keys: what a page may hold is for package page to
// say. Bytes that make no sense are false; no reading here panics, allocates or changes what it reads.
package pageformat

import (
	"encoding/binary"
	"math/bits"
)

const (
	// MaxSize is the most bytes that a page may have: the offset of an entry takes 20 bits of a hash slot in memory.
	MaxSize = 1 << 20
	// MinEntry is the length of the shortest entry: an empty suffix with an empty value.
	MinEntry = 2
)

// Flags in the low bits of an entry's value length; on disk, never change them.
const (
	FlagApart     = 1 << 0 // the value is a reference to where it lies
	FlagExpiry    = 1 << 1 // a moment of expiry follows
	FlagTombstone = 1 << 2 // the key is deleted
	FlagBits      = 3      // how many flags there are
)

// Head is what stands before the entries of a page.
type Head struct {
	Count  uint64 // of entries, as it says: who makes room for so many had better see first whether they fit
	Prefix int    // length of what all keys begin with, which lies right before the entries
	Size   int    // where the first entry begins
}

// ParseHead reads the beginning of a page.
func ParseHead(raw []byte) (h Head, ok bool) {
	count, n := binary.Uvarint(raw)
	if n <= 0 {
		return Head{}, false
	}
	length, m := binary.Uvarint(raw[n:])
	if m <= 0 || length > uint64(len(raw)-n-m) {
		return Head{}, false
	}
	return Head{Count: count, Prefix: int(length), Size: n + m + int(length)}, true
}

// AppendHead appends the beginning of a page.
func AppendHead(dst []byte, count int, prefix []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(count))
	dst = binary.AppendUvarint(dst, uint64(len(prefix)))
	return append(dst, prefix...)
}

// Shortest reports whether the numbers of the head take as few bytes as they can.
func (h Head) Shortest() bool {
	return h.Size-h.Prefix == UvarintLen(h.Count)+UvarintLen(uint64(h.Prefix))
}

// Entry tells where the parts of an entry lie in the page.
type Entry struct {
	Meta   uint64 // length of the value, above FlagBits of flags
	Expiry uint64 // without FlagExpiry 0
	Suffix int    // where the key without the prefix begins
	Value  int    // where it ends, and the value begins
}

// End is where the value ends, and the next entry begins.
func (e Entry) End() int { return e.Value + int(e.Meta>>FlagBits) }

// ParseEntry reads the entry at offset at, which is at most the length of raw.
func ParseEntry(raw []byte, at int) (e Entry, ok bool) {
	suffix, n := binary.Uvarint(raw[at:])
	if n <= 0 {
		return Entry{}, false
	}
	at += n
	if e.Meta, n = binary.Uvarint(raw[at:]); n <= 0 {
		return Entry{}, false
	}
	at += n
	if e.Meta&FlagExpiry != 0 {
		if e.Expiry, n = binary.Uvarint(raw[at:]); n <= 0 {
			return Entry{}, false
		}
		at += n
	}
	left := uint64(len(raw) - at)
	if suffix > left || e.Meta>>FlagBits > left-suffix {
		return Entry{}, false
	}
	e.Suffix = at
	e.Value = at + int(suffix)
	return e, true
}

// ParseCommon reads the entry at offset at if it is of the common kind, that is nearly every entry of most pages: a suffix below
// 128 bytes and not above longest, a value below 2,048 bytes, no expiry and no tombstone. Where end is 0 it is not, or makes no
// sense: ParseEntry tells. It returns no Entry, as three numbers are faster.
func ParseCommon(raw []byte, at, longest int) (suffix, value, end int) {
	if at+3 > len(raw) {
		return 0, 0, 0
	}
	n, meta, p := int(raw[at]), int(raw[at+1]), at+2
	if meta >= 0x80 {
		n |= int(raw[p] & 0x80)
		meta = meta&0x7f | int(raw[p])<<7
		p++
	}
	end = p + n + meta>>FlagBits
	if n >= 0x80 || meta&(FlagExpiry|FlagTombstone) != 0 || end > len(raw) || n > longest {
		return 0, 0, 0
	}
	return p, p + n, end
}

// Shortest reports whether the numbers of the entry, which begins at offset at, take as few bytes as they can.
func (e Entry) Shortest(at int) bool {
	n := UvarintLen(uint64(e.Value-e.Suffix)) + UvarintLen(e.Meta)
	if e.Meta&FlagExpiry != 0 {
		n += UvarintLen(e.Expiry)
	}
	return e.Suffix-at == n
}

// AppendLengths appends what stands before the suffix of an entry. expiry is 0 without FlagExpiry in meta, and only then.
func AppendLengths(dst []byte, suffix int, meta, expiry uint64) []byte {
	switch {
	case suffix < 0x80 && meta < 0x80:
		dst = append(dst, byte(suffix), byte(meta))
	case suffix < 0x80 && meta < 0x4000:
		dst = append(dst, byte(suffix), byte(meta)|0x80, byte(meta>>7))
	default:
		dst = binary.AppendUvarint(dst, uint64(suffix))
		dst = binary.AppendUvarint(dst, meta)
	}
	if expiry != 0 {
		dst = binary.AppendUvarint(dst, expiry)
	}
	return dst
}

// FirstFour is the first four bytes of a suffix, padded with zeros, as a number that orders like them. Equal ones say nothing
// about the order of the suffixes.
func FirstFour(suffix []byte) uint32 {
	if len(suffix) >= 4 {
		return binary.BigEndian.Uint32(suffix)
	}
	var b [4]byte
	copy(b[:], suffix)
	return binary.BigEndian.Uint32(b[:])
}

// UvarintLen is how many bytes a number takes when they are as few as possible.
func UvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
