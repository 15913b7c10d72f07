package document_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// impatient is a context that ends when it has been asked a number of times whether it has.
type impatient struct {
	context.Context
	left int
}

func (c *impatient) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A call that is given up ends within one expression over one document, whatever the call is.
func TestACallEndsWithinAnExpression(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	must(t, s.Database("test").Create(ctx, "v", document.JSON(`{"viewOn": "c", "pipeline": []}`)))
	view := s.Database("test").Lookup("v")
	// More steps than an evaluation may have: what is not given up fails with ExceededTimeLimit.
	long := `{"$reduce": {"input": {"$range": ["$_id", 4000]}, "initialValue": 0, "in": {"$add": ["$$value",
		{"$reduce": {"input": {"$range": ["$_id", 100000]}, "initialValue": 0, "in": {"$add": ["$$value", 1]}}}]}}}`
	matching := document.JSON(fmt.Sprintf(`{"$expr": {"$gt": [%s, 0]}}`, long))
	stages := func(stage string) document.JSON { return document.JSON(fmt.Sprintf(stage, long)) }
	read := func(ctx context.Context, c *document.Collection, filter any, o *document.FindOptions) error {
		_, err := c.FindOne(ctx, filter, o)
		return err
	}
	run := func(ctx context.Context, pipeline document.JSON) error {
		for _, err := range c.Aggregate(ctx, pipeline, nil) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"find":         func(ctx context.Context) error { return read(ctx, c, matching, nil) },
		"find in view": func(ctx context.Context) error { return read(ctx, view, matching, nil) },
		"projection": func(ctx context.Context) error {
			return read(ctx, c, document.JSON(`{}`), &document.FindOptions{Projection: document.JSON(`{"x": ` + long + `}`)})
		},
		"count":    func(ctx context.Context) error { _, err := c.Count(ctx, matching, nil); return err },
		"distinct": func(ctx context.Context) error { _, err := c.Distinct(ctx, "_id", matching, nil); return err },
		"delete":   func(ctx context.Context) error { _, err := c.Delete(ctx, matching, nil); return err },
		"update": func(ctx context.Context) error {
			_, err := c.Update(ctx, document.JSON(`{}`), stages(`[{"$set": {"x": %s}}]`), nil)
			return err
		},
		"upsert": func(ctx context.Context) error {
			_, err := c.Update(ctx, document.JSON(`{"_id": 2}`), stages(`[{"$set": {"x": %s}}]`), &document.UpdateOptions{Upsert: true})
			return err
		},
		"$project": func(ctx context.Context) error { return run(ctx, stages(`[{"$project": {"x": %s}}]`)) },
		"$match": func(ctx context.Context) error {
			return run(ctx, stages(`[{"$set": {"y": 1}}, {"$match": {"$expr": %s}}]`))
		},
		"$group": func(ctx context.Context) error { return run(ctx, stages(`[{"$group": {"_id": %s}}]`)) },
		"$lookup": func(ctx context.Context) error {
			return run(ctx, stages(`[{"$lookup": {"from": "c", "pipeline": [{"$match": {"$expr": %s}}], "as": "x"}}]`))
		},
	} {
		if err := call(&impatient{context.Background(), 50}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cursor that one call has opened and another goes on with ends with the other.
func TestACursorEndsWithTheCallThatReadsIt(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for i := range 3 {
		_, err := c.Insert(ctx, document.JSON(fmt.Sprintf(`{"_id": %d}`, i)))
		must(t, err)
	}
	some := document.JSON(`{"$expr": {"$gte": [{"$size": {"$map": {"input": {"$range": ["$_id", 20000]}, "in": 1}}}, 0]}}`)
	pipeline := document.JSON(`[{"$match": ` + string(some) + `}, {"$set": {"x": {"$size": {"$map": {"input": {"$range": ["$_id", 20000]}, "in": 1}}}}}]`)
	for name, opened := range map[string]func(ctx context.Context) (*document.Cursor, error){
		"find":      func(ctx context.Context) (*document.Cursor, error) { return c.OpenFind(ctx, some, nil) },
		"aggregate": func(ctx context.Context) (*document.Cursor, error) { return c.OpenAggregate(ctx, pipeline, nil) },
	} {
		first, end := context.WithCancel(ctx)
		cursor, err := opened(first)
		must(t, err)
		if !cursor.Next(first) {
			t.Fatalf("%s: %v", name, cursor.Err())
		}
		end()
		if !cursor.Next(ctx) {
			t.Fatalf("%s does not go on when the call that opened it has ended: %v", name, cursor.Err())
		}
		if cursor.Next(&impatient{ctx, 2}) || !errors.Is(cursor.Err(), context.DeadlineExceeded) {
			t.Errorf("%s goes on for a call that has ended: %v", name, cursor.Err())
		}
		_ = cursor.Close()
	}
}

// TestACallEndsWithinTheOplog gives up calls that read the oplog: within an expression over one entry, in both directions, also when it is
// the reader of the log that evaluates it.
func TestACallEndsWithinTheOplog(t *testing.T) {
	s := open(t, memfs.New())
	_, err := collection(t, s, "c", nil).Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	oplog := s.Database("local").Lookup("oplog.rs")
	from := `{"$size": {"$ifNull": ["$none", []]}}`
	long := `{"$reduce": {"input": {"$range": [` + from + `, 4000]}, "initialValue": 0, "in": {"$add": ["$$value",
		{"$reduce": {"input": {"$range": [` + from + `, 100000]}, "initialValue": 0, "in": {"$add": ["$$value", 1]}}}]}}}`
	matching := document.JSON(`{"$expr": {"$gt": [` + long + `, 0]}}`)
	run := func(ctx context.Context, pipeline string) error {
		for _, err := range oplog.Aggregate(ctx, document.JSON(pipeline), nil) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	read := func(ctx context.Context, filter document.JSON, o *document.FindOptions) error {
		_, err := oplog.FindOne(ctx, filter, o)
		return err
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"projection": func(ctx context.Context) error {
			return read(ctx, `{}`, &document.FindOptions{Projection: document.JSON(`{"x": ` + long + `}`)})
		},
		"backwards": func(ctx context.Context) error {
			return read(ctx, matching, &document.FindOptions{Sort: document.JSON(`{"$natural": -1}`)})
		},
		"$project": func(ctx context.Context) error { return run(ctx, `[{"$project": {"x": `+long+`}}]`) },
		"ts sorted": func(ctx context.Context) error {
			return run(ctx, `[{"$match": `+string(matching)+`}, {"$sort": {"ts": -1}}]`)
		},
	} {
		if err := call(&impatient{context.Background(), 50}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"forwards": func(ctx context.Context) error { return read(ctx, matching, nil) },
		"$match":   func(ctx context.Context) error { return run(ctx, `[{"$match": `+string(matching)+`}]`) },
	} {
		given, giveUp := context.WithCancel(ctx)
		time.AfterFunc(10*time.Millisecond, giveUp)
		if err := call(given); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
