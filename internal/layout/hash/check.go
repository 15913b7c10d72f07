package hash

import (
	"bytes"
	"context"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/progress"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// checker verifies a hash table from the disk, whatever is in memory.
type checker struct {
	ctx    context.Context
	r      *root
	report func(error)
	meter  *progress.Meter // counts records
	m      reader
	s      layout.Scratch
	buf    segment.Buffer
	keys   [][]byte // of the records of one hash
	all    slot     // what the slots say of their pages, taken together; its count is not used
	count  int64    // entries of all pages, as the slots say
	broken bool     // that number means nothing: a group could not be read, or was lost
}

// Check implements layout.Layout.
func (h *Hash) Check(ctx context.Context, r layout.Root, report func(error)) error {
	c := &checker{ctx: ctx, r: r.(*root), report: report, meter: progress.From(ctx)}
	for g, group := range c.r.groups {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := c.r.readGroup(&c.buf, group.ptr)
		if err != nil {
			c.broken = true
			c.report(err)
			continue
		}
		for i := range b.slots {
			c.slot(b, group.ptr, uint64(g*groupSlots+i))
			if err := c.page(b, group.ptr, uint64(g*groupSlots+i)); err != nil {
				return err
			}
		}
	}
	if len(c.r.groups) > 0 {
		c.root(c.r.groups[0].ptr)
	}
	return nil
}

// slot adds up what slots say, whether or not their pages can be read.
func (c *checker) slot(b *body, group segment.Pointer, q uint64) {
	t := &b.slots[q%groupSlots]
	if t.empty() && t.count != 0 {
		c.damage(group, "page %d has neither page nor deltas, its slot says %d entries", q, t.count)
	}
	c.count += int64(t.count)
	c.broken = c.broken || t.lost
	c.all.open, c.all.apart = c.all.open || t.open, c.all.apart || t.apart
	c.all.expiry = record.Sooner(c.all.expiry, t.expiry)
}

// root compares what the root says with what the slots do, which is compared with their pages. There is no place of its own for what the
// catalogue has: p is that of the first group.
func (c *checker) root(p segment.Pointer) {
	r, t := c.r, &c.all
	if !c.broken && c.count != r.count {
		c.damage(p, "%d entries, the root says %d", c.count, r.count)
	}
	if t.open && !r.open {
		c.damage(p, "there may be fewer records than entries, the root says that there are not")
	}
	if t.expiry != 0 && (r.expiry == 0 || r.expiry > t.expiry) {
		c.damage(p, "a record may expire at %d, the root says %d", t.expiry, r.expiry)
	}
	if t.apart && !r.apart {
		c.damage(p, "a value may lie apart, the root says that none does")
	}
}

func (c *checker) damage(p segment.Pointer, format string, args ...any) {
	c.report(fmt.Errorf("keyspace %d: %w", c.r.keyspace,
		corrupt.New(segment.FilePath(p.Segment), int64(p.Offset), int64(p.Length), format, args...)))
}

// page checks a page and the records in it. group is where its slot lies.
func (c *checker) page(b *body, group segment.Pointer, q uint64) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	t := &b.slots[q%groupSlots]
	if t.empty() {
		return nil
	}
	if err := c.r.readPage(&c.m, b, q); err != nil {
		c.report(err)
		return nil
	}
	if n := c.m.image.len(); n != int(t.count) {
		c.damage(group, "page %d has %d entries, its slot says %d", q, n, t.count)
	}
	last := uint64(0)
	for i := range c.m.image.len() {
		e := c.m.image.entry(i)
		if e.hash != last {
			c.keys = c.keys[:0]
		}
		last = e.hash
		c.record(t, group, e)
	}
	return nil
}

// record checks what an entry refers to.
func (c *checker) record(t *slot, group segment.Pointer, e entry) {
	_, key, err := c.r.readEntry(&c.s, e)
	if err != nil {
		c.report(err)
		return
	}
	p, rec := e.at.Pointer(), &c.s.Record
	for _, k := range c.keys {
		if bytes.Equal(k, key) && !t.open {
			c.damage(p, "key %x has two records", key)
		}
	}
	c.keys = append(c.keys, bytes.Clone(key))
	if rec.Kind == record.Tombstone && !t.open {
		c.damage(p, "tombstone of key %x", key)
	}
	if rec.Expiry != 0 && (t.expiry == 0 || t.expiry > rec.Expiry) {
		c.damage(group, "a record expires at %d, its slot says %d", rec.Expiry, t.expiry)
	}
	if apart := rec.Kind == record.Apart; apart != e.apart || apart && !t.apart {
		c.damage(group, "value of key %x lies apart: %v, the index says %v, its slot %v", key, apart, e.apart, t.apart)
	}
	if rec.Kind == record.Apart && c.r.env.CheckValue != nil {
		if err := c.r.env.CheckValue(rec.Value); err != nil {
			c.report(fmt.Errorf("keyspace %d: key %x: %w", c.r.keyspace, key, err))
		}
	}
	c.meter.Add(1)
}
