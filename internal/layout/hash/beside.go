package hash

import (
	"cmp"
	"errors"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

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
	if err := a.w.Flush(); err != nil { // the keys of all changes will be read
		return err
	}
	keep := p.unreadable()
	if keep >= deltasMost || keep > 0 && !errors.Is(p.beside, corrupt.Err) && keep > a.o.MaxDeltas {
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

// joined returns the changes of the deltas from one on, and those at hand, as they would stand in one delta.
func (p *pageWriter) joined(from int) ([]op, error) {
	var all, out []op
	for _, d := range p.t.deltas[from:] {
		if err := p.a.root.readDelta(&p.a.m, d, p.q); err != nil {
			return nil, err
		}
		all = append(all, p.a.m.ops...)
	}
	all = append(all, p.ops...)
	slices.SortStableFunc(all, func(x, y op) int { return cmp.Compare(x.hash, y.hash) })
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].hash == all[0].hash {
			n++
		}
		var err error
		if out, err = p.newest(out, all[:n]); err != nil {
			return nil, err
		}
		all = all[n:]
	}
	return out, nil
}

// newest appends to dst what still counts of changes to one hash. What stands before the last one that takes away was freed with that. Those
// behind it only add, and of each key the newest is enough: the others are freed. That something was taken away has to be said in any case,
// since the page may be readable another day.
func (p *pageWriter) newest(dst, ops []op) ([]op, error) {
	for i := len(ops) - 1; i > 0; i-- {
		if ops[i].flags&opDrop != 0 {
			ops = ops[i:]
			break
		}
	}
	keys, from := map[string]bool{}, len(dst)
	for i := len(ops) - 1; i >= 0; i-- {
		o := ops[i]
		if o.flags&opAdd == 0 {
			dst = append(dst, o)
			continue
		}
		_, key, err := p.a.root.readEntry(&p.a.s, o.entry)
		if err != nil && !segment.IsUnreadable(err) {
			return nil, err
		}
		if err == nil && keys[string(key)] {
			p.spared++
			p.a.w.Free(o.at.Pointer())
			if err := p.a.bury(&p.a.s.Record); err != nil {
				return nil, err
			}
			if o.flags&opDrop != 0 {
				dst = append(dst, op{entry: entry{hash: o.hash}, flags: opDrop})
			}
			continue
		}
		if err == nil {
			keys[string(key)] = true
		}
		dst = append(dst, o)
	}
	slices.Reverse(dst[from:])
	return dst, nil
}
