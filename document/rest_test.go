package document_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// restBytes is how large the documents of these tests are: their records lie apart, and 16 of them are more than a lookup keeps.
const restBytes = 100 << 10

// restCollection has 40 large documents, in a store that has settled most of them.
func restCollection(t *testing.T) *document.Collection {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for _, keys := range []string{`{"n": 1}`, `{"few": 1, "n": 1}`, `{"list": 1}`, `{"at": "2dsphere"}`} {
		_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(keys)})
		must(t, err)
	}
	random := rand.NewChaCha8([32]byte{1})
	for i := range 40 {
		data := make([]byte, restBytes)
		_, _ = random.Read(data)
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i % 10}, {Key: "few", Value: i % 2}, {Key: "list", Value: bson.A{i % 3, 7}},
			{Key: "at", Value: bson.D{{Key: "type", Value: "Point"}, {Key: "coordinates", Value: bson.A{i, 0}}}}, {Key: "data", Value: data}})
		must(t, err)
		if i == 30 {
			must(t, s.DB().Checkpoint(ctx))
		}
	}
	must(t, s.Database("test").Create(ctx, "view", document.JSON(`{"viewOn": "c", "pipeline": [{"$match": {"n": {"$gt": 2}}}, {"$unwind": "$list"}]}`)))
	return c
}

// restCursors are cursors over what has large documents, by how they come to them.
func restCursors(t *testing.T, c *document.Collection) map[string]func() (*document.Cursor, error) {
	found := func(filter string, o *document.FindOptions) func() (*document.Cursor, error) {
		return func() (*document.Cursor, error) { return c.OpenFind(ctx, document.JSON(filter), o) }
	}
	piped := func(stages string) func() (*document.Cursor, error) {
		return func() (*document.Cursor, error) { return c.OpenAggregate(ctx, pipeline(t, stages), nil) }
	}
	sorted := document.JSON(`{"n": 1}`)
	return map[string]func() (*document.Cursor, error){
		"all":         found(`{}`, nil),
		"filter":      found(`{"data": {"$exists": true}}`, nil),
		"_id":         found(`{"_id": 3}`, nil),
		"several _id": found(`{"_id": {"$in": [3, 5, 33]}}`, nil),
		"lookup":      found(`{"few": 1}`, nil),
		"index":       found(`{"n": {"$gt": 3}}`, nil),
		"multikey":    found(`{"list": {"$in": [0, 1, 7]}}`, nil),
		"or":          found(`{"$or": [{"n": 3}, {"list": 1}]}`, nil),
		"merge":       found(`{"$or": [{"n": {"$lt": 3}}, {"few": 1}]}`, &document.FindOptions{Sort: sorted}),
		"sort":        found(`{}`, &document.FindOptions{Sort: document.JSON(`{"data": 1}`)}),
		"limit":       found(`{}`, &document.FindOptions{Skip: 2, Limit: 20}),
		"projection":  found(`{}`, &document.FindOptions{Projection: document.JSON(`{"data": 1}`)}),
		"near":        found(`{"at": {"$near": {"$geometry": {"type": "Point", "coordinates": [20, 0]}}}}`, nil),
		"distance": found(`{"at": {"$near": {"$geometry": {"type": "Point", "coordinates": [20, 0]}}}}`, &document.FindOptions{
			Projection: document.JSON(`{"data": 1, "far": {"$meta": "geoNearDistance"}}`)}),
		"record id": found(`{}`, &document.FindOptions{ShowRecordID: true}),
		"pipeline":  piped(`[{"$match": {"few": 1}}, {"$set": {"more": "$n"}}, {"$unwind": "$list"}, {"$set": {"more": {"$add": ["$more", "$list"]}}}]`),
		"join":      piped(`[{"$lookup": {"from": "c", "localField": "n", "foreignField": "_id", "as": "same"}}, {"$unwind": "$same"}]`),
		"union":     piped(`[{"$match": {"few": 1}}, {"$unionWith": {"coll": "c", "pipeline": [{"$match": {"few": 0}}]}}]`),
		"matches":   piped(`[{"$lookup": {"from": "c", "localField": "n", "foreignField": "n", "as": "same"}}]`),
		"part":      piped(`[{"$redact": "$$KEEP"}, {"$skip": 3}, {"$limit": 30}]`),
		"inner": piped(`[{"$match": {"few": 1}}, {"$lookup": {"from": "c", "let": {"n": "$n"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$n", "$$n"]}}}],
			"as": "same"}}, {"$unwind": "$same"}]`),
		"inner matches": piped(`[{"$match": {"few": 1}}, {"$lookup": {"from": "c", "let": {"n": "$n"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$n", "$$n"]}}}],
			"as": "same"}}]`),
		"graph":  piped(`[{"$graphLookup": {"from": "c", "startWith": "$n", "connectFromField": "n", "connectToField": "_id", "as": "path"}}]`),
		"window": piped(`[{"$setWindowFields": {"partitionBy": "$few", "sortBy": {"_id": 1}, "output": {"sum": {"$sum": "$n", "window": {"documents": [-1, 1]}}, "rank": {"$rank": {}}}}}]`),
		"group":  piped(`[{"$group": {"_id": "$n", "data": {"$push": "$data"}}}, {"$sort": {"_id": 1}}]`),
		"groups": piped(`[{"$sort": {"_id": 1}}, {"$group": {"_id": "$n", "data": {"$push": "$data"}}}]`),
		"facet":  piped(`[{"$facet": {"one": [{"$sort": {"_id": 1}}, {"$limit": 3}], "other": [{"$sort": {"_id": -1}}, {"$limit": 3}]}}, {"$unwind": "$one"}]`),
		"dense":  piped(`[{"$densify": {"field": "_id", "range": {"step": 0.5, "bounds": "full"}}}]`),
		"view": func() (*document.Cursor, error) {
			return c.Database().Lookup("view").OpenFind(ctx, nil, &document.FindOptions{Projection: document.JSON(`{"data": 1, "list": 1}`)})
		},
	}
}

// TestRest: a cursor that gives its memory back whenever it can gives the same documents.
func TestRest(t *testing.T) {
	c := restCollection(t)
	for name, query := range restCursors(t, c) {
		var list [3][][]byte
		for every := range list { // 0: never
			cursor, err := query()
			must(t, err)
			if every > 0 {
				cursor.Rest()
			}
			for cursor.Next(ctx) {
				list[every] = append(list[every], bytes.Clone(cursor.Current()))
				if every > 0 && len(list[every])%every == 0 {
					cursor.Rest()
				}
			}
			must(t, cursor.Err())
			cursor.Rest()
			must(t, cursor.Close())
		}
		if len(list[0]) == 0 {
			t.Errorf("%s: no documents", name)
		}
		for every := 1; every < len(list); every++ {
			if !slices.EqualFunc(list[0], list[every], bytes.Equal) {
				t.Errorf("%s: %d documents where there are %d, or others, with a rest after %d", name, len(list[every]), len(list[0]), every)
			}
		}
	}
}

// TestCursorsThatRestAreSmall: many cursors over large documents, which nobody reads on, take a small part of what the documents take.
func TestCursorsThatRestAreSmall(t *testing.T) {
	c := restCollection(t)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const cursors = 50
	for _, name := range []string{"all", "filter", "lookup", "index", "projection", "record id", "inner matches", "graph", "part"} {
		query := restCursors(t, c)[name]
		before := heap()
		list := make([]*document.Cursor, cursors)
		for i := range list {
			var err error
			list[i], err = query()
			must(t, err)
			for range 2 {
				if !list[i].Next(ctx) {
					t.Fatalf("%s: ended: %v", name, list[i].Err())
				}
			}
			list[i].Rest()
		}
		if each := (heap() - before) / cursors; each > restBytes/4 {
			t.Errorf("%s: a cursor that rests holds %d bytes", name, each)
		}
		for _, cursor := range list {
			must(t, cursor.Close())
		}
	}
}
