package mongo

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// TestValidateCountsTheEntriesOfIndexes: an index has as many keys as the documents have values for it.
func TestValidateCountsTheEntriesOfIndexes(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("createIndexes", "c", "indexes", bson.A{
		cmd("key", cmd("list", 1), "name", "list"), cmd("key", cmd("none", 1), "name", "none", "sparse", true), cmd("key", cmd("_id", "hashed"), "name", "hashed"),
	}))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1, "list", bson.A{1, 2, 3, 4}), cmd("_id", 2, "list", bson.A{5, 6})}))
	for _, full := range []bool{false, true} {
		reply := c.must("d", cmd("validate", "c", "full", full))
		for name, want := range map[string]int64{"_id_": 2, "list": 6, "none": 0, "hashed": 2} {
			if got := reply.Lookup("keysPerIndex", name).AsInt64(); got != want || !reply.Lookup("indexDetails", name, "valid").Boolean() {
				t.Errorf("%s has %d keys, not %d: %s", name, got, want, reply)
			}
		}
		if !reply.Lookup("valid").Boolean() || reply.Lookup("nrecords").AsInt64() != 2 {
			t.Errorf("%s", reply)
		}
	}
}

// TestAnInterruptedValidateSaysNothingOfTheCollection: who ends the command is told that, and not that the collection is damaged.
func TestAnInterruptedValidateSaysNothingOfTheCollection(t *testing.T) {
	s := newServer(t, nil)
	dial(t, s).must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kind, name, err := bson.MarshalValue("c")
	if err != nil {
		t.Fatal(err)
	}
	r := &request{server: s, ctx: ctx, name: "validate", command: s.commands["validate"], db: "d", target: bsoncore.Value{Type: bsoncore.Type(kind), Data: name}}
	if reply, err := r.validate(); !errors.Is(err, context.Canceled) {
		t.Errorf("%s, %v", reply, err)
	}
}
