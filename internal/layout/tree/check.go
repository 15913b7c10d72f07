package tree

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/progress"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// checker verifies a tree from the disk, whatever is in memory.
type checker struct {
	ctx    context.Context
	r      *root
	report func(error)
	meter  *progress.Meter // counts records
	s      layout.Scratch
	it     page.Iterator

	changes page.Iterator // of a delta
}

// found is what lies under a node or in a leaf, as read.
type found struct {
	count  int64
	expiry uint64
	apart  bool
	broken bool // something could not be read: counts mean nothing
}

// Check implements layout.Layout.
func (t *Tree) Check(ctx context.Context, r layout.Root, report func(error)) error {
	tr := r.(*root)
	if tr.node == nil {
		return nil
	}
	c := &checker{ctx: ctx, r: tr, report: report, meter: progress.From(ctx)}
	f, err := c.node(tr.node.ptr, tr.node.level, nil, nil)
	if err != nil {
		return err
	}
	// A count that somebody closed by reading is exact in memory only, and equal to what is found all the same.
	c.compare(tr.node.ptr, "root", f, tr.count.Load(), tr.expiry, tr.apart)
	return nil
}

func (c *checker) damage(p segment.Pointer, format string, args ...any) {
	c.report(fmt.Errorf("keyspace %d: %w", c.r.keyspace,
		corrupt.New(segment.FilePath(p.Segment), int64(p.Offset), int64(p.Length), format, args...)))
}

// compare verifies what a slot says of what was found under it.
func (c *checker) compare(p segment.Pointer, what string, f found, count, expiry uint64, apart bool) {
	if f.broken {
		return
	}
	n, exact := splitCount(count)
	if (exact && n != f.count) || (!exact && n < f.count) {
		c.damage(p, "%s holds %d records, its slot says %d (exact: %v)", what, f.count, n, exact)
	}
	if f.expiry != 0 && (expiry == 0 || expiry > f.expiry) {
		c.damage(p, "%s holds a record that expires at %d, its slot says %d", what, f.expiry, expiry)
	}
	if f.apart && !apart {
		c.damage(p, "%s holds a value apart, its slot says that it does not", what)
	}
}

// node checks a node whose keys must lie in [lo, hi).
func (c *checker) node(p segment.Pointer, level int, lo, hi []byte) (f found, err error) {
	if err := c.ctx.Err(); err != nil {
		return f, err
	}
	raw, err := c.r.readBlob(&c.s.Blob, p, segment.KindInner)
	if err != nil {
		c.report(err)
		return found{broken: true}, nil
	}
	b, err := decodeNode(raw, level)
	if err != nil {
		c.damage(p, "node: %v", err)
		return found{broken: true}, nil
	}
	if !b.within(lo, hi) {
		c.damage(p, "%v", errOutside)
		return found{broken: true}, nil
	}
	c.filters(b)
	for i := range b.slots {
		clo, chi := b.bounds(i, lo, hi)
		var under found
		what := "leaf"
		if level == 0 {
			under, err = c.leaf(b, i, clo, chi)
		} else {
			what = "node"
			under, err = c.node(b.slots[i].ptr, level-1, clo, chi)
		}
		if err != nil {
			return f, err
		}
		c.compare(b.slots[i].ptr, what, under, b.counts[i].Load(), b.slots[i].expiry, b.slots[i].apart)
		f.count += under.count
		f.expiry = record.Sooner(f.expiry, under.expiry)
		f.apart = f.apart || under.apart
		f.broken = f.broken || under.broken
	}
	return f, nil
}

// filters reads the filters of a node of the lowest level.
func (c *checker) filters(b *body) {
	if b.filterPtr.IsZero() {
		return
	}
	raw, err := c.r.readBlob(&c.s.Blob, b.filterPtr, segment.KindFilter)
	if err != nil {
		c.report(err)
		return
	}
	ends, bits, err := decodeFilters(raw)
	if err != nil {
		c.damage(b.filterPtr, "filters: %v", err)
		return
	}
	for i := range b.slots {
		if at := b.slots[i].filter; at != noFilter && int(at) >= len(ends) {
			c.damage(b.filterPtr, "filter %d of %d", at, len(ends))
		}
	}
	b.adoptFilters(ends, slices.Clone(bits))
}

// leaf checks leaf i of b, whose keys must lie in [lo, hi).
func (c *checker) leaf(b *body, i int, lo, hi []byte) (f found, err error) {
	if err := c.ctx.Err(); err != nil {
		return f, err
	}
	p := b.slots[i].ptr
	count := b.counts[i].Load() // reading closes it
	raw, err := c.r.readLeaf(&c.s, b, i)
	b.counts[i].Store(count)
	if err == nil {
		err = c.it.Reset(raw)
	}
	if err != nil {
		c.report(err)
		return found{broken: true}, nil
	}
	c.digests(b, i)
	filter := b.filterOf(i)
	for c.it.Next() {
		key, r := c.it.Key(), c.it.Record()
		if bytes.Compare(key, lo) < 0 || (hi != nil && bytes.Compare(key, hi) >= 0) {
			c.damage(p, "key %x lies outside of the leaf's bounds", key)
		}
		if r.Kind == record.Tombstone {
			c.damage(p, "tombstone of key %x in a leaf", key)
		}
		if !filterHas(filter, record.Hash(c.r.keyspace, key)) {
			c.damage(b.filterPtr, "filter denies key %x of the leaf at segment %d, offset %d", key, p.Segment, p.Offset)
		}
		f.count++
		f.expiry = record.Sooner(f.expiry, r.Expiry)
		f.apart = f.apart || r.Kind == record.Apart
		c.value(key, r)
		c.meter.Add(1)
	}
	if err := c.it.Err(); err != nil {
		c.report(c.r.badLeaf(b, i, err))
		f.broken = true
	}
	return f, nil
}

// digests verifies what a slot says of the keys of its deltas, which could all be read.
func (c *checker) digests(b *body, i int) {
	for _, d := range b.deltasOf(i) {
		raw, err := c.r.readBlob(&c.s.Delta, d.Pointer, segment.KindDelta)
		if err == nil {
			err = c.changes.Reset(raw)
		}
		for err == nil && c.changes.Next() {
			if key := c.changes.Key(); !d.digest.has(record.Hash(c.r.keyspace, key)) {
				c.damage(d.Pointer, "the slot denies key %x of the delta", key)
			}
		}
		if err != nil {
			c.report(err)
		}
	}
}

// value checks what lies apart from its key.
func (c *checker) value(key []byte, r record.Record) {
	if r.Kind != record.Apart || c.r.env.CheckValue == nil {
		return
	}
	if err := c.r.env.CheckValue(r.Value); err != nil {
		c.report(fmt.Errorf("keyspace %d: key %x: %w", c.r.keyspace, key, err))
	}
}
