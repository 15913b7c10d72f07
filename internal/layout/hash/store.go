package hash

import (
	"errors"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// finish writes the page, or a delta, and puts what became of it into its slot of b. handle is that of the old page.
func (p *pageWriter) finish(b *body, handle uint64) error {
	i := int(p.q % groupSlots)
	was := int64(p.t.count)
	p.r.open = p.r.open || p.t.open
	p.r.apart = p.r.apart || p.t.apart
	p.r.expiry = record.Sooner(p.r.expiry, p.t.expiry)
	store := p.store
	if p.beside != nil {
		store = p.storeBeside
	}
	if err := store(); err != nil {
		return err
	}
	if p.beside != nil {
		p.count = int(was) + len(p.ops) - p.spared
	}
	p.t.count = uint32(p.count)
	p.r.count += int64(p.count) - was
	b.slots[i] = p.t
	if p.beside != nil || p.count == 0 || handle == 0 && !p.r.worthKeeping(&p.t) {
		return nil
	}
	if len(p.image) == 0 {
		p.image = p.a.m.imager.merge(p.image, p.old, p.ops)
	}
	p.r.makeRoom(&p.t, handle)
	h, err := p.r.env.Cache.InsertBytes(p.image)
	switch {
	case err == nil:
		b.handles[i].Store(uint64(h))
	case !errors.Is(err, cache.ErrBusy) && !errors.Is(err, cache.ErrTooLarge) && !errors.Is(err, cache.ErrNoMemory):
		return err
	}
	return nil
}

// store writes what the slot will refer to. With a delta p.image is not made.
func (p *pageWriter) store() error {
	a := p.a
	p.image = p.image[:0]
	if p.takesDelta() && !p.whole && p.count > 0 && !a.victimPage(&p.t) {
		return p.addDelta(p.ops)
	}
	a.w.Free(p.t.base)
	for _, d := range p.t.deltas {
		a.w.Free(d)
	}
	p.t.base, p.t.deltas = segment.Pointer{}, nil
	if p.count == 0 {
		p.t = slot{}
		return nil
	}
	// The segments that a page no longer refers to are left out now and then, when all of it is written.
	p.image = a.m.imager.compact(p.image[:0], p.old, p.ops)
	var err error
	p.t.base, err = p.write(segment.KindIndex, p.image)
	return err
}

// sparingDeltas is how many deltas a page has before it is written anew while the disk has little room.
const sparingDeltas = 64

// takesDelta reports whether the changes at hand may become a delta of the page: there are few of them, and they are shorter than the page.
func (p *pageWriter) takesDelta() bool {
	a, total := p.a, p.t.deltaBytes()+deltaHead+deltaEntry*len(p.ops)+segment.HeaderSize
	if a.o.Spares(a.w) {
		return len(p.t.deltas) < sparingDeltas && total <= int(p.t.base.Length)
	}
	return len(p.t.deltas) < a.o.MaxDeltas && 2*total <= int(p.t.base.Length)
}

// addDelta writes a delta.
func (p *pageWriter) addDelta(ops []op) error {
	p.stored = appendDelta(p.stored[:0], ops)
	d, err := p.write(segment.KindIndexDelta, p.stored)
	if err != nil {
		return err
	}
	p.t.deltas = append(p.t.deltas[:len(p.t.deltas):len(p.t.deltas)], d)
	return nil
}

func (p *pageWriter) write(kind segment.Kind, raw []byte) (segment.Pointer, error) {
	return p.a.w.Append(kind, p.r.keyspace, segment.None, 0, raw)
}
