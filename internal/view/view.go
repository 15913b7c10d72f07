// Package view is how the engine reads: a View is one immutable picture of the database (the memtables, newest first, and
// one settled root per keyspace), and the reading operations merge what they hold into one answer.
//
// A View never changes once it is published; the memtable in front goes on taking writes, and a sequence number says which
// of them a reader sees. Readers come in two kinds. A point read stays inside an epoch section and takes no reference: it
// costs one cache miss a memtable plus what the layout costs, no lock and no allocation. Whatever outlives one call (an
// iterator, a snapshot, a transaction, a read that has to go to the disk) holds a reference, which keeps the memtables and
// the segment files of that picture alive.
//
// Newer sources win over older ones: a record in a memtable hides the records of the same key behind it, and a range delete
// hides what is behind it and what is older in the same memtable. Expired records are never shown, but they do hide.
//
// It never writes. It fails only where a layout or a value blob cannot be read, with that error.
package view

import (
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/memtable"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/wal"
)

// Table is a memtable shared by several views.
type Table struct {
	*memtable.Table
	// End is the position in the log behind the last record of a frozen table: a root that holds the table's records may
	// tell the log to recycle what lies before it.
	End wal.Position
	// Last is the sequence number of the last record of a frozen table.
	Last uint64
	refs atomic.Int32
}

// NewTable wraps a memtable. It is freed when the last view that holds it is released.
func NewTable(t *memtable.Table) *Table { return &Table{Table: t} }

// Retain keeps the table beyond the views that hold it.
func (t *Table) Retain() { t.refs.Add(1) }

// Release undoes Retain.
func (t *Table) Release() {
	if t.refs.Add(-1) == 0 {
		t.Free()
	}
}

// blank reports whether the table holds nothing for a reader at seq.
func (t *Table) blank(seq uint64) bool { return t.Len() == 0 || t.Newer(seq) }

// Environment is what reads need besides the picture itself.
type Environment struct {
	Store *segment.Store
	Epoch *epoch.Domain

	spare sync.Pool // *cursors
}

// View is one immutable picture of the database.
type View struct {
	// Tables holds the memtables, newest first. Tables[0] takes the writes.
	Tables []*Table
	// Roots holds what has settled of each keyspace.
	Roots Roots
	// Generation counts the views of one run of the database.
	Generation uint64

	env      *Environment
	refs     atomic.Int64
	released func(*View)
}

// New makes a view and takes one reference on it, for the caller who publishes it. released is called once, when the last
// reference has gone, from whichever goroutine let it go.
func New(env *Environment, tables []*Table, roots Roots, generation uint64, released func(*View)) *View {
	v := &View{Tables: tables, Roots: roots, Generation: generation, env: env, released: released}
	v.refs.Store(1)
	for _, t := range tables {
		t.Retain()
	}
	return v
}

// Ref takes a reference. The caller must hold one already, or be inside an epoch section in which it loaded the view as the
// current one: the reference of the current view is given up only when such sections have ended.
func (v *View) Ref() { v.refs.Add(1) }

// Unref gives a reference up.
func (v *View) Unref() {
	if v.refs.Add(-1) != 0 {
		return
	}
	for _, t := range v.Tables {
		t.Release()
	}
	if v.released != nil {
		v.released(v)
	}
}

// Root returns the settled root of a keyspace, nil when there is none.
func (v *View) Root(keyspace uint32) layout.Root { return v.Roots.At(keyspace) }

// ReadValue appends the bytes of a value that lies apart to dst. The caller holds a reference on a view that the value is
// visible in.
func (e *Environment) ReadValue(dst, ref []byte) ([]byte, error) {
	r, err := value.DecodeRef(ref)
	if err != nil {
		return dst, err
	}
	return value.Read(e.Store, dst, r)
}
