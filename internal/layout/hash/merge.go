package hash

import (
	"bytes"
	"cmp"
	"fmt"
	"sort"
	"unsafe"

	"github.com/pandodb/pando/internal/prefetch"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// pageWriter makes a page out of an old one and the changes to it: it finds out what the changes to the page's entries are, and writes them
// as a delta or merged into the page.
type pageWriter struct {
	a      *applier
	r      *root
	q      uint64
	t      slot // what becomes of it
	old    image
	ops    []op
	count  int     // entries that there will be
	before []entry // of the hash at hand
	after  []entry
	moved  []move
	marks  []bool
	again  pieces // records that are written anew
	whole  bool   // the page is written anew
	anew   bool   // and all of its records
	beside error  // the old page cannot be read
	spared int    // changes beside it that newer ones have made needless
	image  []byte
	stored []byte

	settles bool            // of each key one record stays, and no tombstone
	seen    map[string]bool // the keys of the hash at hand whose newest record was met
}

// move is an entry whose record is being written anew, the next of again: op is where it will be referred to.
type move struct {
	op     int
	length uint32
}

func (p *pageWriter) begin(a *applier, r *root, q uint64, t slot, old image) {
	p.a, p.r, p.q, p.t, p.old = a, r, q, t, old
	p.ops, p.moved, p.count = p.ops[:0], p.moved[:0], old.len()
	p.anew = a.renews(r.depth, q)
	p.whole, p.beside = p.anew, nil
	p.settles, p.spared = p.anew && t.open, 0
	if p.anew {
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
	damage := a.root.image(&a.m, was, q)
	if damage != nil && (a.renews(r.depth, q) || !segment.IsUnreadable(damage) || a.victimPage(t) || len(a.ranges) > 0) {
		return false, damage
	}
	if there := a.m.image.len(); damage == nil && there != int(t.count) {
		a.wrong = true
		a.tellDamage(a.root.badBlob(a.root.groups[q/groupSlots].ptr, fmt.Errorf("page %d has %d entries, its slot says %d", q, there, t.count)))
	}
	p := &a.page
	p.begin(a, r, q, *t, a.m.image)
	p.beside = damage
	if err := p.run(n); err != nil {
		return false, err
	}
	if len(p.ops) == 0 && !p.whole && !a.victimPage(t) {
		keep()
		return false, nil
	}
	a.replace(was, i)
	if err := p.finish(b, was.handles[i].Load()); err != nil {
		return true, err
	}
	if p.anew {
		a.renewal += int64(t.base.Length) + int64(t.deltaBytes())
		a.renewed(r.depth, q)
	}
	return true, nil
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
	if a.renews(a.root.depth, q) || len(a.ranges) > 0 || a.victimPage(t) {
		return true
	}
	if a.o.Victims.Empty() {
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

// run finds what n changes, and what else there is to do, make of the entries of the old page: p.ops.
func (p *pageWriter) run(n int) error {
	a := p.a
	list := a.chunk.order[a.next : a.next+n]
	for i := range list {
		prefetch.Near(unsafe.Pointer(&a.chunk.changes[list[i].at]), 1)
		if first, end := p.old.find(list[i].hash); first < end {
			p.r.env.Store.PrefetchPiece(p.old.entry(first).at)
		}
	}
	var err error
	switch to := a.next + n; {
	case p.anew || len(a.ranges) > 0:
		err = p.runAll(to, func(int) bool { return true })
	case p.old.refers(a.o.Victims):
		p.marks = p.marks[:0]
		for i := range p.old.names() {
			p.marks = append(p.marks, a.o.Victims.Has(p.old.name(i)))
		}
		for i := range p.old.len() {
			if p.marks[p.old.number(i)] {
				p.r.env.Store.PrefetchPiece(p.old.entry(i).at)
			}
		}
		err = p.runAll(to, func(i int) bool { return p.marks[p.old.number(i)] })
	default:
		err = p.runChanges(to)
	}
	if err != nil {
		return err
	}
	return p.writeMoved(nil)
}

// runChanges makes the changes up to one. Entries that no change belongs to stay as they are.
func (p *pageWriter) runChanges(to int) error { return p.runBelow(to, ^uint64(0)) }

// runBelow is runChanges for those of hashes below one.
func (p *pageWriter) runBelow(to int, hash uint64) error {
	for p.a.next < to && p.a.chunk.order[p.a.next].hash&keptBits < hash {
		first, end := p.old.find(p.a.chunk.order[p.a.next].hash)
		p.take(first, end)
		if err := p.put(to); err != nil {
			return err
		}
	}
	return nil
}

// runAll is runChanges for when there are entries that have to be looked at for another reason.
func (p *pageWriter) runAll(to int, looked func(i int) bool) error {
	a := p.a
	for i, n := 0, p.old.len(); i < n; {
		if !looked(i) {
			i++
			continue
		}
		hash := p.old.hash(i)
		if err := p.runBelow(to, hash); err != nil {
			return err
		}
		first, end := p.old.find(hash)
		p.take(first, end)
		var err error
		if a.next < to && a.chunk.order[a.next].hash&keptBits == hash {
			err = p.put(to)
		} else {
			err = p.stay()
		}
		if err != nil {
			return err
		}
		i = end
	}
	return p.runChanges(to)
}

// take makes the entries at hand those from first on, before end, which are all of one hash.
func (p *pageWriter) take(first, end int) {
	p.before = p.before[:0]
	for ; first < end; first++ {
		p.before = append(p.before, p.old.entry(first))
	}
	p.after = append(p.after[:0], p.before...)
}

// put makes the changes of one hash, up to one, to the entries at hand, which are those of that hash.
func (p *pageWriter) put(to int) error {
	a := p.a
	hash := a.chunk.order[a.next].hash & keptBits
	end := a.next
	for end < to && a.chunk.order[end].hash&keptBits == hash {
		end++
	}
	unsure, err := p.without(end)
	if err != nil {
		return err
	}
	p.t.open = p.t.open || unsure
	var fresh []entry // in the order in which they come; there is one but for hashes that are the same
	var one [1]entry
	fresh = one[:0]
	for ; a.next < end; a.next++ {
		c, key, expiry := a.chunk.change(a.next)
		e := entry{hash: hash, at: c.at, apart: c.flags&changeApart != 0}
		if c.removes() {
			if !unsure {
				continue
			}
			if e.at, err = p.tombstone(key); err != nil {
				return err
			}
		}
		fresh = append(fresh, e)
		p.t.expiry = record.Sooner(p.t.expiry, expiry)
		p.t.apart = p.t.apart || e.apart
	}
	if p.anew || len(a.ranges) > 0 || !a.o.Victims.Empty() {
		return p.look(hash, fresh)
	}
	p.emit(hash, fresh)
	return nil
}

// stay deals with the entries at hand when no change belongs to them.
func (p *pageWriter) stay() error { return p.look(p.before[0].hash, nil) }

// emit makes the changes that turn p.before into p.after with fresh ones in front, the last one foremost.
func (p *pageWriter) emit(hash uint64, fresh []entry) {
	p.count += len(p.after) + len(fresh) - len(p.before)
	flags := uint64(opAdd)
	if len(p.after) < len(p.before) {
		flags |= opDrop
		for i := len(p.after) - 1; i >= 0; i-- {
			p.ops = append(p.ops, op{entry: p.after[i], flags: flags})
			flags = opAdd
		}
	}
	for i := range fresh {
		p.ops = append(p.ops, op{entry: fresh[i], flags: flags})
		flags = opAdd
	}
	if flags&opDrop != 0 {
		p.ops = append(p.ops, op{entry: entry{hash: hash}, flags: opDrop})
	}
}

// look is emit after the records of the entries that are left were read where that is needed: they may be removed with a range, or have to be
// written anew.
func (p *pageWriter) look(hash uint64, fresh []entry) error {
	a := p.a
	clear(p.seen)
	kept, moves := p.after[:0], 0
	for _, e := range p.after {
		victim := p.anew || a.o.Victims.Has(e.at.Segment)
		if !victim && len(a.ranges) == 0 {
			kept = append(kept, e)
			continue
		}
		if p.beside != nil {
			return p.beside // nothing can be taken away
		}
		stays, moved, err := p.read(e, victim)
		if err != nil {
			return err
		}
		if stays {
			kept = append(kept, e)
		}
		if moved {
			kept[len(kept)-1].at.Segment = moving
			moves++
		}
		if err := p.writeMany(kept); err != nil {
			return err
		}
	}
	p.after = kept
	if moves == 0 {
		p.emit(hash, fresh)
		return nil
	}
	from := len(p.ops)
	p.count += len(p.after) + len(fresh) - len(p.before)
	for i := len(p.after) - 1; i >= 0; i-- {
		p.ops = append(p.ops, op{entry: p.after[i], flags: opAdd})
	}
	for i := range fresh {
		p.ops = append(p.ops, op{entry: fresh[i], flags: opAdd})
	}
	p.ops[from].flags |= opDrop
	// Records were read from the first entry on, and stand in the ops from the last one on.
	for i := from + len(p.after) - 1; i >= from; i-- {
		if p.ops[i].at.Segment == moving {
			p.moved = append(p.moved, move{op: i, length: p.ops[i].at.Length})
		}
	}
	return p.writeMany(nil)
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

// hidesNothing reports whether a record that has expired may go: behind the newest one of its key there may be others in an open slot, which would
// come back.
func (p *pageWriter) hidesNothing() bool { return p.settles || !p.t.open }

// moving is the segment of entries whose records are being written anew.
const moving = 1<<32 - 1

// read reads the record of an entry that may be removed with a range, or with victim has to be written anew.
func (p *pageWriter) read(e entry, victim bool) (stays, moved bool, err error) {
	a := p.a
	piece, key, err := a.root.readEntry(&a.s, e)
	if err != nil && (p.anew || !segment.IsUnreadable(err)) {
		return false, false, err
	}
	if err != nil {
		if len(a.ranges) > 0 {
			return false, false, err // nobody can tell whether it is to go
		}
		a.tellDamage(err) // it stays where it lies, and keeps its segment
		return true, false, nil
	}
	if p.settles && p.replaced(key) || a.inRange(key) || p.hidesNothing() && a.s.Record.Expired(a.o.Now) {
		a.w.Free(e.at.Pointer())
		return false, false, a.bury(&a.s.Record)
	}
	if !victim {
		return true, false, nil
	}
	p.again.addAgain(piece)
	a.renewal += int64(e.at.Length)
	a.w.Free(e.at.Pointer())
	p.t.expiry = record.Sooner(p.t.expiry, a.s.Record.Expiry)
	p.t.apart = p.t.apart || a.s.Record.Kind == record.Apart
	return true, true, nil
}

// without takes the entries of the keys of the changes up to one, all of which are of the hash at hand, out of p.after, and frees their records.
// Each record is read once, however many changes there are. unsure tells that some could not be read. Of a page that cannot be read itself
// nothing is taken away: there may be other keys of the same hash, and they would go too.
func (p *pageWriter) without(end int) (unsure bool, err error) {
	a := p.a
	if p.beside != nil {
		return true, nil
	}
	left := p.after[:0]
	for _, e := range p.after {
		_, key, err := a.root.readPiece(&a.s, e.at)
		changed := err == nil && a.changed(record.Hash(a.root.keyspace, key), key, end)
		if err == nil && !changed {
			err = a.root.sameHash(e.at, key, e.hash)
		}
		if err != nil && !segment.IsUnreadable(err) {
			return false, err
		}
		if err != nil {
			a.tellDamage(err)
			unsure = true
		}
		if !changed {
			left = append(left, e)
			continue
		}
		a.w.Free(e.at.Pointer())
		if err := a.bury(&a.s.Record); err != nil {
			return false, err
		}
	}
	p.after = left
	return unsure, nil
}

// changed reports whether one of the next changes, up to one, is of a key with a hash. Those of one hash are in the order in which they came:
// sorted by key.
func (a *applier) changed(hash uint64, key []byte, end int) bool {
	_, found := sort.Find(end-a.next, func(i int) int {
		_, other, _ := a.chunk.change(a.next + i)
		return cmp.Or(cmp.Compare(hash&sortedBits, a.chunk.order[a.next+i].hash&sortedBits), bytes.Compare(key, other))
	})
	return found
}

// tombstone writes a record that says that there is no key.
func (p *pageWriter) tombstone(key []byte) (segment.Piece, error) {
	var one pieces
	n := one.add(key, &record.Record{})
	at, err := p.a.appendPieces(&one)
	at.Length = uint32(n)
	return at, err
}

// writeMany is writeMoved when there is enough to write.
func (p *pageWriter) writeMany(kept []entry) error {
	if len(p.again.raw) < piecesBytes {
		return nil
	}
	return p.writeMoved(kept)
}

// writeMoved writes the records that were read to be written anew: those of p.moved, and then those of some entries that are not in p.ops yet.
func (p *pageWriter) writeMoved(kept []entry) error {
	if len(p.again.ends) == 0 {
		return nil
	}
	at, err := p.a.appendPieces(&p.again)
	if err != nil {
		return err
	}
	for _, m := range p.moved {
		at.Length = m.length
		p.ops[m.op].at = at
		at.Offset += at.Length
	}
	p.moved = p.moved[:0]
	for i := range kept {
		if e := &kept[i]; e.at.Segment == moving {
			at.Length = e.at.Length
			e.at = at
			at.Offset += at.Length
		}
	}
	return nil
}
