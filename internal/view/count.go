package view

import (
	"bytes"
	"sort"
	"sync/atomic"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
)

// Span is a range of keys of one keyspace at one moment.
type Span struct {
	Keyspace uint32
	Seq, Now uint64
	Lo, Hi   []byte       // [Lo, Hi); nil is open
	Overlay  []Layer      // read in front, newest first
	Hid      *atomic.Bool // set when a record may have been left out since it has expired
}

// empty reports whether no key can lie in the span.
func (s Span) empty() bool { return s.Hi != nil && bytes.Compare(s.Lo, s.Hi) >= 0 }

// Count returns how many pairs lie in the span. What has settled costs O(log n); each key of the span that has not settled
// costs one look-up. The caller holds a reference.
func (v *View) Count(scratch *layout.Scratch, s Span) (int64, error) {
	if s.empty() {
		return 0, nil
	}
	c := v.newCounter(scratch, s)
	n, err := c.settledIn(s.Lo, s.Hi)
	if err != nil {
		return 0, err
	}
	for ok := c.first(); ok; ok = c.changes.Next() {
		d, err := c.difference()
		if err != nil {
			return 0, err
		}
		n += d
	}
	return n, nil
}

// Nth returns the n-th pair of the span, counted from 0, as copies; ok is false when it has no so many. Its cost is that of
// Count up to the pair.
func (v *View) Nth(scratch *layout.Scratch, s Span, n int64) (key []byte, r record.Record, ok bool, err error) {
	if n < 0 || s.empty() {
		return nil, r, false, nil
	}
	c := v.newCounter(scratch, s)
	from := s.Lo
	for more := c.first(); more; more = c.changes.Next() {
		change := c.changes.Change()
		between, err := c.settledIn(from, change.Key)
		if err != nil {
			return nil, r, false, err
		}
		if n < between {
			return c.settledAt(from, change.Key, n)
		}
		n -= between
		if c.visible(change.Record) {
			if n == 0 {
				r = change.Record
				r.Value = bytes.Clone(r.Value)
				return bytes.Clone(change.Key), r, true, nil
			}
			n--
		}
		from = append(bytes.Clone(change.Key), 0) // the key's successor
	}
	return c.settledAt(from, s.Hi, n)
}

func (c *counter) visible(r record.Record) bool {
	if r.Kind == record.Tombstone {
		return false
	}
	if r.Expired(c.span.Now) {
		c.span.Hid.Store(true)
		return false
	}
	return true
}

// counter counts a span: the settled pairs of it, less those that range deletes hide, corrected key by key for what the
// memtables say.
type counter struct {
	span    Span
	root    layout.Root
	scratch *layout.Scratch
	hidden  []layout.Range // sorted, without overlaps
	changes *Changes
}

func (v *View) newCounter(scratch *layout.Scratch, s Span) *counter {
	var hidden []layout.Range
	for _, l := range s.Overlay {
		hidden = appendRanges(hidden, l.Table, s.Keyspace, l.Seq)
	}
	for _, t := range v.Tables {
		hidden = appendRanges(hidden, t.Table, s.Keyspace, s.Seq)
	}
	root := v.Root(s.Keyspace)
	if root != nil && root.MayHide(s.Now) {
		s.Hid.Store(true)
	}
	return &counter{
		span: s, scratch: scratch, root: root, hidden: coalesce(hidden),
		changes: &Changes{sources: openSources(new(cursors), s.Overlay, v.Tables, s.Keyspace, s.Seq)},
	}
}

// first moves to the first change in the span.
func (c *counter) first() bool {
	c.changes.upper = c.span.Hi
	return c.changes.SeekGE(c.span.Lo)
}

// settledIn counts the settled pairs in [lo, hi) that no range delete hides.
func (c *counter) settledIn(lo, hi []byte) (int64, error) {
	if c.root == nil || (hi != nil && bytes.Compare(lo, hi) >= 0) {
		return 0, nil
	}
	gone := c.overlapping(lo, hi)
	if len(gone) > 0 && bytes.Compare(gone[0].Lo, lo) <= 0 && gone[0].Hi == nil {
		return 0, nil // all of it, which need not be counted twice
	}
	n, err := c.root.Count(lo, hi, c.span.Now)
	if err != nil {
		return 0, err
	}
	for _, r := range gone {
		from, to := clip(r, lo, hi)
		if len(from) == 0 {
			from = nil // see Ranges
		}
		hidden, err := c.root.Count(from, to, c.span.Now)
		if err != nil {
			return 0, err
		}
		n -= hidden
	}
	return n, nil
}

// overlapping returns the range deletes that have keys of [lo, hi) in them. There may be very many others.
func (c *counter) overlapping(lo, hi []byte) []layout.Range {
	from := sort.Search(len(c.hidden), func(i int) bool { return c.hidden[i].Hi == nil || bytes.Compare(c.hidden[i].Hi, lo) > 0 })
	list := c.hidden[from:]
	if hi == nil {
		return list
	}
	return list[:sort.Search(len(list), func(i int) bool { return bytes.Compare(list[i].Lo, hi) >= 0 })]
}

// clip returns the part of r that lies in [lo, hi).
func clip(r layout.Range, lo, hi []byte) (from, to []byte) {
	from, to = r.Lo, r.Hi
	if bytes.Compare(lo, from) > 0 {
		from = lo
	}
	if to == nil || (hi != nil && bytes.Compare(hi, to) < 0) {
		to = hi
	}
	return from, to
}

// difference is what the current change adds to the number of pairs: -1, 0 or 1.
func (c *counter) difference() (int64, error) {
	change := c.changes.Change()
	var d int64
	if c.visible(change.Record) {
		d = 1
	}
	before, err := c.settledHas(change.Key)
	if before {
		d--
	}
	return d, err
}

func (c *counter) settledHas(key []byte) (bool, error) {
	if c.root == nil {
		return false, nil
	}
	if gone := c.overlapping(key, nil); len(gone) > 0 && bytes.Compare(gone[0].Lo, key) <= 0 {
		return false, nil
	}
	r, ok, err := c.root.GetRead(c.scratch, record.Hash(c.span.Keyspace, key), key)
	return ok && !r.Expired(c.span.Now), err
}

// settledAt returns the n-th settled pair of [lo, hi) that no range delete hides.
func (c *counter) settledAt(lo, hi []byte, n int64) (key []byte, r record.Record, ok bool, err error) {
	if c.root == nil {
		return nil, r, false, nil
	}
	for _, h := range c.overlapping(lo, hi) {
		from, to := clip(h, lo, hi)
		before, err := c.root.Count(lo, from, c.span.Now)
		if err != nil {
			return nil, r, false, err
		}
		if n < before {
			hi = from
			break
		}
		n -= before
		if to == nil {
			return nil, r, false, nil
		}
		lo = to
	}
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil, r, false, nil
	}
	total, err := c.root.Count(lo, hi, c.span.Now)
	if err != nil || n >= total {
		return nil, r, false, err
	}
	key, r, err = c.root.Nth(lo, hi, n, c.span.Now)
	return key, r, err == nil, err
}
