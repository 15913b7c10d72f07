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
	count  int64    // entries seen
	broken bool     // something could not be read: counts mean nothing
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
			c.found(err)
			continue
		}
		for i := range b.slots {
			if err := c.page(b, group.ptr, uint64(g*groupSlots+i)); err != nil {
				return err
			}
		}
	}
	if len(c.r.groups) > 0 && !c.broken && c.count != c.r.count {
		c.damage(c.r.groups[0].ptr, "%d records, the root says %d", c.count, c.r.count)
	}
	return nil
}

// found reports what could not be read.
func (c *checker) found(err error) {
	c.broken = true
	c.report(err)
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
		c.found(err)
		return nil
	}
	if err := c.m.image.check(); err != nil {
		c.found(c.r.badBlob(t.base, err))
		return nil
	}
	c.count += int64(c.m.image.len())
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
	key, err := c.r.readKey(&c.s, e.at)
	if err != nil {
		c.found(err)
		return
	}
	p, rec := e.at.Pointer(), &c.s.Record
	if hash := record.Hash(c.r.keyspace, key); hash&keptBits != e.hash {
		c.damage(p, "record of key %x, whose hash is %016x, the index says %016x", key, hash, e.hash)
	}
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
