package page

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/pageformat"
	"github.com/pandodb/pando/internal/record"
)

// Overlay puts raw pages of changes over a raw page, all at once: Reset, Put for each page of changes, the oldest first, Append.
// An entry takes the place of the one with its key, a tombstone removes it. The zero value is ready for Reset, and a warm one
// allocates nothing. It keeps what it is given until the next Reset.
type Overlay struct {
	base    []byte
	head    head
	changes []change
	order   []place // of the changes that count, by their keys
	laid    int     // those before it lie in pages that LoadPart made, or before where it began
	from    []byte  // suffix below which LoadPart leaves out the entries of base
	spare   []place
	arena   []byte // entries that had to be written anew
	shared  []byte // the prefix of the first base, which may lie where the next one is read to
}

// change is an entry that takes the place of the one with its key, or removes it.
type change struct {
	entry []byte // its raw form under the base's prefix
	key   uint32 // where the suffix begins in entry
	size  uint32 // of the suffix
	dead  bool
}

// place names a change by its number, below the head of its suffix: two are mostly put in order without a look at the changes.
type place uint64

const placeBits = 32

func (p place) head() uint32 { return uint32(p >> placeBits) }

// at is the change with this place.
func (o *Overlay) at(p place) *change { return &o.changes[uint32(p)] }

func (c *change) suffix() []byte { return c.entry[c.key : c.key+c.size] }

// compare orders changes by their keys.
func (o *Overlay) compare(p, q place) int {
	if p.head() != q.head() {
		return cmp.Compare(p.head(), q.head())
	}
	return bytes.Compare(o.at(p).suffix(), o.at(q).suffix())
}

// Reset begins anew with the page that everything is put over.
func (o *Overlay) Reset(base []byte) error {
	h, err := decodeHead(base)
	*o = Overlay{
		base: base, head: h, changes: o.changes[:0], order: o.order[:0], spare: o.spare, arena: o.arena[:0],
		shared: append(o.shared[:0], h.prefix...),
	}
	return err
}

// Put adds a page of changes, newer than those before, all of whose entries it checks. It is false, and Append then without
// meaning, where a key lacks the prefix of the base: then a Builder has to make the page.
func (o *Overlay) Put(page []byte) (ok bool, err error) {
	h, err := decodeHead(page)
	if err != nil {
		return false, err
	}
	common := commonPrefix(h.prefix, o.head.prefix)
	more, lack := h.prefix[common:], o.head.prefix[common:]
	if len(more) > 0 && len(lack) > 0 {
		return h.count == 0, nil
	}
	run, at := len(o.order), h.size
	var last []byte
	for i := range h.count {
		begin, value, next := span(page, at, len(h.prefix))
		dead := false
		if next == 0 { // as it is for every tombstone
			e, end, err := decodeAny(page, at, len(h.prefix))
			if err != nil {
				return false, err
			}
			value, next, dead = end-len(e.record.Value), end, e.record.Kind == record.Tombstone
			begin = value - len(e.suffix)
		}
		suffix := page[begin:value]
		if i > 0 && !less(last, suffix) {
			return false, damaged(at, "key is not greater than the one before it")
		}
		if !bytes.HasPrefix(suffix, lack) {
			return false, nil
		}
		c := change{entry: page[at:next], key: uint32(begin - at), size: uint32(len(suffix)), dead: dead}
		if len(more) > 0 || len(lack) > 0 {
			e, _, err := decodeAny(page, at, len(h.prefix))
			if err != nil {
				return false, err
			}
			c = o.rewrite(more, suffix[len(lack):], e.record)
		}
		o.order = append(o.order, place(pageformat.FirstFour(c.suffix()))<<placeBits|place(len(o.changes)))
		o.changes, last, at = append(o.changes, c), suffix, next
	}
	if at != len(page) {
		return false, damaged(at, "%d bytes after the last entry", len(page)-at)
	}
	o.merge(run)
	return true, nil
}

// rewrite makes the change for an entry whose suffix under the base's prefix is more and then suffix.
func (o *Overlay) rewrite(more, suffix []byte, r record.Record) change {
	start, size := len(o.arena), len(more)+len(suffix)
	o.arena = pageformat.AppendLengths(o.arena, size, meta(r.Kind, r.Expiry, len(r.Value)), r.Expiry)
	key := len(o.arena) - start
	o.arena = append(append(append(o.arena, more...), suffix...), r.Value...)
	return change{entry: o.arena[start:len(o.arena):len(o.arena)], key: uint32(key), size: uint32(size), dead: r.Kind == record.Tombstone}
}

// merge joins the places from run on, which are of newer changes, with those before. Both are in order.
func (o *Overlay) merge(run int) {
	old, fresh := o.order[:run], o.order[run:]
	if run == 0 || len(fresh) == 0 {
		return
	}
	out := o.spare[:0]
	for len(old) > 0 && len(fresh) > 0 {
		order := o.compare(old[0], fresh[0])
		if order < 0 {
			out, old = append(out, old[0]), old[1:]
			continue
		}
		out, fresh = append(out, fresh[0]), fresh[1:]
		if order == 0 {
			old = old[1:]
		}
	}
	out = append(append(out, old...), fresh...)
	o.order, o.spare = out, o.order
}

// Append appends to dst the raw page with all changes put over it. What stays of the base is copied as it lies there and is
// not checked beyond what finding the places takes; Load and Iterator find what is wrong with it.
func (o *Overlay) Append(dst []byte) ([]byte, error) {
	base, start := o.base, len(dst)
	dst = pageformat.AppendHead(dst, o.head.count+len(o.order), o.head.prefix)
	room := pageformat.UvarintLen(uint64(o.head.count + len(o.order))) // for the count, which is known at the end

	w := walk{raw: base, prefix: len(o.head.prefix), at: o.head.size, left: o.head.count}
	copied, count := o.head.size, o.head.count // base is copied up to there
	for _, p := range o.order {
		c := o.at(p)
		end, same, err := w.seek(p.head(), c.suffix())
		if err != nil {
			return dst[:start], err
		}
		dst = append(dst, base[copied:w.at]...)
		copied = w.at
		if same {
			copied = end
			count--
		}
		if !c.dead {
			dst = append(dst, c.entry...)
			count++
		}
	}
	dst = append(dst, base[copied:]...)
	var number [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(number[:], uint64(count))
	copy(dst[start:], number[:n])
	if n < room {
		dst = append(dst[:start+n], dst[start+room:]...)
	}
	if len(dst)-start > MaxRaw {
		return dst[:start], fmt.Errorf("page: %d bytes with what is put over it: %w", len(dst)-start, ErrFull)
	}
	return dst, nil
}

// walk goes over the entries of a raw page.
type walk struct {
	raw    []byte
	prefix int
	at     int // where the next entry begins
	left   int
}

// seek moves to the first entry whose suffix is not below the given one, with the head want, and tells where that entry ends and
// whether it has just this suffix.
func (w *walk) seek(want uint32, suffix []byte) (end int, same bool, err error) {
	for w.left > 0 {
		begin, value, next := span(w.raw, w.at, w.prefix)
		if next == 0 {
			if begin, value, next, err = spanAny(w.raw, w.at, w.prefix); err != nil {
				return 0, false, err
			}
		}
		got := w.raw[begin:value]
		if head := pageformat.FirstFour(got); head >= want {
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
