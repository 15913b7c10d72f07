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

// decodeEntry reads the entry at offset at and returns the offset of the next one. prefix is the length of the page's prefix.
func decodeEntry(raw []byte, at, prefix int) (e entry, next int, err error) {
	// A suffix below 128 bytes and a value below 2,048 bytes that never expires: nearly every entry of most pages.
	if at+3 > len(raw) || raw[at] >= 0x80 {
		return decodeAny(raw, at, prefix)
	}
	suffix, meta, p := int(raw[at]), int(raw[at+1]), at+2
	if meta >= 0x80 {
		if raw[p] >= 0x80 {
			return decodeAny(raw, at, prefix)
		}
		meta = meta&0x7f | int(raw[p])<<7
		p++
	}
	value := p + suffix
	end := value + meta>>flagBits
	if meta&(flagExpiry|flagTombstone) != 0 || end > len(raw) || prefix+suffix > record.MaxKey {
		return decodeAny(raw, at, prefix)
	}
	e.suffix = raw[p:value:value]
	e.record = record.Record{Kind: record.Inline + record.Kind(meta&flagApart), Value: raw[value:end:end]}
	return e, end, nil
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
	value, end := uint64(p)+suffix, uint64(p)+suffix+meta>>flagBits
	if end > uint64(len(raw)) {
		return e, 0, damaged(at, "entry ends %d bytes after the page", end-uint64(len(raw)))
	}
	e.suffix = raw[p:value:value]
	e.record.Value = raw[value:end:end]
	return e, int(end), nil
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
	e, next, err := decodeEntry(it.raw, it.at, it.prefix)
	if err == nil && !it.first && bytes.Compare(it.entry.suffix, e.suffix) >= 0 {
		err = damaged(it.at, "key is not greater than the one before it")
	}
	if err != nil {
		it.err = err
		return false
	}
	it.entry, it.at, it.first = e, next, false
	it.left--
	it.key = append(it.key[:it.prefix], e.suffix...)
	return true
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
	for range h.count {
		e, next, err := decodeEntry(raw, at, len(h.prefix))
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
