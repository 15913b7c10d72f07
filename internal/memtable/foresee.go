package memtable

import "github.com/pandodb/pando/internal/offheap"

// Foresight is what a table is going to need before long.
type Foresight struct {
	from, to int // of the arena
	slots    int // of the index; 0: the present one goes on to do
}

// Foresee returns what some more batches of so many records need, with so many key and value bytes each. Only the writer may call it.
func (t *Table) Foresee(records, bytes int) Foresight {
	const batches = 3 // an index takes its time
	if !t.begun {
		t.begin()
	}
	used := t.used()
	f := Foresight{to: min(used+LimitFor(records, bytes), t.arena.size)}
	f.from = min(max(used, int(t.touched.Load())), f.to) // the rest is there
	if ix := t.index.Load(); t.keys+batches*records >= ix.growAt && t.spare.Load() == nil {
		f.slots = ix.nextSlots(t.keys, used, t.arena.size, !t.mixed)
	}
	return f
}

// Provide asks the system for the memory of what was foreseen, so that Put does not wait for it. It may run beside Put, but not beside
// another Provide.
func (t *Table) Provide(f Foresight) {
	if f.slots > 0 {
		t.spare.Store(newIndex(t.pool, f.slots))
	}
	if !t.split {
		t.split = true
		offheap.Split(t.arena.block[t.used():])
	}
	offheap.Populate(t.arena.block[f.from:f.to])
}

// Spare is how much memory the table has from an earlier one and does not use. It may not be called beside Trim.
func (t *Table) Spare() int { return max(int(t.touched.Load())-t.used(), 0) }

// Trim gives the spare memory back. Only the writer may call it.
func (t *Table) Trim() {
	if t.Spare() > 0 {
		offheap.Release(t.arena.block[t.used():t.arena.size]) // behind it are the marks
		t.touched.Store(0)
	}
}

// grow replaces the hash index by a larger one.
func (t *Table) grow(ix *index) *index {
	larger := t.spare.Swap(nil)
	if larger != nil && larger.mask <= ix.mask { // it came too late
		t.indexes = append(t.indexes, larger)
		larger = nil
	}
	if larger == nil {
		larger = newIndex(t.pool, ix.nextSlots(t.keys, t.used(), t.arena.size, !t.mixed))
	}
	ix.moveTo(larger)
	t.indexes = append(t.indexes, ix)
	t.beside.Add(int64(larger.bytes()))
	t.index.Store(larger)
	return larger
}
