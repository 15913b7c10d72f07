package engine

import (
	"math"

	"github.com/pandodb/pando/internal/memtable"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/view"
)

// Start is the moment at which an optimistic transaction began.
type Start struct{ seq uint64 }

// Begin registers an optimistic transaction, so that what is committed from now on can be compared with what it read.
func (e *Engine) Begin() (*Start, Snapshot, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.Snapshot()
	if err != nil {
		return nil, s, err
	}
	start := &Start{seq: s.Seq}
	e.starts[start] = struct{}{}
	return start, s, nil
}

// End forgets a transaction, and the memtables that only it needed.
func (e *Engine) End(start *Start) {
	e.mu.Lock()
	delete(e.starts, start)
	gone := e.trimRecent()
	e.mu.Unlock()
	for _, t := range gone {
		t.Release()
	}
}

// oldestStart returns the sequence number at which the oldest open optimistic transaction began. The caller holds mu.
func (e *Engine) oldestStart() (seq uint64, any bool) {
	for s := range e.starts {
		if !any || s.seq < seq {
			seq, any = s.seq, true
		}
	}
	return seq, any
}

// maxRecent bounds the settled memtables that are kept for optimistic transactions: so many, or more that take no more memory than so
// many full ones. A transaction that began before the oldest of them cannot be checked any more and conflicts.
const maxRecent = 2

// keepRecent keeps settled tables (newest first) for open optimistic transactions. The caller holds mu.
func (e *Engine) keepRecent(tables []*view.Table) (gone []*view.Table) {
	for i := len(tables) - 1; i >= 0; i-- {
		tables[i].Retain()
		e.recent = append(e.recent, tables[i])
	}
	return e.trimRecent()
}

// trimRecent takes what is not needed off the list of kept tables, for the caller to release outside of mu.
func (e *Engine) trimRecent() (gone []*view.Table) {
	oldest, any := e.oldestStart()
	kept := 0
	for _, t := range e.recent {
		kept += t.Bytes()
	}
	for len(e.recent) > 0 {
		t := e.recent[0]
		needed := any && t.Last > oldest
		if needed && (len(e.recent) <= maxRecent || kept <= maxRecent*e.sizes.memtable) {
			break
		}
		kept -= t.Bytes()
		if needed {
			e.floor = max(e.floor, t.Last)
		}
		gone = append(gone, t)
		e.recent = e.recent[1:]
	}
	return gone
}

// Reads is what an optimistic transaction has read and written: whoever commits a change to any of it first wins.
type Reads struct {
	Points []PointRead
	Ranges []RangeRead
	keys   []byte // of the points
}

// Reset forgets everything. It keeps the memory of so many points, and of keys of usual length.
func (r *Reads) Reset(points int) {
	if cap(r.Points) > points || cap(r.keys) > 64*points {
		*r = Reads{}
		return
	}
	clear(r.Points)
	clear(r.Ranges)
	r.Points, r.Ranges, r.keys = r.Points[:0], r.Ranges[:0], r.keys[:0]
}

// PointRead is one key.
type PointRead struct {
	Keyspace uint32
	Hash     uint64
	Key      []byte
}

// RangeRead is one range of keys.
type RangeRead = memtable.KeyRange

// AddPoint notes one key.
func (r *Reads) AddPoint(keyspace uint32, key []byte) {
	from := len(r.keys)
	r.keys = append(r.keys, key...) // where that moves them, earlier points keep the memory that they are in
	r.Points = append(r.Points, PointRead{keyspace, record.Hash(keyspace, key), r.keys[from:len(r.keys):len(r.keys)]})
}

// Validate returns ErrConflict when anything in r was changed by a commit after the transaction began, or dropped with its keyspace. It is
// called by the pipeline's leader.
func (e *Engine) Validate(start *Start, r *Reads) error {
	if e.dropped(r) {
		return ErrConflict
	}
	e.mu.Lock()
	if start.seq < e.floor {
		e.mu.Unlock()
		return ErrConflict
	}
	tables := append([]*view.Table(nil), e.current.Load().Tables...)
	for i := len(e.recent) - 1; i >= 0; i-- {
		tables = append(tables, e.recent[i])
	}
	for _, t := range tables {
		t.Retain()
	}
	e.mu.Unlock()
	defer func() {
		for _, t := range tables {
			t.Release()
		}
	}()
	r.Ranges = memtable.Disjoint(r.Ranges)
	for _, t := range tables {
		if conflicts(t, start.seq, r) {
			return ErrConflict
		}
	}
	return nil
}

// dropped reports whether a keyspace was dropped that something was read of: while that was done it was there.
func (e *Engine) dropped(r *Reads) bool {
	there := uint32(math.MaxUint32) // the last one asked for, which is nearly always the next one too
	gone := func(keyspace uint32) bool {
		if keyspace == there {
			return false
		}
		there = keyspace
		ks := e.keyspaces.id(keyspace)
		return ks == nil || ks.Dropped.Load()
	}
	for i := range r.Points {
		if gone(r.Points[i].Keyspace) {
			return true
		}
	}
	for i := range r.Ranges {
		if gone(r.Ranges[i].Keyspace) {
			return true
		}
	}
	return false
}

func conflicts(t *view.Table, after uint64, r *Reads) bool {
	if t.MaxSeq() <= after {
		return false
	}
	for i := range r.Points {
		p := &r.Points[i]
		if t.NewestOf(p.Keyspace, p.Hash, p.Key) > after {
			return true
		}
	}
	return t.NewestInAny(r.Ranges, after)
}
