package differential

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// kinds compares capped collections, views and the levels of validation. It leaves the collections c and other as they are.
func (p *pair) kinds(g generator, calls int) {
	p.capped(g, calls)
	p.views(g, calls)
	p.levels(g, calls/3)
}

// capped compares a collection that forgets what is old: what is in it after writes, in both directions.
func (p *pair) capped(g generator, calls int) {
	create := doc("create", "capped", "capped", true, "size", pick[any](g, int32(4096), int32(100_000), 20_000.0), "max", pick[any](g, int32(5), int64(20), int32(1000)))
	p.indexes = shown(p.t, create)
	next, anew := int32(0), true
	for range calls {
		if anew {
			p.both(doc("drop", "capped"), true)
			if !p.same(create, true) {
				return
			}
		}
		var c bson.D
		writes := true
		switch g.IntN(10) {
		case 0:
			c = doc("update", "capped", "updates", bson.A{doc("q", g.filter(1), "u", g.operator(), "multi", g.chance(2))})
		case 1:
			c = doc("delete", "capped", "deletes", bson.A{doc("q", doc("_id", g.integer(int(next)+1)), "limit", g.integer(2))})
		case 2:
			c, writes = doc("find", "capped", "filter", g.filter(1), "sort", doc("$natural", pick[int32](g, 1, -1)), "limit", g.integer(6), "batchSize", int32(100_000)), false
		case 3:
			c, writes = doc("find", "capped", "filter", doc("n", g.condition(0)), "hint", doc("$natural", pick[int32](g, 1, -1)), "batchSize", int32(100_000)), false
		case 4:
			c, writes = doc("aggregate", "capped", "pipeline", bson.A{doc("$match", g.filter(1)), doc("$limit", 1+g.integer(5)), doc("$project", doc("a", int32(1)))}, "cursor", doc()), false
		default:
			docs := g.documents(1 + g.IntN(6))
			for _, d := range docs {
				d.(bson.D)[0].Value = next
				next++
			}
			c = doc("insert", "capped", "documents", docs, "ordered", g.chance(2))
		}
		anew = !p.same(c, true) && writes // which of several documents were changed before one that fails is not defined
		if !anew && writes {
			anew = !p.same(doc("find", "capped", "batchSize", int32(100_000)), true, c)
		}
	}
}

// views compares what is read through views, alone and in stages that join, and that they are not written to.
func (p *pair) views(g generator, calls int) {
	for _, name := range []string{"view", "upper"} {
		p.both(doc("drop", name), true)
	}
	create := doc("create", "view", "viewOn", pick(g, "c", "other"), "pipeline", g.simple(2))
	if g.chance(4) {
		create = append(create, bson.E{Key: "collation", Value: g.collation()})
	}
	upper := doc("create", "upper", "viewOn", "view", "pipeline", g.simple(1))
	p.indexes = shown(p.t, create) + shown(p.t, upper)
	if !p.same(create, true) {
		return
	}
	p.same(upper, true)
	for range calls {
		c := g.viewed(pick(g, "view", "upper"))
		p.same(c.command, c.ordered)
	}
}

// simple is a pipeline of stages that keep the _id of documents, and fail for none.
func (g generator) simple(n int) bson.A {
	stages := bson.A{}
	for range 1 + g.IntN(n) {
		stages = append(stages, some(g,
			func() any { return doc("$match", g.filter(1)) },
			func() any { return doc("$addFields", doc("e", g.sound(), "f", "$n")) }, // mongod 6.0.5 moves a filter on a before a stage that sets a.q
			func() any {
				return doc("$project", pick(g, doc("a", int32(1), "n", int32(1), "s", int32(1)), doc("o", int32(0), "d", int32(0))))
			},
			func() any {
				return doc("$lookup", doc("from", "other", "localField", "n", "foreignField", "n", "pipeline", bson.A{inOrder(), doc("$limit", int32(2))}, "as", "r"))
			}))
	}
	return stages
}

// viewed is a call on a view.
func (g generator) viewed(view string) call {
	switch g.IntN(10) {
	case 0:
		return call{command: g.collated(doc("count", view, "query", g.filter(1), "skip", g.integer(3), "limit", 1+g.integer(20))), ordered: true} // a limit of 0 fails
	case 1:
		return call{command: g.collated(doc("distinct", view, "key", g.field(), "query", doc("_id", doc("$gte", int32(0)), "$and", bson.A{g.filter(1)})))}
	case 2, 3:
		sort := g.sort()
		if strings.Contains(sort[0].Key, ".0") { // mongod 6.0.5 sorts by it after a projection has taken the array apart
			sort = inOrder()[0].Value.(bson.D)
		}
		return call{command: g.collated(doc("find", view, "filter", g.filter(2), "sort", sort, "skip", g.integer(3), "limit", g.integer(20),
			"projection", pick(g, doc(), doc("a", int32(1)), doc("n", int32(0))), "batchSize", int32(100_000))), ordered: true}
	case 4:
		return pick(g, call{command: doc("insert", view, "documents", bson.A{doc("_id", int32(1))}), ordered: true},
			call{command: doc("update", view, "updates", bson.A{g.statement()}), ordered: true},
			call{command: doc("delete", view, "deletes", bson.A{doc("q", doc(), "limit", int32(0))}), ordered: true},
			call{command: doc("findAndModify", view, "query", doc(), "remove", true), ordered: true},
			call{command: doc("createIndexes", view, "indexes", bson.A{doc("key", doc("a", int32(1)), "name", "a")}), ordered: true})
	case 5:
		spec := doc("from", view, "as", "r", "localField", pick(g, "n", "s", "l"), "foreignField", pick(g, "n", "s", "l"))
		if g.chance(2) {
			spec = doc("from", view, "as", "r", "let", doc("v", "$"+pick(g, "n", "s")), "pipeline", append(bson.A{doc("$match", doc("$expr",
				doc(pick(g, "$eq", "$gte"), bson.A{"$" + pick(g, "n", "s"), "$$v"})))}, g.simple(1)...))
		}
		return g.aggregated(doc("$lookup", spec), doc("$set", doc("r", doc("$sortArray", doc("input", "$r", "sortBy", doc("_id", int32(1)))))))
	case 6:
		return g.aggregated(doc("$project", doc("n", int32(1))), doc("$unionWith", pick[any](g, view, doc("coll", view, "pipeline", g.simple(2)))),
			doc("$sort", doc("_id", int32(1), "a", int32(1), "n", int32(1), "s", int32(1))), doc("$project", doc("_id", int32(1), "n", int32(1))),
			doc("$group", doc("_id", "$_id", "k", doc("$sum", int32(1)))))
	case 7:
		return g.aggregated(doc("$graphLookup", doc("from", view, "startWith", "$n", "connectFromField", "n", "connectToField", "_id", "as", "r", "maxDepth", g.integer(3))),
			doc("$set", doc("r", doc("$sortArray", doc("input", "$r", "sortBy", doc("_id", int32(1)))))))
	}
	c := g.aggregated(g.simple(2)...)
	c.command[0].Value = view
	return c
}

// aggregated is a pipeline of c, of which the documents come in the order of their _id.
func (g generator) aggregated(stages ...any) call {
	list := append(bson.A{doc("$match", g.filter(1))}, stages...)
	return call{command: g.collated(doc("aggregate", "c", "pipeline", append(list, inOrder()), "cursor", doc("batchSize", int32(100_000)))), ordered: true}
}

// levels compares a collection with documents that its validator refuses, under every level and action of validation.
func (p *pair) levels(g generator, calls int) {
	p.both(doc("drop", "levels"), true)
	create := doc("create", "levels", "validator", pick(g, doc("n", g.condition(0)), doc("$jsonSchema", g.schema(1)), doc("a", doc("$exists", true))),
		"validationLevel", pick(g, "strict", "moderate", "off"), "validationAction", pick(g, "error", "warn"))
	p.indexes = shown(p.t, create)
	if !p.same(create, true) {
		return
	}
	docs := g.documents(20)
	for range calls {
		p.both(doc("delete", "levels", "deletes", bson.A{doc("q", doc(), "limit", int32(0))}), true)
		p.same(doc("insert", "levels", "documents", docs, "bypassDocumentValidation", true), true)
		c := some(g,
			func() bson.D { return doc("insert", "levels", "documents", g.news(), "ordered", g.chance(2)) },
			func() bson.D {
				return doc("update", "levels", "updates", bson.A{doc("q", doc("_id", g.integer(20)), "u", g.operator()), doc("q", doc("_id", g.integer(20)), "u", g.operator())}, "ordered", g.chance(2))
			},
			func() bson.D {
				return doc("update", "levels", "updates", bson.A{doc("q", doc("_id", g.integer(20)), "u", doc("a", g.value(1), "n", g.number()))}, "bypassDocumentValidation", g.chance(2))
			},
			func() bson.D {
				return doc("update", "levels", "updates", bson.A{doc("q", doc("_id", 900+g.integer(3)), "u", g.operator(), "upsert", true)})
			},
			func() bson.D {
				return doc("findAndModify", "levels", "query", doc("_id", g.integer(20)), "update", g.operator(), "new", g.chance(2))
			},
			func() bson.D {
				return doc("collMod", "levels", "validationLevel", pick(g, "strict", "moderate", "off", "none"), "validationAction", pick(g, "error", "warn"))
			},
			func() bson.D { return doc("collMod", "levels", "validator", doc("n", g.condition(0))) })
		p.same(c, true)
		p.same(doc("find", "levels", "sort", doc("_id", int32(1)), "batchSize", int32(100_000)), true, c)
	}
}
