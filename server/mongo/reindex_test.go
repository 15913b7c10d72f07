package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A reIndex that ends early leaves the indexes as they were: it dropped them first, and they were gone, with what they had kept out.
func TestReIndexThatFailsLeavesTheIndexes(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	docs := make([]bson.D, 20_000)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "u", Value: i}, {Key: "list", Value: bson.A{i, -i - 1}}}
	}
	coll := s.store.Database("d").Lookup("c")
	if _, err := coll.InsertMany(t.Context(), docs, nil); err != nil {
		t.Fatal(err)
	}
	c.must("d", cmd("createIndexes", "c", "indexes", bson.A{
		cmd("key", cmd("u", 1), "name", "u_1", "unique", true), cmd("key", cmd("list", 1), "name", "list_1"),
	}))
	before := c.must("d", cmd("listIndexes", "c")).Lookup("cursor", "firstBatch")
	failed := 0
	for ms := 1; ; ms *= 2 {
		ended := c.run("d", cmd("reIndex", "c", "maxTimeMS", ms)).Lookup("ok").Double() == 1
		if now := c.must("d", cmd("listIndexes", "c")).Lookup("cursor", "firstBatch"); !now.Equal(before) {
			t.Fatalf("the indexes are %s", now)
		}
		twice := c.run("d", cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", 1), "u", cmd("$set", cmd("u", 2)))}))
		if twice.Lookup("writeErrors").Type == 0 {
			t.Fatalf("a value that is there: %s", twice)
		}
		if ended {
			break
		}
		failed++
	}
	if failed == 0 {
		t.Skip("it never failed")
	}
	reply := c.must("d", cmd("validate", "c"))
	if !reply.Lookup("valid").Boolean() || reply.Lookup("keysPerIndex", "list_1").Int32() != 40_000 {
		t.Errorf("after that: %s", reply)
	}
	if n := c.must("d", cmd("count", "c", "query", cmd("list", 7), "hint", "list_1")).Lookup("n").Int32(); n != 1 {
		t.Errorf("%d documents are found by the list", n)
	}
}
