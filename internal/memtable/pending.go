package memtable

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/pandodb/pando/internal/offheap"
)

// pending lists the keys of a keyspace in the order in which they came, from the key number first on: those that are not in runs, and
// maybe some that are. It is filled as far as keyspace.keys says.
//
// A few keys are listed as their nodes, which are copied to be sorted. Many are listed as the entries that their runs consist of, and are
// sorted where they are: fresh memory costs more than the sorting does. Such a list stays until Free, since readers may be in it.
type pending struct {
	first   uint32
	nodes   []ref
	entries []entry  // instead of nodes; their capacity is what may be listed without another list
	before  *pending // the list of entries that is full; this one goes on behind it
	common  string   // what the keys begin with; the heads are what follows that
	// exact is the number of the first key that begins otherwise: the heads are right up to there. A number beyond all if there is none.
	exact atomic.Uint32
}

const (
	firstPending = 8
	fewPending   = 2 << 10 // more keys are listed as entries
	listStep     = 4 << 10 // entries that are counted as memory in use at a time
	// Keys that come in order may go on to count, and so to change what the first ones have in common: this much of it stays in the heads.
	countingBytes = 3
)

// add makes the node of a new key known to the ordered index.
func (k *keyspace) add(t *Table, key []byte, node ref) {
	n := k.keys.Load()
	p := k.pending.Load()
	i := int(n - p.first)
	if i >= len(p.entries)+len(p.nodes) {
		p = k.morePending(t, n)
		i = int(n - p.first)
	}
	if i < len(p.entries) {
		p.entries[i] = entry{p.headOf(key, n), node}
	} else {
		p.nodes[i] = node
	}
	k.newest = node
	k.keys.Store(n + 1)
}

// headOf returns the head of the key of the given number, which is the next one.
func (p *pending) headOf(key []byte, number uint32) uint64 {
	n := len(p.common)
	if len(key) >= n+8 && (n == 0 || string(key[:n]) == p.common) { // nearly always
		return binary.BigEndian.Uint64(key[n:])
	}
	if len(key) < n || string(key[:n]) != p.common {
		p.exact.Store(min(p.exact.Load(), number))
		return 0
	}
	return headAt(key, n)
}

// morePending makes room for more keys. Nodes that are in runs already are left out.
func (k *keyspace) morePending(t *Table, n uint32) *pending {
	old := k.pending.Load()
	first := k.order.Load().keys
	var p *pending
	switch {
	case len(old.entries) < cap(old.entries):
		p = &pending{first: old.first, before: old.before, common: old.common}
		p.exact.Store(old.exact.Load())
		p.entries = old.entries[:min(len(old.entries)+listStep, cap(old.entries))]
	case old.entries != nil:
		p = &pending{first: n, before: old, common: old.common, entries: k.newList(t, n, 2*cap(old.entries))}
		p.exact.Store(old.exact.Load())
	case n-first < fewPending:
		p = &pending{first: first, nodes: make([]ref, max(firstPending, 2*(n-first)))}
		copy(p.nodes, old.nodes[first-old.first:n-old.first])
	default:
		p = &pending{first: first, entries: k.newList(t, n, int(2*(n-first)))}
		p.fill(&t.arena, old.nodes[first-old.first:n-old.first])
	}
	t.beside.Add(int64(len(p.nodes)-len(old.nodes))*4 + int64(len(p.entries))*entryBytes)
	if p.first == old.first {
		t.beside.Add(-int64(len(old.entries)) * entryBytes)
	}
	k.pending.Store(p)
	return p
}

// newList returns room for at least so many entries, and for as many as the keyspace, which has n keys, gets until the arena is full if it
// goes on like this. When there is none outside of the heap, the heap takes it: Put has no way to fail.
func (k *keyspace) newList(t *Table, n uint32, least int) []entry {
	expected := uint64(n) * uint64(t.arena.size) / uint64(max(t.used(), 1))
	count := 1 << bits.Len64(max(expected, uint64(least))-1)
	block := t.pool.takeList(count * entryBytes)
	if block == nil {
		var err error
		if block, err = offheap.Alloc(count * entryBytes); err != nil {
			return make([]entry, count)[:min(listStep, count)]
		}
		// Most tables have so few keys that a huge page would stay nearly empty.
		offheap.Split(block[:min(len(block), offheap.HugePage)])
	}
	k.blocks = append(k.blocks, block)
	return unsafe.Slice((*entry)(unsafe.Pointer(unsafe.SliceData(block))), count)[:min(listStep, count)]
}

// fill lists the first keys of a list of entries.
func (p *pending) fill(a *arena, nodes []ref) {
	entries := p.entries[:len(nodes)]
	for i, node := range nodes {
		entries[i].node = node
	}
	prefix := setHeads(a, entries, 0)
	if _, sorted := survey(entries); sorted {
		prefix = max(prefix-countingBytes, 0)
		for i := range entries {
			entries[i].head = headAt(a.key(entries[i].node), prefix)
		}
	}
	p.common = string(a.key(nodes[0])[:prefix])
	p.exact.Store(math.MaxUint32)
}

// runs sorts the keys with the numbers [from, to) into runs, the oldest first, and returns how many bytes of the heap they take. Nobody
// else may sort any of them.
func (p *pending) runs(a *arena, from, to uint32) (runs []*run, bytes int64) {
	if p.before != nil && from < p.first {
		runs, _ = p.before.runs(a, from, min(to, p.first))
		from = p.first
	}
	if from >= to {
		return runs, 0
	}
	if p.entries == nil {
		entries := make([]entry, to-from)
		for i, node := range p.nodes[from-p.first : to-p.first] {
			entries[i].node = node
		}
		return append(runs, newRun(a, entries)), int64(len(entries)) * entryBytes
	}
	entries := p.entries[from-p.first : to-p.first : to-p.first]
	var r *run
	if to <= p.exact.Load() {
		sortByHeads(a, entries, len(p.common))
		r = makeRun(entries, len(p.common))
	} else {
		r = newRun(a, entries)
	}
	r.outside = true
	return append(runs, r), 0
}
