package pando

import (
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/view"
)

// Reader makes a few short reads that belong together: it shows the database as it was when it was opened, like a Snapshot, but it can
// be opened again and again, and then allocates nothing. It is for reads that end soon: as long as it is open, all of its moment is
// kept in memory. The zero value is closed. It is used by one goroutine at a time and must not be copied.
type Reader struct {
	db     *DB
	snap   engine.Snapshot
	it     Iterator
	bounds []byte
	keys   [view.Group][]byte
}

// Open makes the reader show the present, from which keyspaces will be read: with one that has been dropped it fails with ErrDropped.
// What is dropped later is there for the reader still. A reader that is open already is closed first.
func (r *Reader) Open(db *DB, keyspaces ...*Keyspace) error {
	r.Close()
	snap, err := db.e.Snapshot()
	if err != nil {
		return err
	}
	for _, ks := range keyspaces { // after the snapshot: until now it may have been dropped before
		err := ks.of(db)
		if err == nil {
			err = ks.dropped()
		}
		if err != nil {
			snap.Release()
			return err
		}
	}
	r.db, r.snap = db, snap
	return nil
}

// OpenAt is Open at the moment of a snapshot, for reading from its keyspace and others of that moment. The snapshot may be closed before the
// reader.
func (r *Reader) OpenAt(s *Snapshot) error {
	r.Close()
	snap, err := s.state.use(s.ks)
	if err == nil {
		r.db, r.snap = s.state.db, snap
	}
	return err
}

// Hold returns a snapshot of the reader's moment, which may stay open for long, or ErrClosed. It must be closed.
func (r *Reader) Hold() (*Snapshot, error) {
	if r.db == nil {
		return nil, ErrClosed
	}
	return r.db.snapshotOf(r.snap.Retain(), nil), nil
}

// Close gives up what the reader holds; its iterator answers with ErrClosed from then on. Closing it again does nothing.
func (r *Reader) Close() {
	if r.db == nil {
		return
	}
	_ = r.it.Close() // which returns nil
	r.snap.Release()
	r.db, r.snap = nil, engine.Snapshot{}
}

// readable returns why nothing can be read of a keyspace.
func (r *Reader) readable(ks *Keyspace) error {
	if r.db == nil {
		return ErrClosed
	}
	if err := r.db.e.Stop().Err(); err != nil {
		return err
	}
	if err := ks.of(r.db); err != nil {
		return err
	}
	return ks.ks.ReadableAt(r.snap.Seq)
}

// GetTo appends the value of key to dst, of which all the capacity may be written to, and returns the result, or ErrNotFound.
func (r *Reader) GetTo(dst []byte, ks *Keyspace, key []byte) ([]byte, error) {
	if err := r.readable(ks); err != nil {
		return dst, err
	}
	return r.snap.Get(dst, nil, ks.ks, key)
}

// GetMany appends the values of keys from up to to, which is not included, to dst. It stops at the first key that is not there, with
// ErrNotFound, or that cannot be read: the number of values says which one that is. It takes less time than one GetTo for each.
func (r *Reader) GetMany(dst *List, ks *Keyspace, keys *List, from, to int) error {
	if err := r.readable(ks); err != nil {
		return err
	}
	defer clear(r.keys[:])
	for from < to {
		n := min(to-from, view.Group)
		for i := range n {
			r.keys[i] = keys.At(from + i)
		}
		var ends [view.Group]int
		var err error
		dst.bytes, n, err = r.snap.GetGroup(dst.bytes, &ends, ks.ks, r.keys[:n])
		dst.ends = append(dst.ends, ends[:n]...)
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

// Absent notes for each of keys whether it is not there. It takes less time than one Has for each. There is room in absent for all of
// them.
func (r *Reader) Absent(absent []bool, ks *Keyspace, keys [][]byte) error {
	if err := r.readable(ks); err != nil {
		return err
	}
	for len(keys) > 0 {
		n := min(len(keys), view.Group)
		if err := r.snap.AbsentGroup(absent[:n], ks.ks, keys[:n]); err != nil {
			return err
		}
		absent, keys = absent[n:], keys[n:]
	}
	return nil
}

// Iter opens the iterator of the reader, of which there is one, over the pairs in [lower, upper); a nil bound is open. It is made for walks
// that look at few pairs, and is valid until the next call of Iter or until the reader is closed, which close it too.
func (r *Reader) Iter(ks *Keyspace, lower, upper []byte) *Iterator {
	if err := r.readable(ks); err != nil {
		return failedIterator(err)
	}
	r.bounds = append(append(r.bounds[:0], lower...), upper...) // before the iterator goes, in which they may lie
	_ = r.it.Close()
	if len(lower) > 0 {
		lower = r.bounds[:len(lower):len(lower)]
	}
	if len(upper) > 0 { // one that is empty may be that of an empty walk, and stays as it is
		upper = r.bounds[len(r.bounds)-len(upper):]
	}
	walk := view.IteratorOptions{Lower: lower, Upper: upper, Short: true, Stop: r.db.e.Stop()}
	it, err := r.snap.Iterator(ks.ks, &walk)
	if err != nil {
		return failedIterator(err)
	}
	r.it = Iterator{it: it, stop: walk.Stop}
	return &r.it
}

// List is byte strings that lie one after the other in memory, which is used again after Reset. The zero value is empty.
type List struct {
	bytes []byte
	ends  []int
}

// Reset empties the list.
func (l *List) Reset() { l.bytes, l.ends = l.bytes[:0], l.ends[:0] }

// Append adds a copy of s.
func (l *List) Append(s []byte) {
	l.bytes = append(l.bytes, s...)
	l.ends = append(l.ends, len(l.bytes))
}

// Len returns how many there are.
func (l *List) Len() int { return len(l.ends) }

// Cap returns about how much memory the list has.
func (l *List) Cap() int { return cap(l.bytes) + 8*cap(l.ends) }

// At returns the i-th, counted from 0. It is valid until Reset.
func (l *List) At(i int) []byte {
	from := 0
	if i > 0 {
		from = l.ends[i-1]
	}
	return l.bytes[from:l.ends[i]:l.ends[i]]
}
