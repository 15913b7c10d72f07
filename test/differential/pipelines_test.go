package differential

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// pipeline is stages; ordered says that what comes out of them has an order, writes that the last stage writes.
type pipeline struct {
	stages          bson.A
	ordered, writes bool
}

// inOrder is the stage that defines an order, as most of what follows depends on one: sums of doubles, $push, $limit.
func inOrder() bson.D { return doc("$sort", doc("_id", int32(1))) }

func (g generator) pipeline() pipeline {
	p := pipeline{stages: bson.A{doc("$match", g.filter(1)), inOrder()}, ordered: true}
	if g.chance(12) {
		p.stages = bson.A{doc("$geoNear", doc("near", doc("type", "Point", "coordinates", bson.A{1.0, 2.5}), "distanceField", "dist",
			"maxDistance", 300_000, "query", g.filter(0))), inOrder(),
			// The last digits depend on the way of computing.
			doc("$set", doc("dist", doc("$round", bson.A{"$dist", int32(3)})))}
	}
	for range g.IntN(3) {
		p.stages = append(p.stages, g.stage()...)
	}
	if g.chance(2) {
		return p
	}
	last, writes := g.last()
	return pipeline{stages: append(p.stages, last...), writes: writes}
}

// stage keeps the order, and that each _id is there once, or is followed by stages that are indifferent.
func (g generator) stage() []any {
	one := func(name string, spec any) []any { return []any{doc(name, spec)} }
	sorted := func(name string, spec any) []any { return []any{doc(name, spec), inOrder()} }
	switch g.IntN(15) {
	case 0, 1:
		return one(pick(g, "$addFields", "$set"), doc("e", g.expression(3), pick(g, "a.q", "f", "o.z"), g.expression(1)))
	case 2, 3:
		return one("$project", pick(g, doc("a", int32(1), "e", g.expression(3)), doc(g.field(), g.integer(2)), doc("o", doc("x", g.expression(1)), "l", true)))
	case 4:
		return one("$unwind", doc("path", "$"+pick(g, "a", "b", "c", "l", "o", "o.x"), "preserveNullAndEmptyArrays", g.chance(2),
			"includeArrayIndex", pick(g, "i", "a.i")))
	case 5:
		return one("$limit", 1+g.integer(20))
	case 6:
		return one("$skip", g.integer(5))
	case 7:
		return one("$match", g.filter(2))
	case 8:
		return one("$redact", doc("$cond", bson.A{g.sound(), pick(g, "$$DESCEND", "$$KEEP"), pick(g, "$$PRUNE", "$$KEEP", "$$DESCEND")}))
	case 9:
		// A field that is set again comes to stand where it was in mongod, which remembers the place; so does one that $unwind left out.
		return one("$unset", pick[any](g, "b", bson.A{"c", "o.x"}))
	case 10:
		return one(pick(g, "$replaceRoot"), doc("newRoot", doc("$mergeObjects", bson.A{doc("_id", "$_id", "q", g.expression(1)), pick(g, "$a", "$d", "$$ROOT")})))
	case 11:
		return g.lookup()
	case 12:
		spec := g.windows()
		if output := spec[len(spec)-1].Value.(bson.D)[0].Value.(bson.D); strings.HasPrefix(output[0].Key, "$covariance") {
			return []any{doc("$setWindowFields", spec), doc("$set", doc("w", doc("$round", bson.A{"$w", int32(6)}))), inOrder()}
		}
		return sorted("$setWindowFields", spec)
	case 13:
		return sorted("$fill", doc("sortBy", doc("_id", int32(1)), "output", doc(pick(g, "n", "e", "d"), pick(g, doc("method", "locf"), doc("value", g.expression(1))))))
	}
	return one("$sort", g.sort())
}

// lookup joins; the order of what it finds is that of an index or of the collection, and made one.
func (g generator) lookup() []any {
	var spec bson.D
	switch g.IntN(4) {
	case 0, 1:
		spec = doc("from", "other", "localField", pick(g, "n", "a", "l", "o.x", "s", "none"), "foreignField", pick(g, "n", "a", "l", "o.x", "s", "_id"), "as", "r")
		if g.chance(3) {
			spec = append(spec, bson.E{Key: "pipeline", Value: bson.A{doc("$match", g.filter(0)), doc("$project", doc("a", int32(1)))}})
		}
	case 2:
		spec = doc("from", "other", "let", doc("v", g.expression(1)), "pipeline", bson.A{
			doc("$match", doc("$expr", doc(pick(g, "$eq", "$lt", "$gte"), bson.A{pick(g, "$n", "$a", "$s"), "$$v"}))), inOrder(), doc("$limit", int32(3))}, "as", "r")
	default:
		return []any{doc("$graphLookup", doc("from", "other", "startWith", pick[any](g, "$n", "$l", "$s"), "connectFromField", pick(g, "n", "l", "a"),
			"connectToField", pick(g, "_id", "n", "a"), "as", "r", "maxDepth", g.integer(3), "depthField", "z")),
			doc("$set", doc("r", doc("$sortArray", doc("input", "$r", "sortBy", doc("_id", int32(1))))))}
	}
	return []any{doc("$lookup", spec), doc("$set", doc("r", doc("$sortArray", doc("input", "$r", "sortBy", doc("_id", int32(1))))))}
}

func (g generator) windows() bson.D {
	spec := doc("sortBy", doc("_id", int32(1)))
	if g.chance(2) {
		spec = append(spec, bson.E{Key: "partitionBy", Value: g.expression(1)})
	}
	window := some(g,
		func() bson.D { return doc("documents", bson.A{-g.integer(3), g.integer(3)}) },
		func() bson.D { return doc("documents", bson.A{"unbounded", "current"}) },
		func() bson.D { return doc("documents", bson.A{"current", "unbounded"}) },
		func() bson.D { return doc("documents", bson.A{int32(0), 3}) },
		func() bson.D { return doc("range", bson.A{-0.5, pick[any](g, 1.5, "unbounded", "current")}) },
		func() bson.D { return doc("range", bson.A{-g.integer(4), g.integer(4)}) })
	accumulate := func() bson.D {
		a := g.accumulator(1)
		for strings.HasPrefix(a[0].Key, "$stdDev") { // whose last digits tell in which order was added and taken away
			a = g.accumulator(1)
		}
		return append(a, bson.E{Key: "window", Value: window})
	}
	output := some(g, accumulate, accumulate,
		func() bson.D {
			return doc(pick(g, "$covariancePop", "$covarianceSamp"), bson.A{"$_id", g.numeric(0)}, "window", doc("documents", bson.A{"unbounded", "current"}))
		},
		func() bson.D {
			spec[0].Value = doc(pick(g, "_id", "a", "n", "o.x"), pick[int32](g, 1, -1))
			return doc(pick(g, "$rank", "$denseRank", "$documentNumber"), doc())
		},
		func() bson.D {
			return doc("$shift", doc("output", g.expression(1), "by", g.integer(5)-2, "default", "none"))
		},
		func() bson.D { return doc(pick(g, "$locf", "$linearFill"), "$n") },
		func() bson.D { return doc("$expMovingAvg", doc("input", "$_id", "N", 1+g.integer(3))) },
		func() bson.D {
			return doc(pick(g, "$derivative", "$integral"), doc("input", "$n"), "window", doc("documents", bson.A{-1, 1}))
		})
	return append(spec, bson.E{Key: "output", Value: doc("w", output)})
}

// accumulator is one that depends on the order of the documents at most.
func (g generator) accumulator(depth int) bson.D {
	switch g.IntN(5) {
	case 0:
		return doc(pick(g, "$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp"), g.numeric(depth))
	case 1:
		return doc(pick(g, "$firstN", "$lastN", "$minN", "$maxN"), doc("input", g.expression(depth), "n", 1+g.integer(3)))
	case 2:
		return doc(pick(g, "$top", "$bottom"), doc("output", g.expression(depth), "sortBy", doc(pick(g, "n", "s", "a"), pick[int32](g, 1, -1), "_id", int32(1))))
	case 3:
		return doc(pick(g, "$topN", "$bottomN"), doc("output", bson.A{"$_id", g.expression(0)}, "sortBy", doc("n", int32(1), "_id", int32(1)), "n", 1+g.integer(3)))
	}
	return doc(pick(g, "$min", "$max", "$push", "$first", "$last"), g.expression(depth))
}

// documentsStage makes documents out of constants.
func (g generator) documentsStage() bson.D {
	return doc("$documents", pick[any](g, bson.A{doc("_id", int32(1), "a", g.value(1)), doc("n", g.number())}, g.list(2, func() any { return g.value(1) }),
		doc("$map", doc("input", bson.A{int32(1), int32(2)}, "in", doc("n", "$$this")))))
}

// last is stages after which there is no order.
func (g generator) last() (stages []any, writes bool) {
	one := func(name string, spec any) ([]any, bool) { return []any{doc(name, spec)}, false }
	switch g.IntN(14) {
	case 11:
		return []any{doc("$sortByCount", g.expression(1)), doc("$sort", doc("count", int32(-1), "_id", int32(1)))}, false
	case 12:
		return []any{doc("$project", doc("a", int32(1))), doc(pick(g, "$unionWith"), doc("pipeline", bson.A{g.documentsStage(), doc("$match", g.filter(0))}))}, false
	case 0, 1, 2:
		return one("$group", doc("_id", g.expression(1), "n", doc("$sum", int32(1)), "v", g.accumulator(2), "w", g.accumulator(1)))
	case 3:
		return []any{doc("$group", doc("_id", pick[any](g, nil, "$a", doc("x", "$a", "y", "$s")), "v", doc("$addToSet", g.expression(1)))),
			doc("$set", doc("v", doc("$sortArray", doc("input", "$v", "sortBy", int32(1)))))}, false
	case 4:
		return one("$facet", doc("x", bson.A{doc("$match", g.filter(1)), doc("$project", doc("e", g.expression(2)))},
			"y", bson.A{doc("$limit", int32(5)), doc("$group", doc("_id", nil, "v", g.accumulator(1)))}, "z", bson.A{doc("$count", "n")}))
	case 5:
		return one("$bucket", doc("groupBy", g.numeric(1), "boundaries", bson.A{int32(-2), int32(0), int32(2), 4.5}, "default", pick[any](g, "other", int32(9)),
			"output", doc("n", doc("$sum", int32(1)), "v", g.accumulator(1))))
	case 6:
		b := doc("groupBy", pick[any](g, "$n", "$_id", "$s", g.numeric(1)), "buckets", 1+g.integer(6))
		if g.chance(3) {
			b = append(b, bson.E{Key: "granularity", Value: pick(g, "R5", "E12", "1-2-5", "POWERSOF2")})
		}
		return one("$bucketAuto", b)
	case 7:
		return []any{doc("$group", doc("_id", "$"+g.field())), doc("$count", "n")}, false
	case 8:
		return one("$unionWith", pick[any](g, "other", doc("coll", "other", "pipeline", bson.A{doc("$match", g.filter(1)), doc("$project", doc("e", g.expression(1)))})))
	case 9:
		// Values below the range confuse mongod 6.0.5: it leaves the partition as it is, or makes what lies behind them.
		return []any{doc("$match", doc("n", doc("$gte", int32(0), "$lt", int32(200)))), doc("$project", doc("n", doc("$toInt", "$n"), "k", "$s")),
			doc("$densify", doc("field", "n", "partitionByFields", pick(g, bson.A{}, bson.A{"k"}),
				"range", doc("step", 1+g.integer(2), "bounds", pick[any](g, "full", "partition", bson.A{int32(0), int32(6)}))))}, false
	case 10:
		return []any{doc("$sample", doc("size", int32(1000))), doc("$count", "n")}, false
	}
	return g.out(), true
}

// out writes into the collection "out".
func (g generator) out() []any {
	keep := doc("$project", doc("a", int32(1), "n", int32(1), "e", g.expression(1)))
	if g.chance(3) {
		return []any{keep, doc("$out", "out")}
	}
	into := doc("into", pick(g, "out", "other"), "whenMatched", pick[any](g, "replace", "keepExisting", "merge", "fail",
		bson.A{doc("$set", doc("m", doc("$concatArrays", bson.A{bson.A{"$a"}, bson.A{"$$new.a"}})))}),
		"whenNotMatched", pick(g, "insert", "discard", "fail"))
	if m := into[1].Value; m == any("fail") || m == any("keepExisting") {
		into[2].Value = "insert" // other pairs are refused, before constants are evaluated or after it
	}
	return []any{keep, doc("$merge", into)}
}
