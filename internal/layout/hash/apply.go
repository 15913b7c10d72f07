package hash

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// applier is one Apply. It makes one pass over the pages for each chunk of changes, in the order of their numbers, and a root of each pass;
// all but the last are seen by nobody.
type applier struct {
	ctx     context.Context
	root    *root // what the pass at hand began with
	w       *segment.Writer
	o       layout.ApplyOptions
	ranges  []layout.Range // whose keys are removed in the pass at hand
	chunk   *chunk
	ended   bool // there are no further changes
	next    int  // the first change that no page has taken
	m       reader
	s       layout.Scratch
	buf     segment.Buffer
	page    pageWriter
	out     replaced
	failed  error  // what is to be freed cannot be read: nothing of the outcome counts
	damaged bool   // env.Damaged has been told
	wrong   bool   // a slot had a wrong number of entries, so the root may have one
	renew   bool   // the stretch that is written anew has not ended
	from    uint64 // the first hash in it
	renewal int64  // bytes that were replaced in it since somebody was told
}

// Apply implements layout.Layout.
func (h *Hash) Apply(ctx context.Context, r layout.Root, ranges []layout.Range, changes layout.Changes, w *segment.Writer, o layout.ApplyOptions) (layout.Root, error) {
	hr, ok := r.(*root)
	if !ok {
		return nil, fmt.Errorf("apply to a hash table: root is a %T", r)
	}
	uncounted := hr.give(w)
	if o.MaxDeltas == 0 {
		o.MaxDeltas = layout.DefaultMaxDeltas
	}
	o.MaxDeltas = min(o.MaxDeltas, deltasMost)
	a := &applier{ctx: ctx, root: hr, w: w, o: o, chunk: h.takeChunk(), out: replaced{by: w, memory: uncounted}}
	hr.leaving.Store(w)
	err := a.beginStretch()
	if err == nil {
		err = a.run(ranges, changes)
	}
	h.keepChunk(a.chunk, a.root.env)
	if err != nil || a.root == hr {
		hr.leaving.Store(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("apply to hash table of keyspace %d: %w", hr.keyspace, err)
	}
	if a.root == hr {
		if uncounted != 0 {
			hr.replaced.Store(&a.out) // as it was
		}
		return hr, nil
	}
	a.root.replaced.Store(&a.out)
	return a.root, nil
}

func (a *applier) run(ranges []layout.Range, changes layout.Changes) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	for i := range ranges {
		if len(ranges[i].Lo) == 0 && ranges[i].Hi == nil {
			if err := a.clear(); err != nil {
				return err
			}
			ranges = nil
			break
		}
	}
	for first := true; ; first = false {
		more, err := a.fill(changes)
		if err != nil {
			return err
		}
		if !more && !(first && (len(ranges) > 0 || !a.o.Victims.Empty() || a.renew)) {
			break
		}
		a.ranges = ranges
		if err := a.pass(); err != nil {
			return err
		}
		ranges, a.o.Victims, a.renew = nil, nil, false // that was done to all there was
	}
	if a.failed != nil {
		return a.failed
	}
	return a.w.Flush()
}

// pass makes a root of the present one and the chunk.
func (a *applier) pass() error {
	depth, count, err := a.depthFor(int64(len(a.chunk.order)))
	if err != nil {
		return err
	}
	a.next, a.wrong = 0, false
	old := a.root
	r := &root{hash: old.hash, env: old.env, keyspace: old.keyspace, depth: depth, count: count, open: old.open, apart: old.apart, expiry: old.expiry}
	if depth != old.depth {
		err = a.regrow(r)
	} else {
		err = a.same(r)
	}
	if err != nil {
		return err
	}
	a.root = r
	if a.renew {
		if err := a.sumUp(); err != nil {
			return err
		}
	}
	if r.count <= 0 || a.wrong {
		if err := a.recount(); err != nil {
			return err
		}
	}
	if r.count == 0 && !r.open {
		return a.clear()
	}
	return nil
}

// depthOf returns the depth for so many records.
func (r *root) depthOf(records int64) int {
	depth := r.depth
	for depth < maxDepth && records > r.hash.most<<depth {
		depth++
	}
	for depth > 0 && records < r.hash.least<<depth {
		depth--
	}
	return depth
}

// depthFor returns the depth with so many changes, and the number of entries that there are: those of all pages are looked at before it
// changes, for a root that says too many would make pages without end. Where a page cannot be read the depth stays what it is: nobody can tell
// which entries would go where. So it does while the disk has little room, for to change it is to write the whole index.
func (a *applier) depthFor(changes int64) (depth int, count int64, err error) {
	count = a.root.count
	if depth = a.root.depthOf(count + changes); depth == a.root.depth || len(a.root.groups) == 0 {
		return depth, count, nil
	}
	if a.o.Sparing {
		return a.root.depth, count, nil
	}
	there := int64(0)
	for q := range uint64(1) << a.root.depth {
		b, err := a.root.load(&a.buf, int(q/groupSlots))
		if err == nil {
			err = a.root.entries(&a.m, b, q)
		}
		if segment.IsUnreadable(err) {
			return a.root.depth, count, nil
		}
		if err != nil {
			return 0, 0, err
		}
		there += int64(len(a.m.list))
	}
	if there != count {
		a.tellDamage(a.root.badBlob(a.root.groups[0].ptr, fmt.Errorf("%d entries, the root says %d", there, count)))
	}
	return a.root.depthOf(there + changes), there, nil
}

// recount makes the number of entries of the root at hand what its slots say. It is asked for where that would be none, for then all is
// dropped, or is known to be wrong.
func (a *applier) recount() error {
	r, count, all := a.root, int64(0), true
	for g := range r.groups {
		b, err := r.load(&a.buf, g)
		if segment.IsUnreadable(err) {
			all = false
			continue
		}
		if err != nil {
			return err
		}
		for i := range b.slots {
			count += int64(b.slots[i].count)
		}
	}
	if !all {
		count = max(count, r.count)
	} else if count != r.count {
		a.tellDamage(r.badBlob(r.groups[0].ptr, fmt.Errorf("%d entries, the root says %d", count, r.count)))
	}
	r.count = count
	return nil
}

// same makes the groups of r, whose depth is that of the old root.
func (a *applier) same(r *root) error {
	for g := range groupsOf(r.depth) {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		var old *group
		if len(a.root.groups) > 0 {
			old = a.root.groups[g]
		}
		next, err := a.group(r, old, g)
		if err != nil {
			return err
		}
		r.groups = append(r.groups, next)
	}
	return nil
}

// group makes group g of r out of the old one, which is nil where there is none yet. It returns the old one when nothing in it changes.
func (a *applier) group(r *root, old *group, g int) (*group, error) {
	first := uint64(g) * groupSlots
	slots := slotsOf(r.depth)
	anew := a.renews(r.depth, first+uint64(slots)-1)
	whole := anew || !a.o.Victims.Empty() || len(a.ranges) > 0
	if old != nil && !whole && !a.changes(r.depth, first+uint64(slots)-1) {
		return old, nil
	}
	var was *body
	if old != nil {
		var err error
		if was, err = a.oldGroup(old, g, anew); err != nil {
			return nil, err
		}
	} else {
		was = newBody(slots)
	}
	b := newBody(slots)
	changed := old == nil || a.victim(old.ptr) || anew
	for i := range b.slots {
		c, err := a.visit(r, was, b, first+uint64(i))
		if err != nil {
			return nil, err
		}
		changed = changed || c
	}
	if !changed {
		return old, nil
	}
	if old != nil {
		a.freeGroup(old)
	}
	return a.writeGroup(r, b)
}

// oldGroup reads a group, some of which may be written anew. In the place of one that is damaged come slots whose pages are lost.
func (a *applier) oldGroup(old *group, g int, anew bool) (*body, error) {
	b, err := a.loadGroup(g)
	if err == nil {
		return b, nil
	}
	if anew || a.victim(old.ptr) || !errors.Is(err, corrupt.Err) {
		return nil, err
	}
	b = newBody(slotsOf(a.root.depth))
	for i := range b.slots {
		b.slots[i] = slot{lost: true, count: 1, open: true, apart: a.root.apart, expiry: a.root.expiry}
	}
	return b, nil
}

// loadGroup returns the body of group g of the root at hand.
func (a *applier) loadGroup(g int) (b *body, err error) {
	err = corrupt.Twice(func() (err error) {
		b, err = a.root.load(&a.buf, g)
		return err
	})
	return b, err
}

// writeGroup writes a group.
func (a *applier) writeGroup(r *root, b *body) (*group, error) {
	a.page.stored = appendGroup(a.page.stored[:0], b.slots)
	p, err := a.w.Append(segment.KindInner, r.keyspace, segment.None, 0, a.page.stored)
	if err != nil {
		return nil, err
	}
	next := &group{ptr: p}
	next.body.Store(b)
	a.out.memory += b.memory()
	return next, nil
}

// freeGroup frees a group that was replaced.
func (a *applier) freeGroup(old *group) {
	a.w.Free(old.ptr)
	if b := old.body.Load(); b != nil {
		a.out.memory -= b.memory()
	}
}

// changes reports whether any of the next changes belongs to a page up to number last.
func (a *applier) changes(depth int, last uint64) bool {
	return a.next < len(a.chunk.order) && pageOf(a.chunk.order[a.next].hash, depth) <= last
}

// changesOf returns how many of the next changes belong to pages up to number last.
func (a *applier) changesOf(depth int, last uint64) int {
	list, n := a.chunk.order[a.next:], 0
	for n < len(list) && pageOf(list[n].hash, depth) <= last {
		n++
	}
	return n
}

// regrow makes the groups of r, which has another depth than the old root. All pages could be read a moment ago.
func (a *applier) regrow(r *root) error {
	var b *body
	src := source{a: a, at: -1}
	for q := range uint64(1) << r.depth {
		if q%groupSlots == 0 {
			if err := a.ctx.Err(); err != nil {
				return err
			}
			b = newBody(slotsOf(r.depth))
		}
		t, err := src.take(r.depth, q)
		if err != nil {
			return err
		}
		p := &a.page
		src.image = a.m.imager.append(src.image[:0], r.depth, q, src.list)
		p.begin(a, r, q, t, src.image)
		p.whole = true
		if err := p.run(a.changesOf(r.depth, q)); err != nil {
			return err
		}
		if err := p.finish(b, 0); err != nil {
			return err
		}
		if p.anew {
			a.renewed(r.depth, q)
		}
		if int(q%groupSlots) == len(b.slots)-1 {
			next, err := a.writeGroup(r, b)
			if err != nil {
				return err
			}
			r.groups = append(r.groups, next)
		}
	}
	for _, old := range a.root.groups {
		a.freeGroup(old)
	}
	return nil
}

// source gives the entries of old pages by the numbers of another depth.
type source struct {
	a     *applier
	at    int64 // the old page that was read last
	page  []entry
	list  []entry // of the page asked for
	image []byte
	t     slot
}

// take makes s.list the entries of page q at a depth. What it returns is a slot with what is known of them.
func (s *source) take(depth int, q uint64) (slot, error) {
	old := s.a.root
	s.list = s.list[:0]
	if len(old.groups) == 0 {
		return slot{}, nil
	}
	if depth > old.depth {
		if err := s.read(q >> (depth - old.depth)); err != nil {
			return slot{}, err
		}
		for i := range s.page {
			if pageOf(s.page[i].hash, depth) == q {
				s.list = append(s.list, s.page[i])
			}
		}
		return slot{count: uint32(len(s.list)), open: s.t.open, apart: s.t.apart, expiry: s.t.expiry}, nil
	}
	var t slot
	shift := old.depth - depth
	for from := q << shift; from < (q+1)<<shift; from++ {
		if err := s.read(from); err != nil {
			return slot{}, err
		}
		s.list = append(s.list, s.page...)
		t.open, t.apart, t.expiry = t.open || s.t.open, t.apart || s.t.apart, record.Sooner(t.expiry, s.t.expiry)
	}
	t.count = uint32(len(s.list))
	return t, nil
}

// read reads an old page, once, and frees it.
func (s *source) read(q uint64) error {
	if s.at == int64(q) {
		return nil
	}
	a := s.a
	b, err := a.root.load(&a.buf, int(q/groupSlots))
	if err != nil {
		return err
	}
	if err := a.root.entries(&a.m, b, q); err != nil {
		return err
	}
	s.at, s.page, s.t = int64(q), append(s.page[:0], a.m.list...), b.slots[q%groupSlots]
	a.freePage(b, int(q%groupSlots))
	return nil
}

// freePage frees an index page, but not the records in it.
func (a *applier) freePage(b *body, i int) {
	t := &b.slots[i]
	a.w.Free(t.base)
	for _, d := range t.deltas {
		a.w.Free(d)
	}
	a.replace(b, i)
}

// replace takes note of a page that is no longer needed in the cache.
func (a *applier) replace(b *body, i int) {
	if h := b.handles[i].Load(); h != 0 {
		a.out.handles = append(a.out.handles, h)
	}
}

func (a *applier) victim(p segment.Pointer) bool {
	return !p.IsZero() && a.o.Victims.Has(p.Segment)
}

// inRange reports whether a key is to be removed in this pass.
func (a *applier) inRange(key []byte) bool {
	for i := range a.ranges {
		if r := &a.ranges[i]; bytes.Compare(key, r.Lo) >= 0 && (r.Hi == nil || bytes.Compare(key, r.Hi) < 0) {
			return true
		}
	}
	return false
}

// tellDamage tells of damage beside which changes settle.
func (a *applier) tellDamage(err error) {
	if a.root.env.Damaged != nil && !a.damaged {
		a.root.env.Damaged(err)
	}
	a.damaged = true
}

// bury frees what an old record refers to.
func (a *applier) bury(r *record.Record) error {
	if r.Kind != record.Apart {
		return nil
	}
	if a.root.env.FreeValue == nil {
		return errors.New("no way to free a value apart")
	}
	if err := a.root.env.FreeValue(a.w, r.Value); err != nil && !a.goOn(err) {
		return err
	}
	return nil
}

// goOn keeps the first failure of the device, with which the Apply is to end, for when the rest has been tried: each place counts as damaged
// half a minute after the first attempt. Only who writes everything anew is told at once. It reports whether err is one.
func (a *applier) goOn(err error) bool {
	if a.o.Rewrite != nil || !errors.Is(err, segment.ErrUnreadable) {
		return false
	}
	if a.failed == nil {
		a.failed = err
	}
	return true
}
