package memtable

import (
	"slices"
	"sync"
	"sync/atomic"
)

// keyspace is what the table knows of one keyspace apart from its items: which keys there are, in which order, and which
// ranges of them are deleted.
type keyspace struct {
	id      uint32
	keys    atomic.Uint32           // number of distinct keys; the nodes below it are in pending or in runs
	newest  ref                     // the node of the last of them; the writer's own
	blocks  [][]byte                // of lists of entries; the writer's own
	pending atomic.Pointer[pending] // replaced by the writer only
	ranges  atomic.Pointer[rangeSet]
	past    atomic.Pointer[rangeSet] // what Ranges last worked out for an older snapshot

	ordering sync.Mutex            // held while keys are sorted; never taken by the writer
	order    atomic.Pointer[order] // replaced with ordering held
}

const firstKeyspaces = 8

// keyspaceSet finds keyspaces by number: open addressing, at most half full. Slots are set by the writer and never
// cleared; a set that is half full is replaced.
type keyspaceSet struct {
	slots []atomic.Pointer[keyspace]
	used  int // the writer's own
}

func newKeyspaceSet(slots int) *keyspaceSet {
	return &keyspaceSet{slots: make([]atomic.Pointer[keyspace], slots)}
}

// find returns the slot of a keyspace, or the empty one where it belongs.
func (s *keyspaceSet) find(ks uint32) *atomic.Pointer[keyspace] {
	mask := uint32(len(s.slots) - 1)
	hash := ks * 0x9E3779B9 // 2^32 divided by the golden ratio: keyspaces are numbered in a row
	for i := (hash ^ hash>>16) & mask; ; i = (i + 1) & mask {
		if k := s.slots[i].Load(); k == nil || k.id == ks {
			return &s.slots[i]
		}
	}
}

// free gives back what lies outside of the heap.
func (s *keyspaceSet) free(p *Pool) {
	for i := range s.slots {
		if k := s.slots[i].Load(); k != nil {
			for _, block := range k.blocks {
				p.putList(block)
			}
		}
	}
}

func (s *keyspaceSet) ids() []uint32 {
	var ids []uint32
	for i := range s.slots {
		if k := s.slots[i].Load(); k != nil {
			ids = append(ids, k.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// keyspace returns a keyspace, nil if the table has nothing in it.
func (t *Table) keyspace(ks uint32) *keyspace { return t.keyspaces.Load().find(ks).Load() }

// keyspaceToWrite returns a keyspace and makes it if need be. Only the writer may call it.
func (t *Table) keyspaceToWrite(ks uint32) *keyspace {
	set := t.keyspaces.Load()
	slot := set.find(ks)
	k := slot.Load()
	if k == nil {
		k = &keyspace{id: ks}
		k.pending.Store(&pending{})
		k.order.Store(&order{})
		if set.used*2 >= len(set.slots) {
			set = set.grown()
			slot = set.find(ks)
		}
		slot.Store(k)
		set.used++
		t.keyspaces.Store(set)
		t.beside.Add(keyspaceBytes)
	}
	t.last = k
	return k
}

// keyspaceBytes is about what a keyspace costs by itself.
const keyspaceBytes = 256

func (s *keyspaceSet) grown() *keyspaceSet {
	larger := newKeyspaceSet(len(s.slots) * 2)
	larger.used = s.used
	for i := range s.slots {
		if k := s.slots[i].Load(); k != nil {
			larger.find(k.id).Store(k)
		}
	}
	return larger
}
