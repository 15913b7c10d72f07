package document_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestOpenSortsShareTheirMemory opens more cursors over sorts and groups than there is memory for: those that come late spill, or fail where
// they must not, all give the same, and when they are closed everything has been given back.
func TestOpenSortsShareTheirMemory(t *testing.T) {
	files := memfs.New()
	s, err := document.Open("db", &document.Options{
		Storage: pando.Options{FS: files, MemoryBytes: 8 << 20}, TTLInterval: -1, QueryMemoryBytes: 8 << 20, TotalQueryMemoryBytes: 5 << 20,
	})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	c := collection(t, s, "c", nil)
	const count = 2000
	var docs []any
	for i := range count {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "k", Value: i * 7919 % count}, {Key: "p", Value: bytes.Repeat([]byte{'x'}, 1000)}})
	}
	_, err = c.InsertMany(ctx, docs, nil)
	must(t, err)
	spilled := func() int {
		names, err := files.List("db/scratch")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return len(names)
	}
	order := document.JSON(`{"k": 1}`)
	pipelines := []any{
		document.JSON(`[{"$sort": {"k": 1}}, {"$project": {"k": 1}}]`),
		document.JSON(`[{"$group": {"_id": "$k", "k": {"$first": "$k"}, "p": {"$push": "$p"}}}, {"$sort": {"_id": 1}}]`),
		document.JSON(`[{"$setWindowFields": {"sortBy": {"k": 1}, "output": {"n": {"$sum": 1}}}}]`),
	}
	var cursors []*document.Cursor
	closeAll := func() {
		for _, cursor := range cursors {
			must(t, cursor.Close())
		}
		cursors = nil
		if n := spilled(); n != 0 {
			t.Errorf("%d files are left behind", n)
		}
	}
	begin := func(cursor *document.Cursor, err error) {
		t.Helper()
		must(t, err)
		cursors = append(cursors, cursor)
		if !cursor.Next(ctx) {
			t.Fatal(cursor.Err())
		}
	}
	for range 3 { // what a round leaves taken would be missing in the next one
		begin(c.OpenFind(ctx, nil, &document.FindOptions{Sort: order}))
		if n := spilled(); n != 0 {
			t.Fatalf("the first one has spilled to %d files", n)
		}
		for _, p := range pipelines {
			begin(c.OpenAggregate(ctx, p, nil))
		}
		if spilled() == 0 {
			t.Error("none has spilled, though there is not as much memory")
		}
		refused, err := c.OpenFind(ctx, nil, &document.FindOptions{Sort: order, NoSpill: true})
		if err == nil {
			for refused.Next(ctx) {
			}
			err = errors.Join(refused.Err(), refused.Close())
		}
		if document.CodeOf(err) != document.Code(292) {
			t.Errorf("one that must not spill: %v", err)
		}
		for i, cursor := range cursors {
			if n, err := counted(cursor, 1); n != count || err != nil {
				t.Fatalf("cursor %d: %d documents, %v", i, n, err)
			}
		}
		closeAll()
	}
}

// counted reads the rest of a cursor whose documents have the numbers from n on as k.
func counted(cursor *document.Cursor, n int) (int, error) {
	for ; cursor.Next(ctx); n++ {
		if k, err := cursor.Current().LookupErr("k"); err != nil || k.AsInt64() != int64(n) {
			return n, errors.Join(err, fmt.Errorf("document %d has k %v", n, k))
		}
	}
	return n, cursor.Err()
}

// TestUnspillableStagesShareTheirMemory opens cursors over what cannot spill until there is no memory left. However they end, what they held
// can be had again.
func TestUnspillableStagesShareTheirMemory(t *testing.T) {
	s, err := document.Open("db", &document.Options{
		Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1, QueryMemoryBytes: 4 << 20, TotalQueryMemoryBytes: 4 << 20,
	})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	c := collection(t, s, "c", nil)
	var docs []any
	for i := range 5000 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "next", Value: i + 1}})
	}
	_, err = c.InsertMany(ctx, docs, nil)
	must(t, err)
	dense := document.JSON(`[{"$densify": {"field": "_id", "partitionByFields": ["next"], "range": {"step": 9000, "bounds": [0, 9000]}}}, {"$skip": 4000}]`)
	search := document.JSON(`[{"$limit": 1}, {"$graphLookup": {"from": "c", "startWith": {"$range": [0, 5000]}, "connectFromField": "next", "connectToField": "_id", "as": "r"}}]`)
	run := func(stages any) error {
		for _, err := range c.Aggregate(ctx, stages, nil) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for round := range 4 {
		var cursors []*document.Cursor
		for {
			cursor, err := c.OpenAggregate(ctx, dense, nil)
			must(t, err)
			cursors = append(cursors, cursor)
			if !cursor.Next(ctx) {
				break
			}
		}
		if err := cursors[len(cursors)-1].Err(); document.CodeOf(err) != 6007200 {
			t.Fatalf("round %d: %v", round, err)
		}
		err := run(search)
		if document.CodeOf(err) != 40099 {
			t.Errorf("round %d, with %d cursors open: %v", round, len(cursors), err)
		}
		for i, cursor := range cursors {
			stopped, stop := context.WithCancel(ctx)
			if i%2 == 0 {
				stop()
			}
			for i%3 > 0 && cursor.Next(stopped) {
			}
			stop()
			must(t, cursor.Close())
		}
		must(t, run(search))
	}
}
