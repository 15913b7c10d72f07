package memtable

import (
	"slices"
	"unsafe"

	"github.com/pandodb/pando/internal/offheap"
)

// order is the ordered index of a keyspace: immutable runs, the oldest and largest first, of the first keys keys that
// came. No key is in two runs.
type order struct {
	keys uint32
	runs []*run
}

const (
	// A run is merged with the one after it unless it is this many times as large. So there are at most
	// log4(keys/smallRun)+1 runs, and a key is merged O(log keys) times.
	runRatio = 4
	// Runs which have no more keys than this together are always merged, so that the rule above does not leave many tiny
	// ones.
	smallRun = 256
	// A run that is sorted from the keys has memory outside of the heap from this many keys on: in huge pages, which cost a quarter
	// of what as many small ones do when they are first touched, and without a collection of garbage that so much memory would bring
	// about. It stays until Free, since readers may be in it; no key is sorted into more than one such run.
	largeRun = offheap.HugePage / 2 / entryBytes
)

// ordered brings the ordered index of a keyspace up to all keys published before the call, and returns it.
func (t *Table) ordered(k *keyspace) *order {
	o := k.order.Load()
	if o.keys == k.keys.Load() {
		return o
	}
	k.ordering.Lock()
	defer k.ordering.Unlock()
	o = k.order.Load()
	n := k.keys.Load()
	if o.keys == n {
		return o
	}
	p := k.pending.Load()
	entries, outside := k.room(int(n - o.keys))
	newest := newRun(&t.arena, p.nodes[o.keys-p.first:n-p.first], entries)
	newest.outside = outside
	runs := slices.Clone(o.runs)
	for len(runs) > 0 {
		last := runs[len(runs)-1]
		x, y := len(last.entries), len(newest.entries)
		if x >= runRatio*y && x+y > smallRun {
			break
		}
		newest = t.merge(last, newest)
		runs = runs[:len(runs)-1]
	}
	return t.publishOrder(k, &order{keys: n, runs: append(runs, newest)})
}

// room returns memory for n entries; k.ordering is held. When there is none outside of the heap, the heap takes it.
func (k *keyspace) room(n int) (entries []entry, outside bool) {
	size := n * entryBytes
	if n >= largeRun {
		if size%offheap.HugePage >= offheap.HugePage/2 {
			size += offheap.HugePage - size%offheap.HugePage
		}
		if block, err := offheap.Alloc(size); err == nil {
			k.blocks = append(k.blocks, block)
			return unsafe.Slice((*entry)(unsafe.Pointer(unsafe.SliceData(block))), n), true
		}
	}
	return make([]entry, n), false
}

// merge merges two runs. Those outside of the heap still take their memory, besides the one in their place.
func (t *Table) merge(x, y *run) *run {
	for _, r := range []*run{x, y} {
		if r.outside {
			t.beside.Add(int64(len(r.entries)) * entryBytes)
		}
	}
	return merged(&t.arena, x, y)
}

// publishOrder replaces the ordered index; k.ordering is held.
func (t *Table) publishOrder(k *keyspace, o *order) *order {
	t.beside.Add(int64(o.keys-k.order.Load().keys) * entryBytes)
	k.order.Store(o)
	return o
}

// Settle merges the runs of a keyspace into one, so that cursors made from now on have nothing to merge. It pays for a
// table that is read through, after the last Put.
func (t *Table) Settle(ks uint32) {
	k := t.keyspace(ks)
	if k == nil {
		return
	}
	t.ordered(k)
	k.ordering.Lock()
	defer k.ordering.Unlock()
	o := k.order.Load()
	if len(o.runs) < 2 {
		return
	}
	one := o.runs[len(o.runs)-1]
	for i := len(o.runs) - 2; i >= 0; i-- {
		one = t.merge(o.runs[i], one)
	}
	t.publishOrder(k, &order{keys: o.keys, runs: []*run{one}})
}
