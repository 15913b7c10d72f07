package page

import (
	"bytes"

	"github.com/pandodb/pando/internal/pageformat"
	"github.com/pandodb/pando/internal/record"
)

// entry is one decoded entry of a raw page; its slices alias the page.
type entry struct {
	suffix []byte
	record record.Record
}

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
	h, ok := pageformat.ParseHead(raw)
	if !ok || h.Prefix > record.MaxKey {
		return head{}, damaged(0, "no count of entries, or no prefix")
	}
	if h.Count > uint64(len(raw)-h.Size)/pageformat.MinEntry {
		return head{}, damaged(0, "%d entries cannot fit into %d bytes", h.Count, len(raw)-h.Size)
	}
	return head{count: int(h.Count), prefix: raw[h.Size-h.Prefix : h.Size : h.Size], size: h.Size}, nil
}

// span finds the parts of the entry at offset at if it is of the common kind. Where end is 0 it is not, or damaged: decodeAny
// tells.
func span(raw []byte, at, prefix int) (suffix, value, end int) {
	return pageformat.ParseCommon(raw, at, record.MaxKey-prefix)
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
	putCommon(&e.record, raw, at, value, end)
	return end, nil
}

// putCommon puts the record of the entry at offset at, which is of the common kind, into r. span has told where its value lies.
func putCommon(r *record.Record, raw []byte, at, value, end int) {
	r.Kind = record.Inline + record.Kind(raw[at+1]&pageformat.FlagApart)
	r.Expiry = 0
	r.Value = raw[value:end:end]
}

// decodeAny is decodeEntry for entries of every kind.
func decodeAny(raw []byte, at, prefix int) (e entry, next int, err error) {
	p, ok := pageformat.ParseEntry(raw, at)
	switch {
	case !ok:
		return e, 0, damaged(at, "the entry does not end in the page")
	case p.Value-p.Suffix > record.MaxKey-prefix:
		return e, 0, damaged(at, "bad key length")
	case p.End()-p.Value > record.MaxInline:
		return e, 0, damaged(at, "bad value length")
	case p.Meta&pageformat.FlagTombstone != 0 && p.Meta != pageformat.FlagTombstone:
		return e, 0, damaged(at, "a tombstone with a value, an expiry or a reference")
	case p.Meta&pageformat.FlagExpiry != 0 && p.Expiry == 0:
		return e, 0, damaged(at, "bad expiry")
	}
	e.suffix = raw[p.Suffix:p.Value:p.Value]
	e.record = record.Record{Kind: kindOf(p.Meta), Expiry: p.Expiry, Value: raw[p.Value:p.End():p.End()]}
	return e, p.End(), nil
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
	if x, y := pageformat.FirstFour(a), pageformat.FirstFour(b); x != y {
		return x < y
	}
	return bytes.Compare(a, b) < 0
}

// Key is the current key, valid until the next move.
func (it *Iterator) Key() []byte { return it.key }

// Record is the current record; its value aliases the raw page.
func (it *Iterator) Record() record.Record { return it.entry.record }

// Err is what stopped Next before the last entry; nil if nothing did.
func (it *Iterator) Err() error { return it.err }

// Find looks key up in a raw page by reading it from its beginning, for pages that are not worth a resident form. It checks
// only what it goes over. The record's value aliases raw.
func Find(raw, key []byte) (r record.Record, ok bool, err error) {
	ok, err = FindInto(&r, raw, key)
	return r, ok, err
}

// FindInto is Find for a record that goes through many hands: it is left in r where it is found, so that none of them has to copy it.
func FindInto(r *record.Record, raw, key []byte) (bool, error) {
	h, err := decodeHead(raw)
	if err != nil || !bytes.HasPrefix(key, h.prefix) {
		return false, err
	}
	suffix, at := key[len(h.prefix):], h.size
	want := pageformat.FirstFour(suffix)
	for range h.count {
		from, value, end := span(raw, at, len(h.prefix))
		common := end != 0
		if !common {
			if from, value, end, err = spanAny(raw, at, len(h.prefix)); err != nil {
				return false, err
			}
		}
		// Most entries come before the key, and mostly four bytes tell.
		if pageformat.FirstFour(raw[from:value]) >= want {
			if c := bytes.Compare(raw[from:value], suffix); c > 0 {
				return false, nil
			} else if c == 0 && common {
				putCommon(r, raw, at, value, end)
				return true, nil
			} else if c == 0 {
				e, _, err := decodeAny(raw, at, len(h.prefix))
				*r = e.record
				return err == nil, err
			}
		}
		at = end
	}
	return false, nil
}
