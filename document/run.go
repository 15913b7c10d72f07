package document

import (
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/plan"
)

// moment is a state of the store to read: a snapshot, or what a transaction sees.
type moment struct {
	store  *Store
	snap   *pando.Snapshot // nil in a transaction
	names  *catalogue      // the collections of a Snapshot; nil: those of the present
	reader execute.Reader
	seq    uint64 // no change above it is seen for certain
}

// moment returns the present state, or that of a transaction.
func (s *Store) moment(tx *Tx) *moment {
	if tx != nil {
		return &moment{store: s, reader: execute.FromTx(tx.reads), seq: tx.w.began}
	}
	seq := s.db.LastSeq()
	snap := s.db.Snapshot()
	return &moment{store: s, snap: snap, reader: execute.FromSnapshot(snap), seq: seq}
}

func (m *moment) close() error {
	if m.snap == nil {
		return nil
	}
	return m.snap.Close()
}

// matches is the documents of a query, before its projection unless the plan made it.
type matches struct {
	*execute.Cursor
	x    *collection
	done func() error // what to give back afterwards; may be nil
}

func (m *matches) next() bool                            { return m.Cursor.Next() }
func (m *matches) key() []byte                           { return m.Cursor.Key() }
func (m *matches) document(dst []byte) (document, error) { return m.Cursor.Document(dst) }
func (m *matches) err() error                            { return m.x.orDropped(m.Cursor.Err()) }

func (m *matches) close() error {
	err := m.Cursor.Close()
	if m.done != nil {
		err = errors.Join(err, m.done())
	}
	return err
}

// open plans a query and opens it on a moment of its own.
func (c *Collection) open(ctx context.Context, x *collection, q *findQuery) (*matches, error) {
	if c.tx != nil && c.tx.done {
		return nil, errTxDone()
	}
	at := c.moment()
	m, err := at.open(ctx, x, q)
	if err != nil {
		return nil, errors.Join(err, at.close())
	}
	m.done = at.close
	return m, nil
}

// open plans a query and opens it on a moment that somebody else closes.
func (m *moment) open(ctx context.Context, x *collection, q *findQuery) (*matches, error) {
	src := x.source(m.seq)
	p, err := plan.Choose(&q.Query, execute.Planning(m.reader, src))
	if err != nil {
		return nil, x.orDropped(err)
	}
	cursor, err := execute.Open(ctx, m.reader, src, p, m.store.queryOptions(q))
	if err != nil {
		return nil, err
	}
	return &matches{Cursor: cursor, x: x}, nil
}

// orDropped says of an error what MongoDB does where a collection is dropped under a query.
func (c *collection) orDropped(err error) error {
	if !errors.Is(err, pando.ErrDropped) {
		return err
	}
	return &Error{Code: mongoerror.QueryPlanKilled, Message: fmt.Sprintf("collection dropped: %s", c.name.Load()), Cause: err}
}

// queryOptions bounds the memory of a query.
func (s *Store) queryOptions(q *findQuery) *execute.Options {
	o := &execute.Options{Memory: s.options.QueryMemoryBytes, Shared: s.held, Space: s.scratch}
	if q.options.NoSpill {
		o.Space = nil
	}
	return o
}

// count counts the documents of a query, without reading them where bounds say it all.
func (c *Collection) count(ctx context.Context, x *collection, q *findQuery) (n int64, err error) {
	at := c.moment()
	defer func() { err = errors.Join(err, at.close()) }()
	return at.count(ctx, x, q)
}

// count counts the documents of a query.
func (m *moment) count(ctx context.Context, x *collection, q *findQuery) (int64, error) {
	counting := q.Query
	counting.Goal, counting.Projection, counting.Sort = plan.Counting, nil, nil
	src := x.source(m.seq)
	p, err := plan.Choose(&counting, execute.Planning(m.reader, src))
	if err != nil {
		return 0, x.orDropped(err)
	}
	n, err := execute.Count(ctx, m.reader, src, p, m.store.queryOptions(q))
	return n, x.orDropped(err)
}
