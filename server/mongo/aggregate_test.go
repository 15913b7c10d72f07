package mongo

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestAggregateTakesNoNamesThatNoCollectionHas: those are refused, by explain too, and what they were called does not keep top from
// answering. The answers are those of a mongod 6.0.5.
func TestAggregateTakesNoNamesThatNoCollectionHas(t *testing.T) {
	c := dial(t, newServer(t, nil))
	for name, code := range map[string]int32{"a\x00b": 73, "a$\x00b": 73, ".a": 73, "": 73, "$a": 0, "a$b": 0, "a.": 0, "system.foo": 0} {
		command := cmd("aggregate", name, "pipeline", bson.A{}, "cursor", bson.D{})
		for _, command := range []bson.D{command, cmd("explain", command)} {
			if reply := c.run("d", command); codeIn(reply) != code {
				t.Errorf("%q: code %d is wanted: %s", command, code, reply)
			}
		}
	}
	c.must("admin", cmd("ping", "a\x00b"))
	c.run("d", cmd("killCursors", "a\x00b", "cursors", bson.A{int64(1)}))
	c.must("admin", cmd("top", 1))
}

// TestExplainOfAnAggregationKnowsItsOptions: variables and the collation are those of the command.
func TestExplainOfAnAggregationKnowsItsOptions(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1, "a", "x")}))
	rules := cmd("locale", "en", "strength", 2)
	c.must("d", cmd("createIndexes", "c", "indexes", bson.A{cmd("key", cmd("a", 1), "name", "a", "collation", rules)}))
	variables := bson.A{cmd("$match", cmd("$expr", cmd("$eq", bson.A{"$a", "$$v"})))}
	c.must("d", cmd("explain", cmd("aggregate", "c", "pipeline", variables, "cursor", bson.D{}, "let", cmd("v", "x"))))
	plan := c.must("d", cmd("explain", cmd("aggregate", "c", "pipeline", bson.A{cmd("$match", cmd("a", "X"))}, "cursor", bson.D{}, "collation", rules)))
	if !strings.Contains(plan.String(), "IXSCAN") {
		t.Errorf("the index of the collation is not used: %s", plan)
	}
	c.refused("d", cmd("explain", cmd("aggregate", "c", "pipeline", bson.A{}, "let", 1)), 14)
}

// TestOptionsOfChangeStreamsThatAreNull: drivers send null for what a program leaves open, as for the token of a stream that begins.
func TestOptionsOfChangeStreamsThatAreNull(t *testing.T) {
	c := dial(t, newServer(t, nil))
	watch := func(spec bson.D) bson.D { return pipe("c", stage("$changeStream", spec)) }
	c.must("d", watch(cmd("resumeAfter", nil, "startAfter", nil, "startAtOperationTime", nil, "fullDocument", nil, "fullDocumentBeforeChange", nil)))
	for _, truth := range []string{"showExpandedEvents", "allChangesForCluster"} {
		c.refused("d", watch(cmd(truth, nil)), 14)
	}
}
