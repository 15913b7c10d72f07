package document_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// patience is a context that ends when it has been asked so often whether it has.
type patience struct {
	context.Context
	left atomic.Int64
}

func newPatience(n int64) *patience {
	p := &patience{Context: context.Background()}
	p.left.Store(n)
	return p
}

func (p *patience) Err() error {
	if p.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestLongValidatorsEnd: the loops of a validator end when the call does that writes.
func TestLongValidatorsEnd(t *testing.T) {
	s := open(t, memfs.New())
	const loops = `{"$reduce": {"input": {"$range": [0, 2000]}, "initialValue": 0, "in": {"$add": ["$$value", {"$size": {"$filter": ` +
		`{"input": {"$range": [0, 2000]}, "cond": {"$gt": ["$$this", "$n"]}}}}]}}}`
	c := collection(t, s, "c", &document.CollectionOptions{Validator: document.JSON(`{"$or": [{"quick": true}, {"$expr": {"$gte": [` + loops + `, 0]}}]}`)})
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "quick": true}`))
	must(t, err)
	for what, write := range map[string]func(ctx context.Context, c *document.Collection) error{
		"an insert": func(ctx context.Context, c *document.Collection) error {
			_, err := c.Insert(ctx, document.JSON(`{"n": 1}`))
			return err
		},
		"many inserts": func(ctx context.Context, c *document.Collection) error {
			_, err := c.InsertMany(ctx, []document.JSON{`{"n": 1}`}, nil)
			return err
		},
		"an update": func(ctx context.Context, c *document.Collection) error {
			_, err := c.Update(ctx, document.JSON(`{"_id": 1}`), document.JSON(`{"$unset": {"quick": 1}}`), nil)
			return err
		},
	} {
		if err := write(newPatience(60), c); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
		tx, err := s.Begin(ctx)
		must(t, err)
		if err := write(newPatience(60), tx.In(c)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s in a transaction: %v", what, err)
		}
		tx.Abort()
	}
}

// TestLongStagesOfStreamsEnd: so do those of what a change stream, and a cursor on a capped collection that does not end, look at.
func TestLongStagesOfStreamsEnd(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", &document.CollectionOptions{Capped: true, SizeBytes: 1 << 20})
	const long = `{"$gte": [{"$reduce": {"input": {"$range": [0, 2000]}, "initialValue": 0, "in": {"$add": ["$$value", {"$size": {"$filter": ` +
		`{"input": {"$range": [0, 2000]}, "cond": {"$gt": ["$$this", 1]}}}}]}}}, 0]}`
	stream, err := c.OpenWatch(ctx, document.JSON(`[{"$match": {"$expr": `+long+`}}]`), nil)
	must(t, err)
	defer stream.Close()
	_, err = c.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	if stream.Next(newPatience(60)) || !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("a change stream: %v", stream.Err())
	}
	tail, err := c.Tail(ctx, document.JSON(`{"$expr": `+long+`}`), nil)
	must(t, err)
	defer tail.Close()
	if tail.Next(newPatience(60)) || !errors.Is(tail.Err(), context.Canceled) {
		t.Errorf("a tail: %v", tail.Err())
	}
}
