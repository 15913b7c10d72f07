package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestTimeOfTheCluster: $$CLUSTER_TIME is the time of the newest write, the same in a whole call, wherever there are expressions. Without a
// history there is none.
func TestTimeOfTheCluster(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	newest := s.LastTime()
	set := bson.A{document.JSON(`{"$set": {"at": "$$CLUSTER_TIME", "again": ["$$CLUSTER_TIME"]}}`)}
	if r, err := c.Update(ctx, document.JSON(`{}`), set, nil); err != nil || r.Modified != 1 {
		t.Fatalf("update: %v, %v", r, err)
	}
	var got struct {
		At    bson.Timestamp
		Again []bson.Timestamp
	}
	raw, err := c.FindOne(ctx, document.JSON(`{"$expr": {"$lt": ["$at", "$$CLUSTER_TIME"]}}`), nil)
	must(t, err)
	must(t, bson.Unmarshal(raw, &got))
	if got.At != newest || len(got.Again) != 1 || got.Again[0] != newest {
		t.Errorf("%v, want %v", got, newest)
	}
	cursor, err := c.OpenAggregate(ctx, pipeline(t, `[{"$lookup": {"from": "c", "as": "r", "pipeline": [{"$match": {"$expr": {"$gt": ["$$CLUSTER_TIME", "$at"]}}}]}}]`), nil)
	must(t, err)
	if !cursor.Next(ctx) {
		t.Errorf("no document: %v", cursor.Err())
	}
	must(t, cursor.Close())

	bare, err := document.Open("bare", &document.Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1, History: -1})
	must(t, err)
	defer func() { must(t, bare.Close()) }()
	if _, err := collection(t, bare, "c", nil).OpenFind(ctx, document.JSON(`{"$expr": "$$CLUSTER_TIME"}`), nil); document.CodeOf(err) != 51144 {
		t.Errorf("without a history: %v", err)
	}
	if _, err := bare.OpenWatch(ctx, nil, nil); document.CodeOf(err) != 40573 {
		t.Errorf("a change stream without a history: %v", err)
	}
}
