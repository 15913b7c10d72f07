package hash

import (
	"cmp"
	"errors"
	"slices"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

// finish writes the page, or a delta, and puts what became of it into its slot of b. handle is that of the old page.
func (p *pageWriter) finish(b *body, handle uint64) error {
	i := int(p.q % groupSlots)
	if p.beside != nil {
		p.count = int(p.t.count) + len(p.ops)
	}
	p.r.count += int64(p.count) - int64(p.t.count)
	p.t.count = uint32(p.count)
	p.r.open = p.r.open || p.t.open
	p.r.apart = p.r.apart || p.t.apart
	p.r.expiry = sooner(p.r.expiry, p.t.expiry)
	if p.beside != nil {
		err := p.storeBeside()
		b.slots[i] = p.t
		return err
	}
	if err := p.store(); err != nil {
		return err
	}
	b.slots[i] = p.t
	if p.count == 0 || handle == 0 && !p.r.worthKeeping(&p.t) {
		return nil
	}
	if len(p.image) == 0 {
		p.image = p.a.m.imager.merge(p.image, p.old, p.ops)
	}
	h, err := p.r.env.Cache.InsertBytes(p.image)
	if err == nil {
		b.handles[i].Store(uint64(h))
	} else if !errors.Is(err, cache.ErrBusy) && !errors.Is(err, cache.ErrTooLarge) {
		return err
	}
	return nil
}

// store writes what the slot will refer to. With a delta p.image is not made.
func (p *pageWriter) store() error {
	a := p.a
	p.image = p.image[:0]
	size := deltaHead + deltaEntry*len(p.ops) + segment.HeaderSize
	fits := len(p.t.deltas) < a.o.MaxDeltas && 2*(p.t.deltaBytes()+size) <= int(p.t.base.Length)
	if fits && !p.whole && !a.victimPage(&p.t) {
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
	ptr, err := p.a.w.Append(kind, p.r.keyspace, segment.None, 0, raw)
	if err == nil {
		p.a.progress(int(ptr.Length))
	}
	return ptr, err
}

// storeBeside writes a delta for a page that cannot be read. When there are too many of them those that follow on what cannot be read become
// one: the delta then says all that the image of the readable ones does.
func (p *pageWriter) storeBeside() error {
	a := p.a
	a.tellDamage(p.beside)
	if len(p.ops) == 0 {
		return nil
	}
	if len(p.t.deltas) < max(a.o.MaxDeltas, 1) {
		return p.addDelta(p.ops)
	}
	keep := p.unreadable()
	if keep >= deltasMost || keep > a.o.MaxDeltas && !errors.Is(p.beside, corrupt.Err) {
		return p.beside
	}
	ops, err := p.joined(keep)
	if err != nil {
		return err
	}
	for _, d := range p.t.deltas[keep:] {
		a.w.Free(d)
	}
	p.t.deltas = p.t.deltas[:keep:keep]
	return p.addDelta(ops)
}

// unreadable returns how many of the deltas have to stay because the last of those cannot be read.
func (p *pageWriter) unreadable() int {
	for n := len(p.t.deltas); n > 0; n-- {
		if p.a.root.readDelta(&p.a.m, p.t.deltas[n-1], p.q) != nil {
			return n
		}
	}
	return 0
}

// joined returns the changes of the deltas from one on, and those at hand, as if they were of one delta: they only add, and of one key the
// newest is enough.
func (p *pageWriter) joined(from int) ([]op, error) {
	var all []op
	for _, d := range p.t.deltas[from:] {
		if err := p.a.root.readDelta(&p.a.m, d, p.q); err != nil {
			return nil, err
		}
		all = append(all, p.a.m.ops...)
	}
	all = append(all, p.ops...)
	slices.SortStableFunc(all, func(x, y op) int { return cmp.Compare(x.hash, y.hash) })
	keys, last := map[string]bool{}, len(all)
	for i := len(all) - 1; i >= 0; i-- {
		if i+1 < len(all) && all[i].hash != all[i+1].hash {
			clear(keys)
		}
		key, err := p.keyOf(all[i].at)
		if err == nil && keys[key] && all[i].flags == opAdd {
			p.a.w.Free(all[i].at.Pointer())
			continue
		}
		if err == nil {
			keys[key] = true
		} else if !isUnreadable(err) {
			return nil, err
		}
		last--
		all[last] = all[i]
	}
	return all[last:], nil
}

// keyOf reads the key of a record.
func (p *pageWriter) keyOf(at segment.Piece) (string, error) {
	piece, err := p.a.root.env.Store.ReadPiece(at, p.a.root.keyspace, &p.a.s.Blob)
	if err != nil {
		return "", err
	}
	key, err := parsePiece(piece, &p.a.s.Record)
	return string(key), err
}
