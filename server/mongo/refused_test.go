package mongo

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestRefusedArguments has commands that MongoDB refuses with the same codes, and that must have no effect.
func TestRefusedArguments(t *testing.T) {
	c := filled(t, 5, &Options{})
	c.must("d", cmd("create", "capped", "capped", true, "size", 4096))
	deletes := func(statements ...any) bson.D { return cmd("delete", "c", "deletes", bson.A(statements)) }
	change := cmd("q", bson.D{}, "u", cmd("$set", cmd("changed", true)))
	all := cmd("q", bson.D{}, "limit", 0)
	for _, test := range []struct {
		command bson.D
		code    int32
	}{
		{deletes(all, cmd("q", bson.D{})), 40414},
		{deletes(all, cmd("limit", 1)), 40414},
		{deletes(all, cmd("q", bson.D{}, "limit", 2)), 9},
		{deletes(all, cmd("q", bson.D{}, "limit", "all")), 9},
		{cmd("update", "c", "updates", bson.A{change, cmd("q", 1, "u", bson.D{})}), 14},
		{cmd("update", "c", "updates", bson.A{change, cmd("q", bson.D{}, "u", bson.D{}, "unknown", 1)}), 40415},
		{cmd("update", "c", "updates", bson.A{change, cmd("q", bson.D{}, "u", cmd("$set", cmd("a", 1)), "c", 1)}), 14},
		{cmd("explain", cmd("update", "c", "updates", bson.A{cmd("q", bson.D{}, "u", cmd("$set", cmd("a", 1)), "c", cmd("x", 1))})), 51198},
		{cmd("find", "c", "min", cmd("_id", 1), "max", cmd("a", 1), "hint", cmd("_id", 1)), 51176},
		{cmd("find", "none", "min", cmd("a", 1, "b", 1), "max", cmd("b", 1, "a", 1)), 51176},
		{cmd("find", "c", "min", cmd("a", 1), "max", cmd("a", 2), "hint", cmd("_id", 1)), 51174},
		{cmd("findAndModify", "c", "query", bson.D{}, "remove", true, "arrayFilters", bson.A{}), 9},
		{cmd("update", "c", "updates", bson.A{change, cmd("q", bson.D{}, "u", bson.A{1})}), 14},
		{cmd("update", "c", "updates", bson.A{change, cmd("q", bson.D{}, "u", bson.A{bson.D{}})}), 40323},
		{cmd("find", "c", "filter", cmd("_id", 1), "sort", cmd("a", 1, "$x", 1)), 16410},
		{cmd("find", "c", "filter", cmd("_id", 1), "sort", cmd("a.$x", 1)), 16410},
		{cmd("find", "c", "filter", cmd("_id", 1), "sort", cmd("a..b", 1)), 15998},
		{cmd("find", "none", "sort", cmd("a.", 1)), 40353},
		{cmd("findAndModify", "c", "query", cmd("_id", 1), "remove", true, "sort", cmd("$x", 1)), 16410},
		{cmd("find", "capped", "tailable", true, "singleBatch", true), 2},
		{cmd("find", "capped", "tailable", true, "sort", cmd("a", 1)), 2},
		{cmd("find", "capped", "tailable", true, "sort", cmd("$natural", -1)), 2},
		{cmd("create", "v", "validator", cmd("$expr", cmd("$lt", bson.A{0.5, cmd("$rand", bson.D{})}))), 3040500},
		{cmd("create", "v", "validator", cmd("$sampleRate", 0.5)), 3040500},
		{cmd("create", "v", "validator", cmd("a", cmd("$near", bson.A{1, 1}))), 5626500},
		{cmd("create", "v", "validator", cmd("$unknown", 1), "validationLevel", "off"), 2},
		{cmd("collMod", "c", "validator", cmd("$expr", cmd("$rand", bson.D{}))), 3040500},
		{cmd("find", "c", "limit", -1), 51024},
		{cmd("find", "c", "skip", -1), 51024},
		{cmd("find", "c", "batchSize", -1), 51024},
		{cmd("count", "c", "skip", -1), 51024},
		{cmd("insert", "$cmd", "documents", bson.A{cmd("_id", 1)}), 73},
		{cmd("find", "$cmd"), 73},
		{cmd("find", "c", "let", cmd("A", 1)), 9},
		{cmd("aggregate", "c", "pipeline", bson.A{}, "cursor", bson.D{}, "let", cmd("a-b", 1)), 9},
		{cmd("distinct", "c", "key", ""), 40352},
		{cmd("distinct", "c", "key", "a."), 40353},
		{cmd("distinct", "c", "key", "a..b"), 15998},
		{cmd("distinct", "c", "key", "$a"), 16410},
		{cmd("distinct", "c", "key", "a\x00b"), 16411},
	} {
		c.refused("d", test.command, test.code)
	}
	c.must("d", cmd("create", "all", "validator", cmd("$sampleRate", 1))) // as nothing is left to chance
	if n := c.must("d", cmd("count", "c", "query", cmd("changed", cmd("$exists", false)))).Lookup("n").AsInt64(); n != 5 {
		t.Errorf("%d documents are left as they were", n)
	}
}

// What is of a wrong type, or names nothing, is refused before anything is done; numbers may be of any type.
func TestRefusedTypes(t *testing.T) {
	c := filled(t, 5, &Options{})
	change := cmd("$set", cmd("changed", true))
	deletes := func(statement bson.D) bson.D { return cmd("delete", "c", "deletes", bson.A{statement}) }
	aggregate := func(name, stage string, spec any) bson.D {
		return cmd("aggregate", name, "pipeline", bson.A{cmd(stage, spec)}, "cursor", bson.D{})
	}
	decimal := func(s string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, test := range []struct {
		command bson.D
		code    int32
	}{
		{cmd("find", "c", "batchSize", decimal("-1E+50")), 51024},
		{cmd("collStats", "c", "scale", 0), 51024},
		{cmd("dbStats", 1, "scale", 0), 51024},
		{cmd("compact", "none"), 26},
		{cmd("update", "c", "updates", bson.A{cmd("q", bson.D{}, "u", change, "hint", 5)}), 9},
		{cmd("update", "c", "updates", bson.A{cmd("q", bson.D{}, "u", change, "collation", 5)}), 14},
		{deletes(cmd("q", bson.D{}, "limit", 0, "hint", bson.A{})), 9},
		{deletes(cmd("q", bson.D{}, "limit", 0, "collation", "en")), 14},
		{cmd("find", "c", "lsid", cmd("id", 5)), 14},
		{cmd("find", "c", "lsid", bson.D{}), 40414},
		{cmd("find", "c", "lsid", cmd("id", bson.Binary{Subtype: 4, Data: []byte{1}})), 207},
		{aggregate("c", "$lookup", cmd("from", "", "localField", "a", "foreignField", "b", "as", "x")), 73},
		{aggregate("c", "$lookup", cmd("localField", "a", "foreignField", "b", "as", "x")), 9},
		{aggregate("c", "$graphLookup", cmd("from", "", "startWith", "$a", "connectFromField", "a", "connectToField", "b", "as", "x")), 73},
		{aggregate("c", "$unionWith", ""), 73},
		{aggregate("c", "$unionWith", cmd("coll", "")), 73},
		{cmd("find", "c", "filter", cmd("p", cmd("$geoWithin", cmd("$centerSphere", bson.A{bson.A{1, 2, 3}, 0.1})))), 2},
		{cmd("find", "c", "filter", cmd("p", cmd("$geoWithin", cmd("$box", bson.A{bson.A{1, 2, 3}, bson.A{4, 5}})))), 2},
	} {
		c.refused("d", test.command, test.code)
	}
	for _, accepted := range []bson.D{ // numbers of all types, without their fraction, and null for no collation
		cmd("find", "c", "limit", decimal("1.5"), "batchSize", decimal("1"), "skip", decimal("NaN"), "maxTimeMS", decimal("100000")),
		cmd("find", "c", "skip", 1e30),
		cmd("findAndModify", "c", "query", cmd("_id", -1), "remove", decimal("0.5")),
		deletes(cmd("q", cmd("_id", -1), "limit", decimal("1"), "collation", nil)),
	} {
		c.must("d", accepted)
	}
}

// TestRefusedStages has pipelines that MongoDB refuses with the same codes.
func TestRefusedStages(t *testing.T) {
	c := filled(t, 5, &Options{})
	window := func(output bson.D) bson.D {
		return cmd("$setWindowFields", cmd("sortBy", cmd("_id", 1), "output", cmd("w", output)))
	}
	documents := func(upper any) bson.D { return cmd("$sum", 1, "window", cmd("documents", bson.A{0, upper})) }
	beside := cmd("documents", bson.A{-1, 0})
	densify := func(low, high any) bson.D {
		return cmd("$densify", cmd("field", "n", "range", cmd("step", 1, "bounds", bson.A{low, high})))
	}
	decimal, err := bson.ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		stage bson.D
		code  int32
	}{
		{cmd("$sort", cmd("a", decimal)), 15975},
		{cmd("$sort", cmd("a", "1")), 15974},
		{cmd("$project", cmd("a", cmd("$map", cmd("input", bson.A{}, "as", 1, "in", 1)))), 9},
		{cmd("$project", cmd("a", cmd("$filter", cmd("input", bson.A{}, "as", nil, "cond", 1)))), 9},
		{cmd("$project", cmd("a", cmd("$maxN", 1))), 5787900},
		{cmd("$project", cmd("a", cmd("$firstN", 1))), 5787801},
		{cmd("$project", cmd("a", cmd("$meta", "textScore"))), 40218},
		{cmd("$group", cmd("_id", cmd("$meta", "textScore"))), 40218},
		{cmd("$facet", cmd("a", bson.A{cmd("$set", cmd("a", cmd("$meta", "textScore")))})), 40218},
		{cmd("$group", cmd("_id", 1, "a.b", 1)), 40234},
		{cmd("$group", cmd("_id", 1, "a.b", cmd("$sum", 1))), 40235},
		{window(documents(int64(1) << 31)), 9},
		{window(documents(1.5)), 9},
		{window(cmd("$rank", bson.D{}, "x", 1)), 5371601},
		{window(cmd("$denseRank", bson.D{}, "$sum", 1)), 5371601},
		{window(cmd("$sum", 1, "$rank", bson.D{})), 9},
		{window(cmd("$integral", cmd("input", "$_id", "unit", "day"), "window", beside)), 5423901},
		{window(cmd("$derivative", cmd("input", "$_id", "unit", "day"), "window", beside)), 5624900},
		{densify("a", "b"), 5946800},
		{densify("a", bson.DateTime(0)), 5946800},
		{densify("a", 1), 5733402},
		{densify(1, "a"), 5733406},
		{densify(1, bson.DateTime(0)), 5733406},
		{cmd("$geoNear", cmd("near", bson.A{1, 2}, "distanceField", "d", "collation", bson.D{})), 40227},
		{cmd("$geoNear", cmd("near", bson.A{1, 2}, "distanceField", "d", "start", 1)), 50856},
		{cmd("$changeStream", 1), 6188500},
		{cmd("$changeStream", bson.D{}, "$match", bson.D{}), 40323},
	} {
		c.refused("d", cmd("aggregate", "c", "pipeline", bson.A{test.stage}, "cursor", bson.D{}), test.code)
	}
	c.refused("d", cmd("aggregate", "system.views", "pipeline", bson.A{cmd("$changeStream", bson.D{})}, "cursor", bson.D{}), 73)
	c.refused("d", cmd("aggregate", 1.5, "pipeline", bson.A{cmd("$documents", bson.A{})}, "cursor", bson.D{}), 9)
	for _, enabled := range []any{1, "yes"} {
		c.refused("d", cmd("collMod", "c", "changeStreamPreAndPostImages", cmd("enabled", enabled)), 14)
		c.refused("d", cmd("create", "new", "changeStreamPreAndPostImages", cmd("enabled", enabled)), 14)
	}
}

// TestRefusedOnViews has what MongoDB refuses of views, with its codes.
func TestRefusedOnViews(t *testing.T) {
	c := filled(t, 5, &Options{})
	c.must("d", cmd("create", "v", "viewOn", "c"))
	aggregate := func(name string, stage any) bson.D {
		return cmd("aggregate", name, "pipeline", bson.A{stage}, "cursor", bson.D{})
	}
	for _, test := range []struct {
		command bson.D
		code    int32
	}{
		{cmd("collMod", "v", "validator", bson.D{}), 72},
		{cmd("collMod", "v", "viewOn", "v", "pipeline", bson.A{}), 5},
		{cmd("find", "v", "tailable", true), 168},
		{cmd("dataSize", "d.v"), 166},
		{aggregate("v", cmd("$changeStream", bson.D{})), 166},
		{aggregate("v", cmd("$collStats", cmd("count", bson.D{}))), 166},
		{aggregate("c", cmd("$out", "v")), 166},
	} {
		c.refused("d", test.command, test.code)
	}
	c.refused("admin", cmd("renameCollection", "d.v", "to", "d.w"), 166)
	if n := c.must("d", cmd("count", "v")).Lookup("n").AsInt64(); n != 5 {
		t.Errorf("%d documents in the view", n)
	}
	if reply := c.must("d", cmd("drop", "v")); reply.Lookup("nIndexesWas").Type != 0 || reply.Lookup("ns").StringValue() != "d.v" {
		t.Errorf("dropping a view: %v", reply)
	}
	if reply := c.must("d", cmd("drop", "c")); reply.Lookup("nIndexesWas").AsInt64() != 1 {
		t.Errorf("dropping a collection: %v", reply)
	}
}

// TestDroppingSeveralIndexes: all that a list names, or none of them.
func TestDroppingSeveralIndexes(t *testing.T) {
	c := filled(t, 5, &Options{})
	index := func(field string) bson.D { return cmd("key", cmd(field, 1), "name", field) }
	c.must("d", cmd("createIndexes", "c", "indexes", bson.A{index("one"), index("two"), index("three")}))
	drop := func(names ...any) bson.D { return cmd("dropIndexes", "c", "index", bson.A(names)) }
	for _, test := range []struct {
		command bson.D
		code    int32
	}{
		{drop("one", "four"), 27}, {drop("one", "one"), 27}, {drop("one", "*"), 27}, {drop("one", "_id_"), 72}, {drop(cmd("one", 1)), 14},
	} {
		c.refused("d", test.command, test.code)
	}
	if n := c.must("d", drop("one", "two")).Lookup("nIndexesWas").AsInt64(); n != 4 {
		t.Errorf("there were %d indexes when two of them were dropped", n)
	}
	if n := c.must("d", drop("*")).Lookup("nIndexesWas").AsInt64(); n != 2 {
		t.Errorf("there were %d indexes when the rest was dropped", n)
	}
}

// TestFieldsThatAreNull are those of a statement that are not there.
func TestFieldsThatAreNull(t *testing.T) {
	c := filled(t, 5, &Options{})
	statement := cmd("q", bson.D{}, "u", cmd("$set", cmd("set", 1)), "multi", nil, "upsert", nil, "arrayFilters", nil, "hint", nil, "collation", nil)
	if n := c.must("d", cmd("update", "c", "updates", bson.A{statement})).Lookup("n").AsInt64(); n != 1 {
		t.Errorf("%d documents were updated", n)
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

// TestNumbersOfIndexesAreEqual: what shells and old dumps write as {a: 1.0} is the index {a: 1}.
func TestNumbersOfIndexesAreEqual(t *testing.T) {
	c := filled(t, 1, &Options{})
	create := func(one any, more ...bson.E) bson.D {
		return cmd("createIndexes", "c", "indexes", bson.A{append(cmd("key", cmd("t", one), "name", "t_1"), more...)})
	}
	unheard := bson.E{Key: "unheardOf", Value: 1}
	c.must("d", create(1))
	for _, one := range []any{1.0, int64(1)} {
		if n := c.must("d", create(one)).Lookup("numIndexesAfter").Int32(); n != 2 {
			t.Errorf("%d indexes after %T", n, one)
		}
	}
	c.refused("d", create(1, unheard), 197)
	c.must("d", append(create(1, unheard), bson.E{Key: "ignoreUnknownIndexOptions", Value: true}))
	c.must("d", cmd("dropIndexes", "c", "index", cmd("t", 1.0)))
}

// TestNamesThatNoDatabaseCanHave are refused by every command: reads found nothing, and users were made that nobody could be.
func TestNamesThatNoDatabaseCanHave(t *testing.T) {
	c := dial(t, newServer(t, nil))
	for _, name := range []string{"", "a.b", "a b", "a/b", `a\b`, `a"b`, "a\x00b", strings.Repeat("x", 64)} {
		for _, command := range []bson.D{
			cmd("find", "c"), cmd("ping", 1), cmd("dropDatabase", 1), cmd("createUser", "u", "pwd", "p", "roles", bson.A{}),
			cmd("update", "c", "updates", bson.A{cmd("q", bson.D{}, "u", bson.D{}, "upsert", true)}),
		} {
			c.refused(name, command, 73)
		}
	}
	c.must("$external", cmd("usersInfo", 1))
}
