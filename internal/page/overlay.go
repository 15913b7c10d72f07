package page

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/record"
)

// Overlay appends to dst the raw page base with the entries of change put over it: an entry takes the place of the one with its
// key, a tombstone removes it. change stands before its first entry. What stays of base is copied as it lies there and is not
// checked beyond what finding the places takes; Load and Iterator find what is wrong with it.
//
// It is false, and the answer without meaning, where a key of change lacks the prefix of base: then a Builder has to make the page.
func Overlay(dst, base []byte, change *Iterator) (out []byte, ok bool, err error) {
	h, err := decodeHead(base)
	if err != nil {
		return dst, false, err
	}
	start := len(dst)
	dst = binary.AppendUvarint(dst, uint64(h.count+change.Left()))
	room := len(dst) - start // for the count, which is known at the end
	dst = binary.AppendUvarint(dst, uint64(len(h.prefix)))
	dst = append(dst, h.prefix...)

	w := walk{raw: base, prefix: len(h.prefix), at: h.size, left: h.count}
	copied, count := h.size, h.count // base is copied up to there
	for change.Next() {
		key, r := change.Key(), change.Record()
		if !bytes.HasPrefix(key, h.prefix) {
			return dst[:start], false, nil
		}
		suffix := key[len(h.prefix):]
		end, same, err := w.seek(suffix)
		if err != nil {
			return dst[:start], false, err
		}
		dst = append(dst, base[copied:w.at]...)
		copied = w.at
		if same {
			copied = end
			count--
		}
		if r.Kind != record.Tombstone {
			dst = appendRaw(dst, suffix, r)
			count++
		}
	}
	if err := change.Err(); err != nil {
		return dst[:start], false, err
	}
	dst = append(dst, base[copied:]...)
	var number [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(number[:], uint64(count))
	copy(dst[start:], number[:n])
	if n < room {
		dst = append(dst[:start+n], dst[start+room:]...)
	}
	if len(dst)-start > MaxRaw {
		return dst[:start], false, fmt.Errorf("page: %d bytes with what is put over it: %w", len(dst)-start, ErrFull)
	}
	return dst, true, nil
}

// walk goes over the entries of a raw page.
type walk struct {
	raw    []byte
	prefix int
	at     int // where the next entry begins
	left   int
}

// seek moves to the first entry whose suffix is not below the given one, and tells where that entry ends and whether it has
// just this suffix.
func (w *walk) seek(suffix []byte) (end int, same bool, err error) {
	want := headOf(suffix)
	for w.left > 0 {
		begin, value, next := span(w.raw, w.at, w.prefix)
		if next == 0 {
			if begin, value, next, err = spanAny(w.raw, w.at, w.prefix); err != nil {
				return 0, false, err
			}
		}
		got := w.raw[begin:value]
		if head := headOf(got); head >= want {
			c := 1
			if head == want {
				c = bytes.Compare(got, suffix)
			}
			if c >= 0 {
				return next, c == 0, nil
			}
		}
		w.at = next
		w.left--
	}
	return w.at, false, nil
}

// appendRaw appends the raw form of an entry.
func appendRaw(dst, suffix []byte, r record.Record) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(suffix)))
	dst = binary.AppendUvarint(dst, meta(r.Kind, r.Expiry, len(r.Value)))
	if r.Expiry != 0 {
		dst = binary.AppendUvarint(dst, r.Expiry)
	}
	return append(append(dst, suffix...), r.Value...)
}
