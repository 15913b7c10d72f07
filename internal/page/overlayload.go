package page

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/pageformat"
)

// bound is the most that the page can have, with all changes put over it: its entries and the length of its raw form.
func (o *Overlay) bound() (count, rawLen int) {
	left := o.order[o.laid:]
	count, rawLen = o.head.count+len(left), len(o.base)+binary.MaxVarintLen32
	for _, p := range left {
		rawLen += len(o.at(p).entry)
	}
	return count, rawLen
}

// OrderedSize is how much memory LoadOrdered and LoadPart need.
func (o *Overlay) OrderedSize() int { return orderedShape(o.bound()).size }

// LoadOrdered makes the resident form of the page with all changes put over it, as the function LoadOrdered would from what Append
// appends, and checks as much, in one pass over the page. dst must be aligned to 8 bytes and hold OrderedSize; its Header stays.
func (o *Overlay) LoadOrdered(dst []byte) error {
	_, err := o.loadFrom(dst, o.head.size, o.head.count, true)
	return err
}

// From says that what lies before key is left out of the pages that LoadPart makes. It is false where key does not begin like the keys
// of the base. It comes before the first LoadPart, and key must not change before one has found an entry that is not below it.
func (o *Overlay) From(key []byte) bool {
	if !bytes.HasPrefix(key, o.head.prefix) {
		return false
	}
	o.from = key[len(o.head.prefix):]
	for o.laid < len(o.order) && bytes.Compare(o.at(o.order[o.laid]).suffix(), o.from) < 0 {
		o.laid++
	}
	return true
}

// Continue puts what LoadPart has left of the changes over base, which has the entries that follow, under the same prefix.
func (o *Overlay) Continue(base []byte) error {
	h, err := decodeHead(base)
	if err == nil && string(h.prefix) != string(o.shared) {
		err = damaged(0, "another prefix than in the entries before")
	}
	o.base, o.head = base, h
	return err
}

// LoadPart is LoadOrdered for a base that has some of the entries of a page: changes behind its last entry are left for what follows,
// unless last says that nothing does. The pages one behind the other are what LoadOrdered makes of all entries at once.
func (o *Overlay) LoadPart(dst []byte, last bool) error {
	w := walk{raw: o.base, prefix: len(o.head.prefix), at: o.head.size, left: o.head.count}
	if len(o.from) > 0 {
		if _, _, err := w.seek(pageformat.FirstFour(o.from), o.from); err != nil {
			return err
		}
	}
	left, err := o.loadFrom(dst, w.at, w.left, last)
	if err != nil {
		return err
	}
	o.laid = len(o.order) - left
	if w.left > 0 {
		o.from = nil // all that follows comes after it
	}
	return nil
}

// loadFrom makes the resident form of what the base has from offset at on, which are so many entries, and of the changes: all of them,
// or without last those up to the last entry. It returns how many are left.
func (o *Overlay) loadFrom(dst []byte, at, count int, last bool) (left int, err error) {
	bound, rawBound := o.bound()
	if rawBound > MaxRaw+binary.MaxVarintLen32 {
		return 0, fmt.Errorf("page: up to %d bytes with what is put over it: %w", rawBound, ErrFull)
	}
	l, err := newLoader(dst, bound, rawBound, orderedShape(bound, rawBound), 0)
	if err != nil {
		return 0, err
	}
	m := laying{loader: l, base: o.base, prefix: len(o.head.prefix), of: o, order: o.order[o.laid:]}
	m.raw = appendPadded(m.raw[:0], bound, pageformat.UvarintLen(uint64(bound)))
	room := len(m.raw) // for the count, which is known at the end
	m.raw = binary.AppendUvarint(m.raw, uint64(len(o.head.prefix)))
	m.raw = append(m.raw, o.head.prefix...)
	m.setPrefix(len(m.raw)-len(o.head.prefix), len(o.head.prefix))
	m.copied = at
	if err := m.entries(at, count); err != nil {
		return 0, err
	}
	if last {
		for _, p := range m.order {
			m.add(p)
		}
		m.order = nil
	}
	appendPadded(m.raw[:0], m.count, room)
	h := m.page.header()
	h.count, h.rawLen = uint32(m.count), uint32(len(m.raw))
	copy(m.page.heads(), m.heads[:m.count]) // they follow the offsets, of which there are fewer
	return len(m.order), nil
}

// appendPadded appends a number in the given number of bytes, which may be more than it takes.
func appendPadded(dst []byte, v, size int) []byte {
	for range size - 1 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// laying is the work of Overlay.LoadOrdered.
type laying struct {
	loader
	base   []byte
	copied int // base is in raw up to there
	prefix int
	of     *Overlay
	order  []place // of the changes that are not in raw yet
	count  int
}

// noHead is above all heads.
const noHead = 1 << 32

// next is the head of the change that comes next.
func (m *laying) next() uint64 {
	if len(m.order) == 0 {
		return noHead
	}
	return uint64(m.order[0].head())
}

// entries goes over the entries of the base, of which there are so many from offset at on, and the changes up to the last of them.
func (m *laying) entries(at, count int) error {
	var last []byte
	lastHead := uint32(0)
	change := m.next()
	for i := range count {
		begin, value, next := span(m.base, at, m.prefix)
		if next == 0 {
			var err error
			if begin, value, next, err = spanAny(m.base, at, m.prefix); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
		suffix := m.base[begin:value]
		head := pageformat.FirstFour(suffix)
		if head <= lastHead && i > 0 && (head < lastHead || bytes.Compare(last, suffix) >= 0) {
			return fmt.Errorf("entry %d: %w", i, damaged(at, "key is not greater than the one before it"))
		}
		replaced := false
		if uint64(head) >= change {
			replaced = m.changesTo(head, suffix, at)
			change = m.next()
		}
		if replaced {
			m.copied = next
		} else {
			m.offsets[m.count], m.heads[m.count] = uint32(len(m.raw)+at-m.copied), head
			m.count++
		}
		last, lastHead, at = suffix, head, next
	}
	if at != len(m.base) {
		return damaged(at, "%d bytes after the last entry", len(m.base)-at)
	}
	m.raw = append(m.raw, m.base[m.copied:at]...)
	return nil
}

// changesTo adds the changes up to the entry of the base at offset at, and tells whether the last of them takes its place.
func (m *laying) changesTo(head uint32, suffix []byte, at int) (same bool) {
	for len(m.order) > 0 && !same {
		p := m.order[0]
		if p.head() > head {
			break
		}
		if p.head() == head {
			order := bytes.Compare(m.of.at(p).suffix(), suffix)
			if order > 0 {
				break
			}
			same = order == 0
		}
		m.raw = append(m.raw, m.base[m.copied:at]...)
		m.copied = at
		m.add(p)
		m.order = m.order[1:]
	}
	return same
}

// add adds a change, behind what is in raw.
func (m *laying) add(p place) {
	c := m.of.at(p)
	if c.dead {
		return
	}
	m.offsets[m.count], m.heads[m.count] = uint32(len(m.raw)), p.head()
	m.count++
	m.raw = append(m.raw, c.entry...)
}
