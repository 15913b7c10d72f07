package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// counter counts live records in [lo, hi) at the moment now.
type counter struct {
	r      *root
	lo, hi []byte
	now    uint64
	s      layout.Scratch
	it     page.Iterator
}

// Count implements layout.Root. It reads the two leaves at the ends of the range, leaves whose count is open, and leaves in
// which something may have expired; whole subtrees are answered by their slots.
func (r *root) Count(lo, hi []byte, now uint64) (int64, error) {
	if r.node == nil || (hi != nil && bytes.Compare(lo, hi) >= 0) {
		return 0, nil
	}
	c := &counter{r: r, lo: lo, hi: hi, now: now}
	if len(lo) == 0 && hi == nil {
		if n, exact := r.Records(); exact && !r.MayHide(now) {
			return n, nil
		}
	}
	n, err := c.node(r.node, nil, nil)
	if err == nil && len(lo) == 0 && hi == nil && !r.MayHide(now) {
		r.count.Store(uint64(n))
	}
	return n, err
}

// inside reports whether all keys of [lo, hi) are counted, outside whether none is.
func (c *counter) inside(lo, hi []byte) bool {
	return bytes.Compare(c.lo, lo) <= 0 && (c.hi == nil || (hi != nil && bytes.Compare(hi, c.hi) <= 0))
}

func (c *counter) outside(lo, hi []byte) bool {
	return (hi != nil && bytes.Compare(hi, c.lo) <= 0) || (c.hi != nil && bytes.Compare(c.hi, lo) <= 0)
}

// bounds returns the bounds of child i of a node with the bounds [lo, hi).
func (b *body) bounds(i int, lo, hi []byte) (clo, chi []byte) {
	if i > 0 {
		lo = b.separator(i)
	}
	if i+1 < b.len() {
		hi = b.separator(i + 1)
	}
	return lo, hi
}

// node counts below n, whose keys lie in [lo, hi).
func (c *counter) node(n *node, lo, hi []byte) (int64, error) {
	b, err := c.r.load(&c.s, n)
	if err == nil {
		err = c.r.within(n, b, lo, hi)
	}
	if err != nil {
		return 0, err
	}
	first, last := 0, b.len()-1
	if len(c.lo) > 0 {
		first = b.find(c.lo)
	}
	if c.hi != nil {
		last = b.find(c.hi)
	}
	total := int64(0)
	for i := first; i <= last; i++ {
		clo, chi := b.bounds(i, lo, hi)
		n, err := c.child(b, i, clo, chi)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// child counts below child i of b, whose keys lie in [lo, hi).
func (c *counter) child(b *body, i int, lo, hi []byte) (int64, error) {
	if c.outside(lo, hi) {
		return 0, nil
	}
	s := &b.slots[i]
	lasting := s.expiry == 0 || s.expiry > c.now
	whole := c.inside(lo, hi) && lasting
	if n, exact := b.count(i); exact && whole {
		return n, nil
	}
	if b.level == 0 {
		return c.leaf(b, i, whole)
	}
	n, err := c.node(b.children[i], lo, hi)
	if err == nil && whole {
		b.counts[i].Store(uint64(n)) // closes what was open: nothing below has expired, and all of it was counted
	}
	return n, err
}

// leaf counts in leaf i of b.
func (c *counter) leaf(b *body, i int, whole bool) (int64, error) {
	src := source{b: b, i: i}
	resident := src.pin(c.r)
	defer src.unpin(c.r)
	if resident && whole {
		n := src.page.Len()
		b.counts[i].Store(uint64(n))
		return int64(n), nil
	}
	raw, err := c.fetch(&src)
	if err != nil {
		return 0, err
	}
	if whole {
		n, size := binary.Uvarint(raw)
		if size <= 0 || n > page.MaxRaw {
			return 0, c.r.badLeaf(b, i, fmt.Errorf("no count of entries: %w", corrupt.Err))
		}
		return int64(n), nil
	}
	total := int64(0)
	err = c.each(raw, func(key []byte, r record.Record) bool {
		total++
		return true
	})
	if err != nil {
		return 0, c.r.badLeaf(b, i, err)
	}
	return total, nil
}

// fetch returns the raw page of a leaf, and leaves it in the cache.
func (c *counter) fetch(src *source) ([]byte, error) {
	if src.pinned != 0 {
		return src.page.Raw(), nil
	}
	raw, err := c.r.readLeaf(&c.s, src.b, src.i)
	if err == nil && !src.b.own {
		c.r.rememberOrdered(src.b, src.i, raw)
	}
	return raw, err
}

// each calls fn for the records of a raw page that count, until fn is false.
func (c *counter) each(raw []byte, fn func(key []byte, r record.Record) bool) error {
	if err := c.it.Reset(raw); err != nil {
		return err
	}
	for c.it.Next() {
		key, r := c.it.Key(), c.it.Record()
		if bytes.Compare(key, c.lo) < 0 || r.Expired(c.now) {
			continue
		}
		if c.hi != nil && bytes.Compare(key, c.hi) >= 0 {
			return nil
		}
		if !fn(key, r) {
			return nil
		}
	}
	return c.it.Err()
}

// Nth implements layout.Root.
func (r *root) Nth(lo, hi []byte, n int64, now uint64) ([]byte, record.Record, error) {
	if r.node == nil || n < 0 || (hi != nil && bytes.Compare(lo, hi) >= 0) {
		return nil, record.Record{}, layout.ErrNotFound
	}
	c := &counter{r: r, lo: lo, hi: hi, now: now}
	at, clo, chi := r.node, []byte(nil), []byte(nil)
	for {
		b, err := r.load(&c.s, at)
		if err != nil {
			return nil, record.Record{}, err
		}
		i, rest, err := c.pick(b, n, clo, chi)
		if err != nil {
			return nil, record.Record{}, err
		}
		if i == b.len() {
			return nil, record.Record{}, layout.ErrNotFound
		}
		n = rest
		if b.level == 0 {
			return c.nthIn(b, i, n)
		}
		clo, chi = b.bounds(i, clo, chi)
		at = b.children[i]
	}
}

// pick finds the child of b that holds the n-th record, and which of its records that is.
func (c *counter) pick(b *body, n int64, lo, hi []byte) (i int, rest int64, err error) {
	for i = range b.slots {
		clo, chi := b.bounds(i, lo, hi)
		under, err := c.child(b, i, clo, chi)
		if err != nil {
			return 0, 0, err
		}
		if n < under {
			return i, n, nil
		}
		n -= under
	}
	return b.len(), n, nil
}

// nthIn returns a copy of the n-th record of leaf i.
func (c *counter) nthIn(b *body, i int, n int64) (key []byte, r record.Record, err error) {
	src := source{b: b, i: i}
	src.pin(c.r)
	defer src.unpin(c.r)
	raw, err := c.fetch(&src)
	if err != nil {
		return nil, r, err
	}
	found := false
	err = c.each(raw, func(k []byte, rec record.Record) bool {
		if n > 0 {
			n--
			return true
		}
		key, r, found = bytes.Clone(k), rec, true
		r.Value = bytes.Clone(rec.Value)
		return false
	})
	if err != nil {
		return nil, r, c.r.badLeaf(b, i, err)
	}
	if !found {
		return nil, r, c.r.badLeaf(b, i, fmt.Errorf("fewer records than its slot counts: %w", corrupt.Err))
	}
	return key, r, nil
}
