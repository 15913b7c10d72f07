package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestRefusedArguments has commands that MongoDB refuses with the same codes, and that must have no effect.
func TestRefusedArguments(t *testing.T) {
	c := filled(t, 5, &Options{})
	deletes := func(statements ...any) bson.D { return cmd("delete", "c", "deletes", bson.A(statements)) }
	all := cmd("q", bson.D{}, "limit", 0)
	for _, test := range []struct {
		command bson.D
		code    int32
	}{
		{deletes(all, cmd("q", bson.D{})), 40414},
		{deletes(all, cmd("limit", 1)), 40414},
		{deletes(all, cmd("q", bson.D{}, "limit", 2)), 9},
		{deletes(all, cmd("q", bson.D{}, "limit", "all")), 9},
		{cmd("find", "c", "limit", -1), 51024},
		{cmd("find", "c", "skip", -1), 51024},
		{cmd("find", "c", "batchSize", -1), 51024},
		{cmd("count", "c", "skip", -1), 51024},
		{cmd("distinct", "c", "key", ""), 40352},
		{cmd("distinct", "c", "key", "a."), 40353},
		{cmd("distinct", "c", "key", "a..b"), 15998},
		{cmd("distinct", "c", "key", "$a"), 16410},
		{cmd("distinct", "c", "key", "a\x00b"), 16411},
	} {
		c.refused("d", test.command, test.code)
	}
	if n := c.must("d", cmd("count", "c")).Lookup("n").AsInt64(); n != 5 {
		t.Errorf("%d documents are left", n)
	}
}

// TestIndexesOfTheSameFields: indexes that differ in what they hold, or make sure of, may have the same fields.
func TestIndexesOfTheSameFields(t *testing.T) {
	c := filled(t, 5, &Options{})
	create := func(spec bson.D) bson.D {
		return cmd("createIndexes", "c", "indexes", bson.A{append(cmd("key", cmd("t", 1)), spec...)})
	}
	c.must("d", create(cmd("name", "plain")))
	c.must("d", create(cmd("name", "sparse", "sparse", true)))
	c.must("d", create(cmd("name", "unique", "unique", true, "partialFilterExpression", cmd("t", cmd("$gt", 9)))))
	c.must("d", create(cmd("name", "plain")))
	c.refused("d", create(cmd("name", "other")), 85)
	c.refused("d", create(cmd("name", "plain", "expireAfterSeconds", 5)), 85)
	c.refused("d", create(cmd("name", "plain", "sparse", true)), 86)
	c.refused("d", create(cmd("name", "unique")), 86)
	c.refused("d", create(cmd("name", "plain", "unique", true)), 86)
	c.refused("d", cmd("dropIndexes", "c", "index", cmd("t", 1)), 181)
	c.must("d", cmd("dropIndexes", "c", "index", "sparse"))
}
