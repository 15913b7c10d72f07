package tree

import (
	"bytes"
	"math"
	"slices"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// mergeLeaf is visitLeaf for a leaf that can be read.
func (a *applier) mergeLeaf(b *body, i int, lo, hi []byte) (changed bool, err error) {
	if err := a.ctx.Err(); err != nil {
		return false, err
	}
	a.batch.fill(&a.input, hi, batchLeaves*a.o.LeafBytes)
	if a.covered(lo, hi) {
		if err := a.dropLeaf(b, i); err != nil {
			return true, err
		}
		if len(a.batch.items) == 0 {
			return true, nil
		}
		return true, a.rewrite(source{}, lo, hi)
	}
	move, join := a.victim(b.slots[i].ptr), a.victimDelta(b, i)
	if 2*len(b.deltasOf(i)) >= a.mostDeltas(b, i) && !a.o.Sparing {
		move = move || join // it would be written before long in any case; but a segment of deltas has some of very many leaves
	}
	alone := a.leaf.b.Count() == 0 && !a.touched(lo, hi) && !a.input.below(hi) && !a.anew && !move
	count, _ := splitCount(b.counts[i].Load())
	if alone && !a.batch.hollows(count, a.root.keyspace, b.filterOf(i)) {
		if !b.slots[i].apart {
			a.batch.dropAbsent(a.root.keyspace, b.filterOf(i))
		}
		if len(a.batch.items) == 0 && !join {
			return false, a.levels[0].add(b.entry(i, lo))
		}
		if a.deltaWorth(b, i, join) {
			if done, changed, err := a.writeDelta(b, i, lo, hi, join); done || err != nil {
				return changed, err
			}
		}
	}
	if off, full := a.putsOff(b, i); alone && off {
		if done, changed, err := a.writeDelta(b, i, lo, hi, join || full); done || err != nil {
			return changed, err
		}
	}
	return true, a.rewrite(source{b: b, i: i}, lo, hi)
}

// batchLeaves bounds a batch, in leaves.
const batchLeaves = 4

// victimLeaf reports whether a blob of leaf i lies in a segment that is being emptied.
func (a *applier) victimLeaf(b *body, i int) bool {
	return a.victim(b.slots[i].ptr) || a.victimDelta(b, i)
}

// victimDelta reports whether a delta of leaf i lies in a segment that is being emptied.
func (a *applier) victimDelta(b *body, i int) bool {
	return !a.o.Victims.Empty() && slices.ContainsFunc(b.deltasOf(i), func(d delta) bool { return a.victim(d.Pointer) })
}

// rewrite merges the batch at hand, and all further changes below hi, into an old leaf, if there is one, and writes the
// outcome as one or more leaves. What is too little for a leaf waits for its right neighbour.
func (a *applier) rewrite(src source, lo, hi []byte) error {
	if src.b == nil {
		a.leaf.begin(lo, false)
		if err := a.fillLeaves(hi); err != nil {
			return err
		}
		return a.leaf.boundary()
	}
	resident := src.pin(a.root)
	defer src.unpin(a.root)
	raw, err := src.read(a, lo, hi)
	if err != nil {
		return err
	}
	a.leaf.fit(len(raw), src.b.slots[src.i].ptr)
	a.leaf.begin(lo, resident)
	if a.leaf.b.Count() == 0 {
		a.leaf.filter, a.leaf.filterAt = src.b.filterOf(src.i), src.b.slots[src.i].filter
	}
	if err := a.merge(raw, hi); err != nil {
		return err
	}
	count, _ := src.b.count(src.i)
	src.unpin(a.root)
	a.freeLeaf(src.b, src.i, resident && src.spared(len(raw), int(count)))
	return a.leaf.boundary()
}

// freeLeaf frees the blobs of an old leaf, not its values, and its page, now or when the new tree is published.
func (a *applier) freeLeaf(b *body, i int, now bool) {
	a.free(b.slots[i].ptr)
	for _, d := range b.deltasOf(i) {
		a.free(d.Pointer)
	}
	a.replacePage(b, i, now)
}

// replacePage gives up the page of an old leaf that has another copy in the new tree: once that is published, or now, where readers of the
// old tree can do without it meanwhile. Then its memory serves the pages that Apply makes, and what a checkpoint replaces is not in the
// cache twice.
func (a *applier) replacePage(b *body, i int, now bool) {
	if now {
		dropPage(a.root.env, b.handles[i].Swap(0))
	}
	if a.lowest != nil {
		a.out.leaves = append(a.out.leaves, leafOf{a.lowest, i})
	}
}

// fillLeaves adds the batch at hand and the changes below hi to the leaves being written: there is no old leaf to merge them with.
func (a *applier) fillLeaves(hi []byte) error {
	a.leaf.cut, a.leaf.fills, a.leaf.sparse = a.leaf.limit, true, false
	if _, err := a.mergeBatch(nil, false, true); err != nil {
		return err
	}
	return a.addRest(hi)
}

// addRest adds the changes below hi as they come.
func (a *applier) addRest(hi []byte) error {
	for in := &a.input; in.below(hi); in.next() {
		if in.change.Record.Kind == record.Tombstone {
			continue
		}
		if err := a.leaf.add(in.change.Key, in.change.Record); err != nil {
			return err
		}
	}
	return nil
}

// merge adds an old raw page, less what is removed from it, and the changes below hi to the leaf being written.
func (a *applier) merge(raw []byte, hi []byte) error {
	it := &a.base
	if err := it.Reset(raw); err != nil {
		return err
	}
	a.leaf.cut = a.plan(raw, hi)
	a.leaf.fills = a.leaf.cut == a.leaf.limit
	a.leaf.sparse = a.sparse(raw)
	if err := it.Reset(raw); err != nil {
		return err
	}
	inBase := it.Next()
	for {
		last := !a.input.below(hi)
		var err error
		if inBase, err = a.mergeBatch(it, inBase, last); err != nil {
			return err
		}
		if last || !inBase {
			break
		}
		a.batch.fill(&a.input, hi, batchLeaves*a.o.LeafBytes)
	}
	if err := it.Err(); err != nil {
		return err
	}
	return a.addRest(hi)
}

// sparse reports whether an old leaf is written anew for the sake of a few changes: it will be before long again, so it is not worth
// the slow compression that leaves deserve which stay.
func (a *applier) sparse(raw []byte) bool {
	n := a.batch.size()
	return !a.anew && n > 0 && n < len(raw)/2
}

// mergeBatch merges the batch at hand, and when it is the last one the rest of the old page too.
func (a *applier) mergeBatch(it *page.Iterator, inBase, last bool) (bool, error) {
	for j := 0; j < len(a.batch.items) || (inBase && last); {
		order := -1
		if !inBase {
			order = 1
		} else if j < len(a.batch.items) {
			order = bytes.Compare(it.Key(), a.batch.key(j))
		}
		var err error
		if order < 0 {
			err = a.keep(it.Key(), it.Record())
			inBase = it.Next()
		} else {
			if order == 0 {
				err = a.bury(it.Record())
				inBase = it.Next()
			}
			if r := a.batch.record(j); err == nil && r.Kind != record.Tombstone {
				err = a.leaf.add(a.batch.key(j), r)
			}
			j++
		}
		if err != nil {
			return false, err
		}
	}
	a.batch.items, a.batch.arena = a.batch.items[:0], a.batch.arena[:0]
	return inBase, nil
}

// keep adds an old record, unless a range delete removes it or it has expired.
func (a *applier) keep(key []byte, r record.Record) error {
	if r.Expired(a.o.Now) || a.removed(key) {
		return a.bury(r)
	}
	return a.leaf.add(key, r)
}

// removed reports whether a range delete removes key.
func (a *applier) removed(key []byte) bool {
	if len(a.ranges) == 0 {
		return false
	}
	a.passRanges(key)
	return inRanges(a.ranges, key)
}

func inRanges(ranges []layout.Range, key []byte) bool {
	return len(ranges) > 0 && bytes.Compare(ranges[0].Lo, key) <= 0 && (ranges[0].Hi == nil || bytes.Compare(key, ranges[0].Hi) < 0)
}

// plan returns the size at which the leaf being written is cut. Many changes, and those that come after all old records,
// fill leaves; otherwise what does not fit into one leaf is dealt out evenly, so that the leaves have room to grow.
func (a *applier) plan(raw, hi []byte) int {
	w := &a.leaf
	if a.anew || a.input.below(hi) {
		return w.limit
	}
	before := 0
	if w.b.Count() > 0 {
		before = w.b.Size()
	}
	size, behind := a.measure(raw, w.most()-before)
	size += before
	if size <= w.most() {
		return math.MaxInt
	}
	if behind {
		return w.limit
	}
	leaves := (size + w.limit - 1) / w.limit
	return (size + leaves - 1) / leaves
}

// measure returns about how large raw becomes with the batch merged into it, and whether all changes come behind it. Once that is known
// to be no more than enough it looks no further.
func (a *applier) measure(raw []byte, enough int) (size int, behind bool) {
	it, ranges := &a.base, a.ranges
	size, behind = len(raw)+a.batch.size(), true
	j := 0
	for size > enough && it.Next() {
		key, old := it.Key(), it.Record()
		same := false
		for j < len(a.batch.items) && !same {
			order := bytes.Compare(a.batch.key(j), key)
			if order > 0 {
				break
			}
			same, behind = order == 0, false
			j++
		}
		for len(ranges) > 0 && ranges[0].Hi != nil && bytes.Compare(ranges[0].Hi, key) <= 0 {
			ranges = ranges[1:]
		}
		if same || inRanges(ranges, key) {
			size -= len(key) + len(old.Value)
		}
	}
	return size, behind && len(a.batch.items) > 0
}

// leafWriter fills leaves with records that come in key order.
type leafWriter struct {
	a       *applier
	b       page.Builder
	limit   int    // the size to which leaves are filled
	before  int64  // records of the tree that is changed, about
	written int    // bytes of new leaves
	cut     int    // the size at which the leaf at hand ends
	fills   bool   // cut is limit, and follows it
	sparse  bool   // most of the leaf at hand is old
	sep     []byte // lower bound of the leaf at hand
	last    []byte // last key of the leaf before it, when sep must be found by comparing
	cutOff  bool
	apart   bool
	hot     bool // the leaf at hand takes the place of one that was in the cache
	hashes  []uint64
	// filter and filterAt are the filter of the old leaf that the leaf at hand was begun with: while the keys stay the same
	// so does the filter, and need not be written again.
	filter   []byte
	filterAt uint32
	room     bool // the cache takes pages without evicting others
	asked    int  // leaves since room was found out
}

// begin says that what comes next has the lower bound lo.
func (w *leafWriter) begin(lo []byte, resident bool) {
	if w.b.Count() == 0 {
		w.sep, w.cutOff, w.hot, w.filter = lo, false, false, nil
	}
	w.hot = w.hot || resident
}

func (w *leafWriter) add(key []byte, r record.Record) error {
	if w.b.Count() > 0 && (w.full() || w.swells(key)) {
		if err := w.emit(); err != nil {
			return err
		}
	}
	if w.b.Count() == 0 && w.cutOff {
		w.sep = bytes.Clone(key[:separate(w.last, key)])
		w.cutOff = false
	}
	if err := w.b.Add(key, r); err != nil {
		return err
	}
	w.apart = w.apart || r.Kind == record.Apart
	if !w.a.o.NoFilters {
		w.hashes = append(w.hashes, record.Hash(w.a.root.keyspace, key))
	}
	return nil
}

// boundary is called where an old leaf ended: what has gathered goes out as a leaf, unless it should share one with its right
// neighbour: because it is far too little, or because it is little and the neighbour changes anyhow.
func (w *leafWriter) boundary() error {
	a, n := w.a, w.b.Size()
	switch {
	case w.b.Count() == 0:
		return nil
	case a.anew || n < w.limit/4:
		return nil
	case n < w.limit/2 && a.next.exists && a.input.below(a.next.hi):
		return nil
	}
	return w.flush()
}

// flush writes what has gathered.
func (w *leafWriter) flush() error {
	if w.b.Count() == 0 {
		return nil
	}
	return w.emit()
}

func (w *leafWriter) emit() error {
	a := w.a
	a.page = w.b.Append(a.page[:0])
	a.w.Passing(w.sparse)
	p, err := a.writeWith(a.codec(w.sparse), segment.KindLeaf, a.page)
	if err != nil {
		return err
	}
	w.written += len(a.page)
	w.fit(len(a.page), p)
	if w.fills {
		w.cut = w.limit
	}
	e := entry{
		sep:   w.sep,
		slot:  slot{ptr: p, expiry: w.b.LeastExpiry(), filter: noFilter, apart: w.apart, whole: w.stays()},
		count: uint64(w.b.Count()),
	}
	if w.hot || w.serves() && w.hasRoom() {
		e.handle = insertBuilder(a.root.env, &w.b, a.root.keyspace)
	}
	if !a.o.NoFilters {
		w.filterTo(&e)
	}
	w.filter = nil
	w.last = w.b.AppendLastKey(w.last[:0])
	w.cutOff, w.apart = true, false
	w.hashes = w.hashes[:0]
	w.b.Reset()
	return a.levels[0].add(e)
}

// filterTo gives the leaf at hand its filter.
func (w *leafWriter) filterTo(e *entry) {
	e.filter = make([]byte, filterSize(w.b.Count()))
	for _, h := range w.hashes {
		filterAdd(e.filter, h)
	}
	if bytes.Equal(e.filter, w.filter) {
		e.filter, e.slot.filter = w.filter, w.filterAt
	}
}

// largeRecord is from which size on, on the average, records of new leaves are too few in a page for it to be worth memory before it is read.
const largeRecord = 768

// serves reports whether the leaf at hand is likely to serve many readers. To bring a page into the cache costs about the same now and
// when it is first read, most of it for memory that nobody has used yet: with small records, that saves the time where it is waited for.
// A page of a dozen large ones may never be read, and while it is not, the copy in the system's page cache has to do.
func (w *leafWriter) serves() bool { return !largeRecords(len(w.a.page), w.b.Count()) }

// largeRecords reports whether the records of a page are large on the average.
func largeRecords(size, count int) bool { return size >= largeRecord*count }

// roomEvery is how many leaves go by between two looks at the cache.
const roomEvery = 64

// hasRoom reports whether the cache can take a new leaf without evicting another page.
func (w *leafWriter) hasRoom() bool {
	if w.asked%roomEvery == 0 {
		s := w.a.root.env.Cache.Stats()
		w.room = s.Bytes < s.Limit-s.Limit/8
	}
	w.asked++
	return w.room && w.a.o.Victims.Empty()
}
