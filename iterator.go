package pando

import (
	"bytes"
	"iter"

	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/view"
)

// IterOptions says what an iterator walks over.
type IterOptions struct {
	// Lower and Upper are the bounds [Lower, Upper). A nil bound is open; an Upper that is empty but not nil makes an empty
	// walk.
	Lower, Upper []byte
	// KeysOnly leaves values out: Value returns nil, and values that lie apart are not read.
	KeysOnly bool
	// Once keeps what the walk reads from the disk out of the page cache, for walks over what will hardly be read again.
	Once bool
}

// Iterator walks over the pairs of a keyspace in the order of their keys, as they were when it was opened. A new one stands
// before the first pair: Next moves to the first, Prev to the last. It must be closed, and is used by one goroutine at a time.
//
// Over a keyspace without order it shows the same pairs, in an order of its own that is fixed while it is open; one with bounds, and
// seeking, are ErrNoOrder.
//
// A move that answers false met the end or an error: see Err.
type Iterator struct {
	it   *view.Iterator // nil: there is none, or none any more
	snap engine.Snapshot
	own  *engine.Overlay // what its transaction had written; nil: nothing
	stop *view.Stop      // nil: there has never been one
	err  error           // why there is none
}

func failedIterator(err error) *Iterator { return &Iterator{err: err} }

// newIterator opens an iterator and takes the snapshot over. walk says what o does not.
func newIterator(s engine.Snapshot, ks *engine.Keyspace, o *IterOptions, walk view.IteratorOptions) *Iterator {
	if o != nil {
		walk.Lower, walk.Upper, walk.KeysOnly, walk.Once = bytes.Clone(o.Lower), bytes.Clone(o.Upper), o.KeysOnly, o.Once
	}
	it, err := s.Iterator(ks, &walk)
	if err != nil {
		s.Release()
		return failedIterator(err)
	}
	return &Iterator{it: it, snap: s, stop: walk.Stop}
}

// none is what every move answers where there is no iterator.
func (i *Iterator) none() bool {
	if i.stop == nil {
		return false
	}
	if i.err = i.stop.Err(); i.err == nil {
		i.err = ErrClosed
	}
	return false
}

// First moves to the first pair.
func (i *Iterator) First() bool {
	if i.it == nil {
		return i.none()
	}
	return i.it.First()
}

// Last moves to the last pair.
func (i *Iterator) Last() bool {
	if i.it == nil {
		return i.none()
	}
	return i.it.Last()
}

// Next moves to the next pair.
func (i *Iterator) Next() bool {
	if i.it == nil {
		return i.none()
	}
	return i.it.Next()
}

// NextWanted moves to the next pair whose value wanted does not turn down. That takes a part of the time of looking at each pair, and
// those that are turned down are as good as not there: a long walk can be ended, or cancelled, by wanting one pair now and then. wanted
// must not use the iterator, nor keep the value, which is nil where only keys were asked for. A value that lies apart and cannot be read
// is not shown to it: the walk stops there, and Err tells.
func (i *Iterator) NextWanted(wanted func(value []byte) bool) bool {
	if i.it == nil {
		return i.none()
	}
	return i.it.NextWanted(wanted)
}

// Prev moves to the previous pair.
func (i *Iterator) Prev() bool {
	if i.it == nil {
		return i.none()
	}
	return i.it.Prev()
}

// SeekGE moves to the first pair whose key is not below key.
func (i *Iterator) SeekGE(key []byte) bool {
	if i.it == nil {
		return i.none()
	}
	return i.it.SeekGE(key)
}

// SeekLT moves to the last pair whose key is below key.
func (i *Iterator) SeekLT(key []byte) bool {
	if i.it == nil {
		return i.none()
	}
	return i.it.SeekLT(key)
}

// Valid reports whether the iterator stands on a pair.
func (i *Iterator) Valid() bool { return i.it != nil && i.it.Valid() }

// Key returns the key of the pair, valid until the next move or Close, even where what the iterator reads is closed meanwhile; nil where there
// is no pair.
func (i *Iterator) Key() []byte {
	if i.it == nil {
		return nil
	}
	return i.it.Key()
}

// Value returns the value of the pair, valid until the next move or Close. A value that lies apart is read now: nil, and Err, tell
// that it cannot be, or that what the iterator reads was closed meanwhile.
func (i *Iterator) Value() []byte {
	if i.it == nil {
		return nil
	}
	return i.it.Value()
}

// ReleaseValue gives back the memory in which Value has read large values, which the iterator keeps for the next ones otherwise. It is for
// iterators that wait, such as those of a client that may never come back. What Value returned stays as it is until the next move.
func (i *Iterator) ReleaseValue() {
	if i.it != nil {
		i.it.ReleaseValue()
	}
}

// Err returns what ended the walk early; nil when it met the end.
func (i *Iterator) Err() error {
	if i.it == nil {
		return i.err
	}
	return i.it.Err()
}

// Close gives the iterator up, with the pair that it stands on: a move answers false then, and Err ErrClosed. Closing twice is no error.
func (i *Iterator) Close() error {
	if i.it == nil {
		return nil
	}
	i.err = i.it.Close()
	i.it = nil // its memory is somebody else's from now on
	if i.own != nil {
		i.own.Release()
		i.own = nil
	}
	if i.snap.View != nil { // else it is of somebody who holds it for longer
		i.snap.Release()
		i.snap = engine.Snapshot{}
	}
	return nil
}

// forward makes a range-over-func loop of an iterator.
func forward(open func(*IterOptions) *Iterator, lo, hi []byte, note func(error)) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		it := open(&IterOptions{Lower: lo, Upper: hi})
		defer it.Close()
		for it.Next() {
			k, v := it.Key(), it.Value()
			if it.Err() != nil || !yield(k, v) {
				break
			}
		}
		if err := it.Err(); err != nil {
			note(err)
		}
	}
}

// backward is forward from the last pair to the first.
func backward(open func(*IterOptions) *Iterator, lo, hi []byte, note func(error)) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		it := open(&IterOptions{Lower: lo, Upper: hi})
		defer it.Close()
		for it.Prev() {
			k, v := it.Key(), it.Value()
			if it.Err() != nil || !yield(k, v) {
				break
			}
		}
		if err := it.Err(); err != nil {
			note(err)
		}
	}
}

// prefixBounds returns the range of the keys that begin with p.
func prefixBounds(p []byte) (lo, hi []byte) {
	hi = bytes.Clone(p)
	for len(hi) > 0 && hi[len(hi)-1] == 0xff {
		hi = hi[:len(hi)-1]
	}
	if len(hi) == 0 {
		return p, nil
	}
	hi[len(hi)-1]++
	return p, hi
}
