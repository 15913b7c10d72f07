package page

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/pageformat"
)

// bound is the most that the page can have, with all changes put over it: its entries and the length of its raw form.
func (o *Overlay) bound() (count, rawLen int) {
	count, rawLen = o.head.count+len(o.changes), len(o.base)+binary.MaxVarintLen32
	for i := range o.changes {
		rawLen += len(o.changes[i].entry)
	}
	return count, rawLen
}

// OrderedSize is how much memory LoadOrdered needs.
func (o *Overlay) OrderedSize() int { return orderedShape(o.bound()).size }

// LoadOrdered makes the resident form of the page with all changes put over it, as the function LoadOrdered would from what Append
// appends, and checks as much, in one pass over the page. dst must be aligned to 8 bytes and hold OrderedSize; its Header stays.
func (o *Overlay) LoadOrdered(dst []byte) error {
	bound, rawBound := o.bound()
	if rawBound > MaxRaw+binary.MaxVarintLen32 {
		return fmt.Errorf("page: up to %d bytes with what is put over it: %w", rawBound, ErrFull)
	}
	l, err := newLoader(dst, bound, rawBound, orderedShape(bound, rawBound), 0)
	if err != nil {
		return err
	}
	m := laying{loader: l, base: o.base, prefix: len(o.head.prefix), changes: o.changes}
	m.raw = appendPadded(m.raw[:0], bound, pageformat.UvarintLen(uint64(bound)))
	room := len(m.raw) // for the count, which is known at the end
	m.raw = binary.AppendUvarint(m.raw, uint64(len(o.head.prefix)))
	m.raw = append(m.raw, o.head.prefix...)
	m.setPrefix(len(m.raw)-len(o.head.prefix), len(o.head.prefix))
	m.copied = o.head.size
	if err := m.entries(o.head.size, o.head.count); err != nil {
		return err
	}
	appendPadded(m.raw[:0], m.count, room)
	h := m.page.header()
	h.count, h.rawLen = uint32(m.count), uint32(len(m.raw))
	copy(m.page.heads(), m.heads[:m.count]) // they follow the offsets, of which there are fewer
	return nil
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
	base    []byte
	copied  int // base is in raw up to there
	prefix  int
	changes []change // that are not in raw yet
	count   int
}

// noHead is above all heads.
const noHead = 1 << 32

// next is the head of the change that comes next.
func (m *laying) next() uint64 {
	if len(m.changes) == 0 {
		return noHead
	}
	return uint64(m.changes[0].head)
}

// entries goes over the entries of the base, of which there are so many from offset at on, and the changes.
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
	for i := range m.changes {
		m.add(&m.changes[i])
	}
	return nil
}

// changesTo adds the changes up to the entry of the base at offset at, and tells whether the last of them takes its place.
func (m *laying) changesTo(head uint32, suffix []byte, at int) (same bool) {
	for len(m.changes) > 0 && !same {
		c := &m.changes[0]
		if c.head > head {
			break
		}
		if c.head == head {
			order := bytes.Compare(c.suffix(), suffix)
			if order > 0 {
				break
			}
			same = order == 0
		}
		m.raw = append(m.raw, m.base[m.copied:at]...)
		m.copied = at
		m.add(c)
		m.changes = m.changes[1:]
	}
	return same
}

// add adds a change, behind what is in raw.
func (m *laying) add(c *change) {
	if c.dead {
		return
	}
	m.offsets[m.count], m.heads[m.count] = uint32(len(m.raw)), c.head
	m.count++
	m.raw = append(m.raw, c.entry...)
}
