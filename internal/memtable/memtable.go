// Package memtable holds the newest versions of records in memory, until a checkpoint has settled them.
//
// One writer at a time puts records, with sequence numbers that never decrease; any number of readers look at the table
// meanwhile, without locks and without ever seeing half a record. A reader names a sequence number and sees, for each key,
// the newest version up to it; so a snapshot is a number. A record is written once, into an arena outside of the Go heap,
// and never moves: what readers get aliases the arena and stays valid until Free.
//
// Two indexes lie over the arena. A hash index finds single keys. The ordered index is made when somebody first asks for
// an order: keys that came since the last time are sorted into an immutable run, by whoever needs it, and runs of similar
// size are merged, so that a cursor has few of them to merge on the fly. The writer never waits for that.
//
// The table never does I/O and never shrinks. It does not drop versions, nor apply range deletes to what it returns:
// Covered and Ranges tell what they cover. New fails when there is no memory; nothing else fails. A Put for which Fits was
// not asked may run over the end of the arena, which ends in a panic before anything is written.
//
// Costs, counted in cache misses: Get of a key that is there two to three (slot, node, value), of one that is not there
// one; Put of a new key one, beyond memory that is written in order. No allocation per record. Beside the arena, a
// distinct key costs 13 to 38 bytes in the hash index, and 16 in the list of keys, which is sorted in its place; of a few
// keys 4 to 8 in the list, and 16 when they have been sorted. Bytes counts them all.
package memtable

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/pandodb/pando/internal/prefetch"
	"github.com/pandodb/pando/internal/record"
)

// RangeLimit is the number of range deletes after which Fits answers false.
const RangeLimit = 4096

// Table is one memtable. Make it with New.
type Table struct {
	arena     arena
	index     atomic.Pointer[index]
	keyspaces atomic.Pointer[keyspaceSet]
	ranges    atomic.Uint32 // number of range deletes
	first     atomic.Uint64 // sequence number of the first record

	_ [64]byte // readers use the fields above all the time; the writer changes those below

	state   atomic.Uint64 // items in the arena end at the ref in the upper half; the lower half counts records
	maxSeq  atomic.Uint64
	marks   atomic.Uint32         // number of marks
	beside  atomic.Int64          // bytes in use beside the arena
	spare   atomic.Pointer[index] // what Foresee made; the writer takes it
	keys    int                   // distinct keys; the writer's own
	last    *keyspace             // the keyspace that was written last; the writer's own
	indexes []*index              // those replaced; readers may still be in them until Free
	pool    *Pool                 // where memory comes from and goes to; nil: the system
	begun   bool                  // the arena's block stays what it is; the writer's own
	split   bool                  // the rest of the arena gets no huge pages; Provide's own
	mixed   bool                  // keys have not come in order; the writer's own
	// touched is how many bytes of the arena, from its start on, an earlier table has written to: the system has provided their memory.
	touched atomic.Int64
}

// New returns an empty table whose arena holds limit bytes. They are reserved, and taken from the system as they are used.
func New(limit int) (*Table, error) {
	return emptyTable(limit, nil, nil)
}

// emptyTable makes a table of pool p, which takes an arena from now: of p, or none.
func emptyTable(limit int, now, p *Pool) (*Table, error) {
	a, touched, err := newArena(limit, now)
	if err != nil {
		return nil, err
	}
	t := &Table{arena: a, pool: p}
	t.touched.Store(int64(touched))
	t.state.Store(firstItem / 8 << 32)
	ix := newIndex(p, firstSlots)
	t.index.Store(ix)
	t.beside.Store(int64(ix.bytes()))
	t.keyspaces.Store(newKeyspaceSet(firstKeyspaces))
	return t, nil
}

// begin gives a table, before its first record, the memory of one that has been freed since it was made, if that has more: what the table
// has only reserved the system would have to provide. Readers do not look at the arena of a table without records.
func (t *Table) begin() {
	t.begun = true
	block, touched := t.pool.take(len(t.arena.block))
	if block == nil {
		return
	}
	if mine := int(t.touched.Load()); touched > mine {
		old := t.arena.block
		t.arena.use(block)
		t.touched.Store(int64(touched))
		block, touched = old, mine
	}
	t.pool.put(block, touched)
}

// LimitFor returns a limit for New with which an empty table fits so many records with so many key and value bytes.
func LimitFor(records, bytes int) int { return 8 + (records*itemOverhead+bytes+7)&^7 }

// Fits reports whether a batch of so many records and range deletes, with so many bytes in their keys, values and bounds,
// is sure to fit.
func (t *Table) Fits(records, bytes int) bool {
	free := t.arena.size - t.used()
	return records <= free/itemOverhead && bytes <= free-records*itemOverhead && t.ranges.Load() < RangeLimit
}

// used is the number of bytes of the arena that are in use.
func (t *Table) used() int { return int(t.state.Load()>>32) * 8 }

// Put adds a version of a key. hash is record.Hash of both. The table copies what it is given. seq is at
// least 1, and not below that of any earlier record of the table; of two versions of a key with the same seq the later one
// counts.
func (t *Table) Put(ks uint32, hash uint64, key []byte, seq uint64, r record.Record) {
	ix := t.index.Load()
	node, slot := ix.find(&t.arena, ks, hash, key)
	if node != 0 {
		t.update(node, seq, r)
		return
	}
	if t.keys >= ix.growAt {
		ix = t.grow(ix)
		_, slot = ix.find(&t.arena, ks, hash, key)
	}
	k := t.last
	if k == nil || k.id != ks {
		k = t.keyspaceToWrite(ks)
	}

	a, size := &t.arena, nodeSize(len(key))
	node = t.reserve(size+versionSize(r), seq)
	version := node + ref(size/8)
	*a.word(node, 0) = uint32(version)
	*a.word(node, 1) = itemNode | uint32(len(key))
	*a.word(node, 2) = ks
	copy(a.bytes(node, nodeHeader, len(key)), key)
	a.writeVersion(version, 0, seq, r)

	t.keys++
	t.mixed = t.mixed || k.newest != 0 && string(a.key(k.newest)) > string(key)
	t.publish(version + ref(versionSize(r)/8))
	ix.set(slot, hash, node)
	k.add(t, key, node)
}

// Ordered is how many bytes of records there are if the keys of each keyspace have come in ascending order, each once; else 0. If they
// have, what comes next is not likely to belong among them. Only the writer may call it.
func (t *Table) Ordered() int {
	if t.mixed {
		return 0
	}
	return t.used() - firstItem
}

// update adds a version to a key that is there.
func (t *Table) update(node ref, seq uint64, r record.Record) {
	a := &t.arena
	t.mixed = true
	item := t.reserve(updateHeader+versionSize(r), seq)
	version := item + updateHeader/8
	*a.word(item, 0) = uint32(node)
	*a.word(item, 1) = itemUpdate
	a.writeVersion(version, a.newest(node), seq, r)
	t.publish(version + ref(versionSize(r)/8))
	atomic.StoreUint32(a.word(node, 0), uint32(version))
}

// reserve returns where an item of the given size belongs. It is not in use before publish.
func (t *Table) reserve(size int, seq uint64) ref {
	item := ref(t.state.Load() >> 32)
	if !t.begun {
		t.begin()
	}
	if size > t.arena.size-int(item)*8 {
		panic(fmt.Sprintf("memtable: %d bytes put into %d: Fits was not asked", size, t.arena.size-int(item)*8))
	}
	if t.first.Load() == 0 {
		t.first.Store(seq)
	}
	newest := t.maxSeq.Load()
	if n := t.marks.Load(); int(item)*8 >= int(n)*markSpacing {
		*t.arena.mark(int(n)) = mark{newest, item}
		t.marks.Store(n + 1)
	}
	if seq > newest {
		t.maxSeq.Store(seq)
	}
	return item
}

// publish counts a record and makes the items up to end part of what can be walked.
func (t *Table) publish(end ref) {
	t.state.Store(uint64(end)<<32 | uint64(uint32(t.state.Load())+1))
}

// Ask asks the processor for what look-ups of hashes read first, the slot in which each begins, and does not wait for it.
func (t *Table) Ask(hashes []uint64) {
	ix := t.index.Load()
	for _, hash := range hashes {
		prefetch.Lines(unsafe.Pointer(ix.slot(uint32(hash>>32)>>(ix.shift&31))), 1)
	}
}

// Prefetch touches what look-ups of hashes read first, so that their misses overlap: the slot in which each begins, and the node
// in it if that is likely to be the one. Loads of a pass do not wait for each other, and nothing stands between them. Sum up what
// it returns, lest the compiler leaves it out.
func (t *Table) Prefetch(hashes []uint64) (sum uint64) {
	ix := t.index.Load()
	for _, hash := range hashes {
		sum += atomic.LoadUint64(ix.slot(uint32(hash>>32) >> (ix.shift & 31)))
	}
	for _, hash := range hashes {
		if s := atomic.LoadUint64(ix.slot(uint32(hash>>32) >> (ix.shift & 31))); s != 0 && s>>32 == hash>>32 {
			sum += uint64(*t.arena.word(ref(s), 1))
		}
	}
	return sum
}

// Get returns the newest version of a key up to seq, with its sequence number. The value aliases the arena. Range deletes
// are not considered; see Covered.
func (t *Table) Get(ks uint32, hash uint64, key []byte, seq uint64) (r record.Record, recSeq uint64, ok bool) {
	a := &t.arena
	node, _ := t.index.Load().find(a, ks, hash, key)
	if node == 0 {
		return record.Record{}, 0, false
	}
	version := a.versionAt(node, seq)
	if version == 0 {
		return record.Record{}, 0, false
	}
	return a.record(version), a.seq(version), true
}

// Len is the number of records put, versions and range deletes included.
func (t *Table) Len() int { return int(uint32(t.state.Load())) }

// Bytes is the memory in use: the arena as far as it is filled, and the indexes.
func (t *Table) Bytes() int { return t.used() + int(t.beside.Load()) }

// MaxSeq is the highest sequence number put, 0 if there is none.
func (t *Table) MaxSeq() uint64 { return t.maxSeq.Load() }

// Newer reports whether all that the table holds was put after seq: a reader at seq need not look at it.
func (t *Table) Newer(seq uint64) bool { return t.first.Load() > seq }

// Keyspaces returns the keyspaces with a record or a range delete, sorted.
func (t *Table) Keyspaces() []uint32 { return t.keyspaces.Load().ids() }

// Free gives the memory back. No reader may be left, nor hold anything that it got from the table.
func (t *Table) Free() {
	if t.arena.base == nil {
		return
	}
	if spare := t.spare.Swap(nil); spare != nil {
		t.indexes = append(t.indexes, spare)
	}
	for _, ix := range append(t.indexes, t.index.Load()) {
		t.pool.putIndex(ix.block)
	}
	t.keyspaces.Load().free(t.pool)
	t.pool.put(t.arena.block, max(t.used()-firstItem, int(t.touched.Load())))
	t.arena, t.indexes, t.last = arena{}, nil, nil
	t.index.Store(nil)
	t.keyspaces.Store(newKeyspaceSet(firstKeyspaces))
}
