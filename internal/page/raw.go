package page

import (
	"bytes"
	"encoding/binary"

	"github.com/pandodb/pando/internal/record"
)

// entry is one decoded entry of a raw page; its slices alias the page.
type entry struct {
	suffix []byte
	record record.Record
}

// minEntry is the length of the shortest entry: an empty suffix with an empty value.
const minEntry = 2

// head is what stands before the entries of a raw page.
type head struct {
	count  int
	prefix []byte
	size   int // where the first entry begins
}

// decodeHead reads and checks the beginning of raw.
func decodeHead(raw []byte) (head, error) {
	if len(raw) > MaxRaw {
		return head{}, damaged(0, "%d bytes are more than a page may hold", len(raw))
	}
	count, n := binary.Uvarint(raw)
	if n <= 0 {
		return head{}, damaged(0, "no count of entries")
	}
	at := n
	length, n := binary.Uvarint(raw[at:])
	if n <= 0 || length > record.MaxKey || length > uint64(len(raw)-at-n) {
		return head{}, damaged(at, "no prefix")
	}
	at += n
	h := head{prefix: raw[at : at+int(length) : at+int(length)], size: at + int(length)}
	if count > uint64(len(raw)-h.size)/minEntry {
		return head{}, damaged(0, "%d entries cannot fit into %d bytes", count, len(raw)-h.size)
	}
	h.count = int(count)
	return h, nil
}

// span finds the parts of the entry at offset at if it is of the common kind, that is nearly every entry of most pages: a suffix
// below 128 bytes, a value below 2,048 bytes, no expiry and no tombstone. Where end is 0 it is not, or damaged: decodeAny tells.
// It returns no entry since that would be too large for registers.
func span(raw []byte, at, prefix int) (suffix, value, end int) {
	if at+3 > len(raw) {
		return 0, 0, 0
	}
	n, meta, p := int(raw[at]), int(raw[at+1]), at+2
	if meta >= 0x80 {
		n |= int(raw[p] & 0x80)
		meta = meta&0x7f | int(raw[p])<<7
		p++
	}
	end = p + n + meta>>flagBits
	if n >= 0x80 || meta&(flagExpiry|flagTombstone) != 0 || end > len(raw) || prefix+n > record.MaxKey {
		return 0, 0, 0
	}
	return p, p + n, end
}

// decodeEntry reads the entry at offset at into e and returns the offset of the next one. prefix is the length of the page's
// prefix. On an error e is as before.
func decodeEntry(e *entry, raw []byte, at, prefix int) (next int, err error) {
	suffix, value, end := span(raw, at, prefix)
	if end == 0 {
		any, next, err := decodeAny(raw, at, prefix)
		if err == nil {
			*e = any
		}
		return next, err
	}
	e.suffix = raw[suffix:value:value]
	e.record.Kind = record.Inline + record.Kind(raw[at+1]&flagApart)
	e.record.Expiry = 0
	e.record.Value = raw[value:end:end]
	return end, nil
}

// decodeAny is decodeEntry for entries of every kind.
func decodeAny(raw []byte, at, prefix int) (e entry, next int, err error) {
	suffix, n := binary.Uvarint(raw[at:])
	if n <= 0 || suffix > uint64(record.MaxKey-prefix) {
		return e, 0, damaged(at, "bad key length")
	}
	p := at + n
	meta, n := binary.Uvarint(raw[p:])
	if n <= 0 || meta>>flagBits > record.MaxInline {
		return e, 0, damaged(p, "bad value length")
	}
	p += n
	e.record.Kind = record.Inline + record.Kind(meta&flagApart)
	if meta&flagTombstone != 0 {
		if meta != flagTombstone {
			return e, 0, damaged(at, "a tombstone with a value, an expiry or a reference")
		}
		e.record.Kind = record.Tombstone
	}
	if meta&flagExpiry != 0 {
		if e.record.Expiry, n = binary.Uvarint(raw[p:]); n <= 0 || e.record.Expiry == 0 {
			return e, 0, damaged(p, "bad expiry")
		}
		p += n
	}
	value := p + int(suffix)
	end := value + int(meta>>flagBits)
	if end > len(raw) {
		return e, 0, damaged(at, "entry ends %d bytes after the page", end-len(raw))
	}
	e.suffix = raw[p:value:value]
	e.record.Value = raw[value:end:end]
	return e, end, nil
}

// spanAny is span for entries of every kind.
func spanAny(raw []byte, at, prefix int) (suffix, value, end int, err error) {
	e, end, err := decodeAny(raw, at, prefix)
	value = end - len(e.record.Value)
	return value - len(e.suffix), value, end, err
}

// Iterator reads a raw page in order without its resident form, as merges do, checking every byte that it goes over.
// Reset makes it ready; one Iterator may serve any number of pages, and allocates only while its longest key grows.
type Iterator struct {
	raw    []byte
	key    []byte // the prefix, then the current suffix
	prefix int
	at     int // where the next entry begins
	left   int // entries not yet read
	first  bool
	entry  entry
	err    error
}

// Reset puts the iterator before the first entry of raw. The error is Err's as well.
func (it *Iterator) Reset(raw []byte) error {
	h, err := decodeHead(raw)
	*it = Iterator{raw: raw, key: append(it.key[:0], h.prefix...), prefix: len(h.prefix), at: h.size, left: h.count, first: true, err: err}
	return err
}

// Next moves to the next entry. It is false after the last one, and where the page is damaged: Err tells which.
func (it *Iterator) Next() bool {
	if it.left == 0 || it.err != nil {
		if it.err == nil && it.at != len(it.raw) {
			it.err = damaged(it.at, "%d bytes after the last entry", len(it.raw)-it.at)
		}
		return false
	}
	last := it.entry.suffix
	next, err := decodeEntry(&it.entry, it.raw, it.at, it.prefix)
	if err == nil && !it.first && !less(last, it.entry.suffix) {
		err = damaged(it.at, "key is not greater than the one before it")
	}
	if err != nil {
		it.err = err
		return false
	}
	it.at, it.first = next, false
	it.left--
	it.key = append(it.key[:it.prefix], it.entry.suffix...)
	return true
}

// less compares suffixes, mostly by their heads.
func less(a, b []byte) bool {
	if x, y := headOf(a), headOf(b); x != y {
		return x < y
	}
	return bytes.Compare(a, b) < 0
}

// Key is the current key, valid until the next move.
func (it *Iterator) Key() []byte { return it.key }

// Record is the current record; its value aliases the raw page.
func (it *Iterator) Record() record.Record { return it.entry.record }

// Left is the number of entries that Next has not reached yet.
func (it *Iterator) Left() int { return it.left }

// Err is what stopped Next before the last entry; nil if nothing did.
func (it *Iterator) Err() error { return it.err }

// Find looks key up in a raw page by reading it from its beginning, for pages that are not worth a resident form. It checks
// only what it goes over. The record's value aliases raw.
func Find(raw, key []byte) (record.Record, bool, error) {
	h, err := decodeHead(raw)
	if err != nil || !bytes.HasPrefix(key, h.prefix) {
		return record.Record{}, false, err
	}
	suffix, at := key[len(h.prefix):], h.size
	var e entry
	for range h.count {
		next, err := decodeEntry(&e, raw, at, len(h.prefix))
		if err != nil {
			return record.Record{}, false, err
		}
		if c := bytes.Compare(e.suffix, suffix); c >= 0 {
			return e.record, c == 0, nil
		}
		at = next
	}
	return record.Record{}, false, nil
}
