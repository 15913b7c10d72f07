package hash

import (
	"errors"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// pageWriter makes a page out of an old one and the changes to it.
type pageWriter struct {
	a      *applier
	r      *root
	q      uint64
	t      slot // what becomes of it
	list   []entry
	ops    []op
	moved  []move
	again  pieces // records that are written anew
	whole  bool   // the page is written anew: a delta cannot say what changed
	beside error  // the old page cannot be read
	spared int    // changes beside it that newer ones have made needless
	stored []byte
	cached []byte

	settles bool            // of each key one record stays, and no tombstone
	seen    map[string]bool // the keys of the hash at hand whose newest record was met
}

// move is an entry whose record is being written anew.
type move struct{ entry, op int }

func (p *pageWriter) begin(a *applier, r *root, q uint64, t slot) {
	p.a, p.r, p.q, p.t = a, r, q, t
	p.list, p.ops, p.moved = p.list[:0], p.ops[:0], p.moved[:0]
	p.whole, p.beside = a.o.Rewrite, nil
	p.settles, p.spared = a.o.Rewrite && t.open, 0
	if a.o.Rewrite {
		p.t.open, p.t.apart, p.t.expiry = false, false, 0
	}
}

// visit makes page q of r, which lies in b as it lay in was. It answers false when nothing in it changes.
func (a *applier) visit(r *root, was, b *body, q uint64) (changed bool, err error) {
	i := int(q % groupSlots)
	t := &was.slots[i]
	n := a.changesOf(r.depth, q)
	keep := func() { b.slots[i] = *t; b.handles[i].Store(was.handles[i].Load()) }
	if n == 0 && (t.empty() || !a.concerns(was, q)) {
		keep()
		return false, nil
	}
	p := &a.page
	p.begin(a, r, q, *t)
	if err := a.root.entries(&a.m, was, q); err != nil {
		if a.o.Rewrite || !isUnreadable(err) || a.victimPage(t) || len(a.ranges) > 0 {
			return false, err
		}
		p.beside = err
	}
	if err := p.run(a.m.list, n); err != nil {
		return false, err
	}
	if len(p.ops) == 0 && !p.whole && !a.victimPage(t) {
		keep()
		return false, nil
	}
	a.replace(was, i)
	return true, p.finish(b, was.handles[i].Load())
}

// victimPage reports whether a blob of the page has to be written anew.
func (a *applier) victimPage(t *slot) bool {
	if a.victim(t.base) {
		return true
	}
	for i := range t.deltas {
		if a.victim(t.deltas[i]) {
			return true
		}
	}
	return false
}

// concerns reports whether something has to be done to page q though no change belongs to it.
func (a *applier) concerns(was *body, q uint64) bool {
	t := &was.slots[q%groupSlots]
	if a.o.Rewrite || len(a.ranges) > 0 || a.victimPage(t) {
		return true
	}
	if a.o.Victims == nil {
		return false
	}
	guard := a.root.env.Epoch.Enter()
	p, ok := a.root.cached(was, int(q%groupSlots))
	refers := ok && p.refers(a.o.Victims)
	guard.Exit()
	if ok {
		return refers
	}
	err := a.root.readPage(&a.m, was, q)
	return err != nil || a.m.image.refers(a.o.Victims)
}

// run merges n changes into the entries of the old page. What becomes of them is in p.list, and what a delta says of it in p.ops.
func (p *pageWriter) run(old []entry, n int) error {
	a := p.a
	first := a.next
	a.next += n
	p.prefetch(old, first, a.next)
	for j := first; j < a.next; {
		hash := a.chunk.changes[j].hash & keptBits
		for len(old) > 0 && old[0].hash < hash {
			same := alike(old)
			if err := p.stay(old[:same], same == 1); err != nil {
				return err
			}
			old = old[same:]
		}
		same := 0
		if len(old) > 0 && old[0].hash == hash {
			same = alike(old)
		}
		to := j
		for to < a.next && a.chunk.changes[to].hash&keptBits == hash {
			to++
		}
		if err := p.put(old[:same], j, to); err != nil {
			return err
		}
		old, j = old[same:], to
	}
	for len(old) > 0 {
		same := alike(old)
		if err := p.stay(old[:same], same == 1); err != nil {
			return err
		}
		old = old[same:]
	}
	return p.writeMoved()
}

// alike returns how many of the first entries have one hash.
func alike(list []entry) int {
	n := 1
	for n < len(list) && list[n].hash == list[0].hash {
		n++
	}
	return n
}

// prefetch asks the processor for the records that changes may replace.
func (p *pageWriter) prefetch(old []entry, from, to int) {
	store := p.r.env.Store
	for j := from; j < to && len(old) > 0; {
		switch hash := p.a.chunk.changes[j].hash & keptBits; {
		case old[0].hash < hash:
			old = old[1:]
		case old[0].hash > hash:
			j++
		default:
			store.PrefetchPiece(old[0].at)
			old = old[1:]
		}
	}
}

// stay deals with old entries of one hash that no change belongs to: alone tells that there is but one of this hash.
func (p *pageWriter) stay(old []entry, alone bool) error {
	a := p.a
	clear(p.seen)
	for _, e := range old {
		moves := a.o.Rewrite || a.o.Victims != nil && a.o.Victims(e.at.Segment)
		if !moves && len(a.ranges) == 0 {
			p.list = append(p.list, e)
			continue
		}
		if p.beside != nil {
			return p.beside // nothing can be taken away
		}
		if err := p.look(e, moves, alone); err != nil {
			return err
		}
	}
	return nil
}

// look reads the record of an old entry, which may be removed with a range, or has to be written anew.
func (p *pageWriter) look(e entry, moves, alone bool) error {
	a := p.a
	piece, err := a.root.env.Store.ReadPiece(e.at, a.root.keyspace, &a.s.Blob)
	var key []byte
	if err == nil {
		if key, err = parsePiece(piece, &a.s.Record); err != nil {
			err = a.root.badPiece(e.at, err)
		}
	}
	switch {
	case err != nil && (a.o.Rewrite || !isUnreadable(err)):
		return err
	case err != nil:
		if len(a.ranges) > 0 {
			return err // nobody can tell whether it is to go
		}
		a.tellDamage(err) // it stays where it lies, and keeps its segment
		p.list = append(p.list, e)
	case p.settles && p.replaced(key) || a.inRange(key) || a.s.Record.Expired(a.o.Now):
		p.removed(e, alone)
		return a.bury(&a.s.Record)
	case moves:
		p.again.addAgain(piece)
		a.w.Free(e.at.Pointer())
		p.note(&a.s.Record)
		p.list = append(p.list, e)
		p.ops = append(p.ops, op{entry: e, flags: opDrop | opAdd})
		p.whole = p.whole || !alone
		p.moved = append(p.moved, move{len(p.list) - 1, len(p.ops) - 1})
		if len(p.again.raw) >= piecesBytes {
			return p.writeMoved()
		}
	default:
		p.list = append(p.list, e)
	}
	return nil
}

// replaced reports whether the record of a key that was read last is a tombstone, or not the first of this key that comes by.
func (p *pageWriter) replaced(key []byte) bool {
	if p.seen[string(key)] {
		return true
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[string(key)] = true
	return p.a.s.Record.Kind == record.Tombstone
}

// note enters a record into what the slot says of its records.
func (p *pageWriter) note(r *record.Record) {
	p.t.expiry = sooner(p.t.expiry, r.Expiry)
	p.t.apart = p.t.apart || r.Kind == record.Apart
}

// removed takes an old entry away.
func (p *pageWriter) removed(e entry, alone bool) {
	p.a.w.Free(e.at.Pointer())
	p.ops = append(p.ops, op{entry: entry{hash: e.hash}, flags: opDrop})
	p.whole = p.whole || !alone
}

// put makes the changes from j on, before to, which are all of those of one hash; old are the entries of this hash.
func (p *pageWriter) put(old []entry, j, to int) error {
	a := p.a
	alone := to-j == 1 && len(old) <= 1
	rest := append(a.m.spare[:0], old...)
	a.m.spare = rest
	var fresh []entry
	for ; j < to; j++ {
		c := &a.chunk.changes[j]
		left, unsure, err := p.without(rest, a.chunk.key(j))
		if err != nil {
			return err
		}
		dropped := len(left) < len(rest)
		rest = left
		p.t.open = p.t.open || unsure
		e := entry{hash: c.hash & keptBits, at: c.at, apart: c.apart}
		if c.removes() {
			if !unsure {
				if dropped {
					p.ops = append(p.ops, op{entry: entry{hash: e.hash}, flags: opDrop})
					p.whole = p.whole || !alone
				}
				continue
			}
			if e.at, err = p.tombstone(a.chunk.key(j)); err != nil {
				return err
			}
		}
		fresh = append(fresh, e)
		flags := uint64(opAdd)
		if dropped {
			flags |= opDrop
			p.whole = p.whole || !alone
		}
		p.ops = append(p.ops, op{entry: e, flags: flags})
		p.t.expiry = sooner(p.t.expiry, c.expiry)
		p.t.apart = p.t.apart || c.apart
	}
	for i := len(fresh) - 1; i >= 0; i-- {
		p.list = append(p.list, fresh[i])
	}
	return p.stay(rest, false)
}

// without returns old without the entries that are those of key, whose records it frees. unsure tells that some could not be read. Of a page
// that cannot be read itself nothing is taken away: there may be other keys of the same hash, and they would go too.
func (p *pageWriter) without(old []entry, key []byte) (left []entry, unsure bool, err error) {
	a := p.a
	if p.beside != nil {
		return old, true, nil
	}
	left = old[:0]
	for _, e := range old {
		same, err := a.root.readRecord(&a.s, e.at, key)
		if err != nil && !isUnreadable(err) {
			return nil, false, err
		}
		switch {
		case err != nil:
			a.tellDamage(err)
			unsure = true
			left = append(left, e)
		case same:
			a.w.Free(e.at.Pointer())
			if err := a.bury(&a.s.Record); err != nil {
				return nil, false, err
			}
		default:
			left = append(left, e)
		}
	}
	return left, unsure, nil
}

// tombstone writes a record that says that there is no key.
func (p *pageWriter) tombstone(key []byte) (segment.Piece, error) {
	var one pieces
	n := one.add(key, &record.Record{})
	at, err := p.a.appendPieces(&one)
	at.Length = uint32(n)
	return at, err
}

// writeMoved writes the records that were read to be written anew.
func (p *pageWriter) writeMoved() error {
	if len(p.moved) == 0 {
		return nil
	}
	at, err := p.a.appendPieces(&p.again)
	if err != nil {
		return err
	}
	for _, m := range p.moved {
		e := &p.list[m.entry]
		at.Length = e.at.Length
		e.at = at
		p.ops[m.op].at = at
		at.Offset += at.Length
	}
	p.moved = p.moved[:0]
	return nil
}

// finish writes the page, or a delta, and puts what became of it into its slot of b. handle is that of the old page.
func (p *pageWriter) finish(b *body, handle uint64) error {
	a, i := p.a, int(p.q%groupSlots)
	was := p.t.count
	p.r.open = p.r.open || p.t.open
	p.r.apart = p.r.apart || p.t.apart
	p.r.expiry = sooner(p.r.expiry, p.t.expiry)
	if err := p.store(); err != nil {
		return err
	}
	p.t.count = uint32(len(p.list))
	if p.beside != nil {
		p.t.count = was + uint32(len(p.ops)-p.spared)
	}
	p.r.count += int64(p.t.count) - int64(was)
	b.slots[i] = p.t
	if p.beside != nil || len(p.list) == 0 {
		return nil
	}
	if handle == 0 && !a.root.env.Cache.Admit(p.t.name()) {
		return nil
	}
	p.cached = a.m.imager.append(p.cached[:0], p.r.depth, p.list)
	h, err := a.root.env.Cache.InsertBytes(p.cached)
	if err == nil {
		b.handles[i].Store(uint64(h))
	} else if !errors.Is(err, cache.ErrBusy) && !errors.Is(err, cache.ErrTooLarge) {
		return err
	}
	return nil
}

// store writes what the slot will refer to.
func (p *pageWriter) store() error {
	a := p.a
	if p.beside != nil {
		return p.storeBeside()
	}
	size := deltaHead + deltaEntry*len(p.ops) + segment.HeaderSize
	fits := len(p.t.deltas) < a.o.MaxDeltas && 2*(p.t.deltaBytes()+size) <= int(p.t.base.Length)
	if fits && !p.whole && !a.victimPage(&p.t) {
		return p.addDelta(p.ops)
	}
	p.free()
	if len(p.list) == 0 {
		p.t = slot{}
		return nil
	}
	p.stored = a.m.imager.append(p.stored[:0], p.r.depth, p.list)
	var err error
	p.t.base, err = p.write(segment.KindIndex, p.stored)
	return err
}

// free frees the blobs that the slot refers to.
func (p *pageWriter) free() {
	p.a.w.Free(p.t.base)
	for _, d := range p.t.deltas {
		p.a.w.Free(d)
	}
	p.t.base, p.t.deltas = segment.Pointer{}, nil
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
