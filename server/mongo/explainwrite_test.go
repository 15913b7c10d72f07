package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
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

// What a write refuses, its explanation refuses too: it is of no use to be told how something is found that is never changed.
func TestExplainedWritesAreReadAsWrites(t *testing.T) {
	c := filled(t, 4, &Options{})
	statement := func(name, field string) func(fields ...any) bson.D {
		return func(fields ...any) bson.D {
			return cmd(name, "c", field, bson.A{cmd(fields[0].(string), fields[1], fields[2:]...)})
		}
	}
	update, remove := statement("update", "updates"), statement("delete", "deletes")
	modify := func(fields ...any) bson.D { return cmd("findAndModify", "c", fields...) }
	set, all := cmd("$set", cmd("a", 1)), bson.D{}
	for _, x := range []struct {
		command bson.D
		code    int32
	}{
		{command: update("q", all, "u", set, "bad", 1), code: int32(codeUnknownField)},
		{command: update("q", all), code: int32(codeMissingField)},
		{command: update("u", set), code: int32(codeMissingField)},
		{command: update("q", nil, "u", set), code: int32(codeMissingField)},
		{command: update("q", all, "u", 5), code: int32(document.FailedToParse)},
		{command: update("q", all, "u", set, "multi", "x"), code: int32(document.TypeMismatch)},
		{command: update("q", all, "u", set, "arrayFilters", bson.A{5}), code: int32(document.TypeMismatch)},
		{command: update("q", all, "u", bson.A{cmd("$bad", 1)}), code: int32(codeUnknownStage)},
		{command: cmd("update", "c", "updates", bson.A{}), code: int32(codeInvalidLength)},
		{command: remove("q", all), code: int32(codeMissingField)},
		{command: remove("limit", 1), code: int32(codeMissingField)},
		{command: remove("q", 5, "limit", 1), code: int32(document.TypeMismatch)},
		{command: remove("q", all, "limit", 2), code: int32(document.FailedToParse)},
		{command: remove("q", all, "limit", 1.5), code: int32(document.FailedToParse)},
		{command: remove("q", all, "limit", 1, "bad", 1), code: int32(codeUnknownField)},
		{command: modify("query", all), code: int32(document.FailedToParse)},
		{command: modify("remove", true, "update", set), code: int32(document.FailedToParse)},
		{command: modify("remove", true, "new", true), code: int32(document.FailedToParse)},
		{command: modify("update", set, "fields", cmd("a", 1, "b", 0)), code: 31254},
		{command: modify("update", set, "arrayFilters", bson.A{cmd("k", 1)}), code: int32(document.FailedToParse)},
		{command: modify("new", "x", "update", set), code: int32(document.TypeMismatch)},
	} {
		c.refused("d", x.command, x.code)
		c.refused("d", cmd("explain", x.command, "verbosity", "queryPlanner"), x.code)
	}
	// These are errors of a statement, not of a command.
	for _, command := range []bson.D{
		update("q", all, "u", cmd("a", 1), "multi", true), update("q", all, "u", cmd("$bad", cmd("a", 1))),
	} {
		c.refused("d", cmd("explain", command, "verbosity", "queryPlanner"), int32(document.FailedToParse))
	}
	c.refused("d", cmd("explain", cmd("delete", "c", "deletes", bson.A{cmd("q", all, "limit", 1), cmd("q", all, "limit", 1)})), int32(codeInvalidLength))
}
