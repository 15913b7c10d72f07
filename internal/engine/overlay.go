package engine

import (
	"sync/atomic"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/memtable"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/view"
)

// Overlay is what a transaction has written so far, in the form in which reads look through it: small memtables with
// numbers of their own, so that an iterator goes on seeing what it saw when it was opened.
type Overlay struct {
	refs   atomic.Int32
	pool   *memtable.Pool    // where the memory of the first table comes from and goes to
	tables []*memtable.Table // newest first
	layers []view.Layer
	seq    uint64
	size   int // of the newest table
}

// NewOverlay returns an empty overlay, which Release gives up.
func (e *Engine) NewOverlay() *Overlay {
	o := &Overlay{pool: &e.overlays}
	o.refs.Store(1)
	return o
}

// Retain keeps what Layers has returned for one more Release: for an iterator, which may outlive the transaction.
func (o *Overlay) Retain() { o.refs.Add(1) }

// Release gives the memory up when nobody else keeps it.
func (o *Overlay) Release() {
	if o.refs.Add(-1) > 0 {
		return
	}
	for _, t := range o.tables {
		t.Free()
	}
	o.tables, o.layers = nil, nil
}

// leastOverlay is the arena of an overlay's first memtable; one that follows on one that was filled is twice as large.
const leastOverlay = 64 << 10

// Apply adds commands.
func (o *Overlay) Apply(d command.Decoder) error {
	for d.Next() {
		c := d.Command()
		if err := o.add(&c); err != nil {
			return err
		}
	}
	return d.Err()
}

func (o *Overlay) add(c *command.Command) error {
	if c.Op == command.Note {
		return nil
	}
	size := len(c.Key) + len(c.Value)
	for len(o.tables) == 0 || !o.tables[0].Fits(1, size) {
		o.size = max(o.grown(), leastOverlay, 4*size)
		create := memtable.New
		if o.size == leastOverlay {
			create = o.pool.New // nearly all transactions need no more
		}
		t, err := create(o.size)
		if err != nil {
			return err
		}
		o.tables = append([]*memtable.Table{t}, o.tables...)
	}
	o.seq++
	if c.Op == command.DeleteRange {
		o.tables[0].DeleteRange(c.Keyspace, c.Key, c.Value, o.seq)
		return nil
	}
	o.tables[0].Put(c.Keyspace, record.Hash(c.Keyspace, c.Key), c.Key, o.seq, c.Record())
	return nil
}

// grown is the arena of the next memtable: twice that of the newest one, where that is full. One that takes no more has little in it if it
// has as many range deletes as there may be in one.
func (o *Overlay) grown() int {
	if len(o.tables) == 0 {
		return 0
	}
	return min(2*o.size, 4*o.tables[0].Bytes())
}

// Layers returns what reads look through from now on. It is valid until the next call.
func (o *Overlay) Layers() []view.Layer {
	o.layers = o.layers[:0]
	for _, t := range o.tables {
		o.layers = append(o.layers, view.Layer{Table: t, Seq: o.seq})
	}
	return o.layers
}
