package tree

import (
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// entry is a child on its way into a new node.
type entry struct {
	sep    []byte // lower bound of its keys
	slot   slot
	count  uint64
	deltas []delta
	handle uint64
	filter []byte
	child  *node
}

// entry takes child i out of a node, with the lower bound lo.
func (b *body) entry(i int, lo []byte) entry {
	e := entry{sep: lo, slot: b.slots[i], count: b.counts[i].Load()}
	if b.level > 0 {
		e.child = b.children[i]
		return e
	}
	e.deltas, e.handle, e.filter = b.deltasOf(i), b.handles[i].Load(), b.filterOf(i)
	return e
}

// level collects the children of the nodes of one level and makes nodes of them.
type level struct {
	a       *applier
	level   int
	entries []entry
	weight  int // of entries
	emitted int // nodes made so far
}

// A node is full when the weight of its children reaches fanout times unitWeight. Long separators weigh more, so that nodes
// stay small with long keys, but never so much that a node would have less than four children.
const unitWeight = 64

func (l *level) capacity() int { return l.a.o.Fanout * unitWeight }

func (l *level) weigh(e *entry) int {
	extra := max(0, len(e.sep)-unitWeight) / 8
	return max(unitWeight, min(unitWeight+extra, l.capacity()/4))
}

func (l *level) empty() bool   { return len(l.entries) == 0 }
func (l *level) fitsOne() bool { return len(l.entries) > 0 && l.weight <= l.capacity() }
func (l *level) small() bool   { return l.weight < l.capacity()/4 }

func (l *level) reset() {
	clear(l.entries)
	l.entries, l.weight = l.entries[:0], 0
}

// add appends a child. Two nodes' worth of children make a node, so that the level stays bounded.
func (l *level) add(e entry) error {
	l.entries = append(l.entries, e)
	l.weight += l.weigh(&e)
	if l.weight < 2*l.capacity() {
		return nil
	}
	return l.emit(l.take(l.capacity()), segment.Pointer{})
}

// take returns how many of the first entries make up the given weight, at least one.
func (l *level) take(weight int) int {
	sum := 0
	for i := range l.entries {
		sum += l.weigh(&l.entries[i])
		if sum > weight && i > 0 {
			return i
		}
	}
	return len(l.entries)
}

// flush makes nodes of all that has gathered, of even sizes.
func (l *level) flush() error {
	for nodes := (l.weight + l.capacity() - 1) / l.capacity(); nodes > 0 && len(l.entries) > 0; nodes-- {
		n := len(l.entries)
		if nodes > 1 {
			n = l.take((l.weight + nodes - 1) / nodes)
		}
		if err := l.emit(n, segment.Pointer{}); err != nil {
			return err
		}
	}
	if len(l.entries) > 0 {
		return l.flush()
	}
	return nil
}

// emit makes a node of the first n entries. inherit is the filter blob that the filter numbers in the entries refer to; a
// zero pointer means that they refer to none.
func (l *level) emit(n int, inherit segment.Pointer) error {
	b := l.assemble(l.entries[:n])
	if l.level == 0 {
		if err := l.a.writeFilters(b, inherit); err != nil {
			return err
		}
	}
	b.index()
	l.a.node = appendNode(l.a.node[:0], b)
	p, err := l.a.write(segment.KindInner, l.a.node)
	if err != nil {
		return err
	}
	up := entry{sep: l.entries[0].sep, slot: slot{ptr: p, filter: noFilter}, count: b.total()}
	for i := range b.slots {
		up.slot.expiry = record.Sooner(up.slot.expiry, b.slots[i].expiry)
		up.slot.apart = up.slot.apart || b.slots[i].apart
	}
	up.child = l.a.adopt(p, b)
	rest := copy(l.entries, l.entries[n:])
	clear(l.entries[rest:])
	l.entries = l.entries[:rest]
	l.weight = 0
	for i := range l.entries {
		l.weight += l.weigh(&l.entries[i])
	}
	l.emitted++
	return l.a.levels[l.level+1].add(up)
}

// assemble copies entries into a body.
func (l *level) assemble(entries []entry) *body {
	b := &body{level: l.level}
	b.allot(len(entries))
	keys, deltas, filters := 0, 0, 0
	for i := range entries {
		e := &entries[i]
		if i > 0 {
			keys += len(e.sep)
		}
		deltas += len(e.deltas)
		filters += len(e.filter)
	}
	b.keys = make([]byte, 0, keys)
	if l.level == 0 {
		b.attach()
		b.deltas, b.filters = make([]delta, 0, deltas), make([]byte, 0, filters)
	} else {
		b.children = make([]*node, len(entries))
	}
	for i := range entries {
		e := &entries[i]
		if i > 0 {
			b.keys = append(b.keys, e.sep...)
		}
		b.ends[i] = uint32(len(b.keys))
		b.slots[i] = e.slot
		b.counts[i].Store(e.count)
		if l.level > 0 {
			b.children[i] = e.child
			continue
		}
		b.slots[i].deltas = uint32(len(b.deltas))
		b.deltas = append(b.deltas, e.deltas...)
		b.filters = append(b.filters, e.filter...)
		b.filterEnds[i] = uint32(len(b.filters))
		b.handles[i].Store(e.handle)
	}
	return b
}

// writeFilters gives a node of the lowest level its filter blob. The one that it inherits is good enough as long as it
// misses few leaves: a filter that the blob misses is only known until the node leaves the memory.
func (a *applier) writeFilters(b *body, inherit segment.Pointer) error {
	stale := 0
	for i := range b.slots {
		if b.slots[i].filter == noFilter && len(b.filterOf(i)) > 0 {
			stale++
		}
	}
	if !inherit.IsZero() && stale*4 <= len(b.slots) {
		b.filterPtr = inherit
		return nil
	}
	if !inherit.IsZero() {
		a.free(inherit)
	}
	for i := range b.slots {
		b.slots[i].filter = noFilter
		if len(b.filterOf(i)) > 0 {
			b.slots[i].filter = uint32(i)
		}
	}
	if len(b.filters) == 0 {
		return nil
	}
	a.filter = appendFilters(a.filter[:0], b)
	var err error
	b.filterPtr, err = a.w.Append(segment.KindFilter, a.root.keyspace, segment.None, 0, a.filter)
	return err
}

// write writes a blob.
func (a *applier) write(kind segment.Kind, raw []byte) (segment.Pointer, error) {
	return a.writeWith(a.o.Codec, kind, raw)
}

// codec returns the compression of a leaf or a delta: the fast one when it is passing.
func (a *applier) codec(passing bool) segment.Codec {
	if passing && a.o.Codec == segment.Zstd {
		return segment.S2
	}
	return a.o.Codec
}

func (a *applier) writeWith(codec segment.Codec, kind segment.Kind, raw []byte) (segment.Pointer, error) {
	dictionary := a.o.Dictionary
	if codec != a.o.Codec {
		dictionary = 0
	}
	return a.w.Append(kind, a.root.keyspace, codec, dictionary, raw)
}

// adopt makes the node for a body just written. It stays in memory unless a large Apply would fill the memory with nodes.
func (a *applier) adopt(p segment.Pointer, b *body) *node {
	n := &node{ptr: p, level: b.level, maker: a.w}
	n.remember(b)
	bound := a.root.env.InnerBytes
	if b.level == 0 {
		if bound > 0 && a.memory+b.memory() > bound/2 {
			return n
		}
		a.memory += b.memory()
		a.fresh = append(a.fresh, n)
	}
	n.body.Store(b)
	return n
}
