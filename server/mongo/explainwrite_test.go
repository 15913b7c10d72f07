package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Explanations of writes have the stage of the write over those that find its documents, as many of them as it would change, and write
// nothing.
func TestExplainedWrites(t *testing.T) {
	c := filled(t, 4, &Options{})
	update := func(multi bool) bson.D {
		return cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", cmd("$gt", 1)), "u", cmd("$set", cmd("x", 1)), "multi", multi)})
	}
	remove := func(limit int) bson.D {
		return cmd("delete", "c", "deletes", bson.A{cmd("q", cmd("_id", cmd("$gt", 1)), "limit", limit)})
	}
	modify := func(option string, value any) bson.D {
		return cmd("findAndModify", "c", "query", cmd("_id", cmd("$gt", 1)), "sort", cmd("x", 1), option, value)
	}
	for _, x := range []struct {
		command             bson.D
		stage, below, count string
		counted, returned   int64
	}{
		{command: update(false), stage: "UPDATE", below: "FETCH", count: "nMatched", counted: 1},
		{command: update(true), stage: "UPDATE", below: "FETCH", count: "nMatched", counted: 2},
		{command: remove(1), stage: "DELETE", below: "FETCH", count: "nWouldDelete", counted: 1},
		{command: remove(0), stage: "DELETE", below: "FETCH", count: "nWouldDelete", counted: 2},
		{command: modify("update", cmd("$set", cmd("x", 1))), stage: "UPDATE", below: "SORT", count: "nMatched", counted: 1, returned: 1},
		{command: modify("remove", true), stage: "DELETE", below: "SORT", count: "nWouldDelete", counted: 1, returned: 1},
	} {
		reply := c.must("d", cmd("explain", x.command, "verbosity", "executionStats"))
		for _, at := range [][]string{{"queryPlanner", "winningPlan"}, {"executionStats", "executionStages"}} {
			stage := reply.Lookup(at...).Document()
			if got := textIn(stage, "stage"); got != x.stage {
				t.Errorf("%v: the stage is %s, want %s", x.command, got, x.stage)
			}
			if got := textIn(stage, "inputStage", "stage"); got != x.below {
				t.Errorf("%v: %s is below, want %s", x.command, got, x.below)
			}
		}
		if n := reply.Lookup("executionStats", "executionStages", x.count).AsInt64(); n != x.counted {
			t.Errorf("%v: %s is %d, want %d", x.command, x.count, n, x.counted)
		}
		if n := reply.Lookup("executionStats", "nReturned").AsInt64(); n != x.returned {
			t.Errorf("%v: nReturned is %d, want %d", x.command, n, x.returned)
		}
	}
	if n := c.must("d", cmd("count", "c", "query", cmd("x", nil))).Lookup("n").AsInt64(); n != 4 {
		t.Errorf("%d documents are as they were, want all 4", n)
	}
}

// What tools read of an execution is there for a collection that is not, too.
func TestExplainedWithoutCollection(t *testing.T) {
	c := filled(t, 1, &Options{})
	for _, command := range []bson.D{
		cmd("find", "none"), cmd("delete", "none", "deletes", bson.A{cmd("q", bson.D{}, "limit", 1)}), cmd("findAndModify", "none", "remove", true),
	} {
		reply := c.must("d", cmd("explain", command, "verbosity", "executionStats"))
		if stage := textIn(reply, "executionStats", "executionStages", "stage"); stage != "EOF" {
			t.Errorf("%v: the stage is %q, want EOF", command, stage)
		}
	}
}
