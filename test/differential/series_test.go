package differential

import "go.mongodb.org/mongo-driver/v2/bson"

// series compares a time series collection: what is read and written by meta and time.
func (p *pair) series(g generator, calls int) {
	p.both(doc("drop", "series"), true)
	s := seriesGenerator{g, g.chance(5)}
	options := doc("timeField", "t")
	if !s.bare {
		options = append(options, doc("metaField", "m")...)
	}
	if g.chance(2) {
		options = append(options, doc("granularity", pick(g, "seconds", "minutes", "hours"))...)
	}
	create := doc("create", "series", "timeseries", options)
	p.indexes = shown(p.t, create)
	if !p.same(create, true) {
		return
	}
	for range g.IntN(3) {
		index := doc("key", s.index())
		p.indexes += shown(p.t, index)
		p.same(doc("createIndexes", "series", "indexes", bson.A{append(index, bson.E{Key: "name", Value: pick(g, "i", "k")})}), true)
	}
	measurements := s.measurements(50)
	load := true
	for range calls {
		if load {
			p.both(doc("delete", "series", "deletes", bson.A{doc("q", doc(), "limit", int32(0))}), true)
			p.same(doc("insert", "series", "documents", measurements, "ordered", false), true) // of ordered ones mongod 6.0.5 counts too many
		}
		c := s.call()
		same := p.same(c.command, c.ordered)
		if load = c.writes; load && same { // which of many documents were written before one that fails is not defined
			p.same(doc("find", "series", "sort", doc("_id", int32(1))), true, c.command)
		}
	}
}

// seriesGenerator makes calls on a time series; bare: it has no meta.
type seriesGenerator struct {
	generator
	bare bool
}

func (s seriesGenerator) index() bson.D {
	return pick(s.generator, doc("m", int32(1)), doc("m.x", int32(-1)), doc("t", int32(-1)), doc("m", int32(1), "t", int32(-1)), doc("v", int32(1)),
		doc("s", int32(1), "t", int32(1)), doc("m.p", "2dsphere"))
}

func (s seriesGenerator) meta() any {
	return pick[any](s.generator, int32(1), int32(2), 2.5, "a", "A", nil, doc("x", s.integer(3)), doc("x", s.integer(2), "y", s.integer(2)), doc("y", int32(1), "x", int32(1)), bson.A{int32(1), "b"})
}

func (s seriesGenerator) time() bson.DateTime {
	return bson.DateTime(1_600_000_000_000 + int64(s.IntN(6))*60_000 + int64(s.IntN(4))*3_600_000*24 + int64(s.IntN(3)))
}

func (s seriesGenerator) measurements(n int) (docs bson.A) {
	for i := range n {
		d := doc("_id", int32(i))
		if s.chance(5) {
			d = append(d, bson.E{Key: "v", Value: s.number()}) // in front of the time
		}
		if s.chance(60) {
			d = append(d, bson.E{Key: "t", Value: pick[any](s.generator, int32(1), "a", nil)}) // refused
		} else {
			d = append(d, bson.E{Key: "t", Value: s.time()})
		}
		if !s.bare && !s.chance(6) {
			d = append(d, bson.E{Key: "m", Value: s.meta()})
		}
		if len(d) < 4 && !s.chance(6) && d[1].Key != "v" {
			d = append(d, bson.E{Key: "v", Value: s.number()})
		}
		if s.chance(2) {
			d = append(d, bson.E{Key: "s", Value: s.text()})
		}
		if s.chance(4) {
			d = append(d, bson.E{Key: "l", Value: s.list(3, s.number)})
		}
		if s.chance(4) {
			d = append(d, bson.E{Key: "o", Value: s.object(1)})
		}
		docs = append(docs, d)
	}
	return docs
}

// condition is one on the time, the meta or what was measured.
func (s seriesGenerator) filter() bson.D {
	f := bson.D{}
	for range s.IntN(3) {
		f = append(f, some(s.generator,
			func() bson.E {
				return bson.E{Key: "t", Value: doc(pick(s.generator, "$gt", "$gte", "$lt", "$lte", "$eq", "$ne"), s.time())}
			},
			func() bson.E { return bson.E{Key: "t", Value: doc("$gte", s.time(), "$lt", s.time())} },
			s.onMeta, s.onMeta,
			func() bson.E { return bson.E{Key: "v", Value: s.generator.condition(0)} },
			func() bson.E {
				return bson.E{Key: pick(s.generator, "s", "l", "o.x", "o"), Value: s.generator.condition(0)}
			},
			func() bson.E {
				return bson.E{Key: pick(s.generator, "$or", "$and", "$nor"), Value: bson.A{bson.D{s.onMeta()}, doc("t", doc("$lt", s.time()))}}
			},
			func() bson.E {
				return bson.E{Key: "$expr", Value: doc(pick(s.generator, "$gt", "$eq", "$lte"), bson.A{pick(s.generator, "$t", "$m", "$m.x"),
					pick[any](s.generator, s.time(), s.integer(3))})}
			}))
	}
	return f
}

func (s seriesGenerator) onMeta() bson.E {
	return pick(s.generator, bson.E{Key: "m", Value: s.meta()}, bson.E{Key: "m", Value: doc("$in", bson.A{s.meta(), s.meta()})},
		bson.E{Key: "m.x", Value: s.generator.condition(0)}, bson.E{Key: "m", Value: doc("$exists", s.chance(2))},
		bson.E{Key: "m", Value: doc(pick(s.generator, "$gte", "$lt", "$ne"), pick[any](s.generator, int32(1), "a", 1.5))})
}

// onScalarMeta is a condition of a write: mongod 6.0.5 takes the fields of documents in $in and $nin for fields of measurements.
func (s seriesGenerator) onScalarMeta() bson.E {
	for {
		e := s.onMeta()
		if d, ok := e.Value.(bson.D); !ok || len(d) == 0 || d[0].Key != "$in" && d[0].Key != "$nin" {
			return e
		}
	}
}

func (s seriesGenerator) call() call {
	g := s.generator
	switch g.IntN(12) {
	case 0:
		return call{command: g.collated(doc("count", "series", "query", s.filter())), ordered: true}
	case 1:
		return call{command: doc("distinct", "series", "key", pick(g, "m", "m.x", "s", "t", "v", "l"), "query", s.filter())}
	case 2:
		if s.bare {
			break // which since 7.0 is allowed
		}
		return call{command: doc("delete", "series", "deletes", bson.A{doc("q", bson.D{s.onScalarMeta()}, "limit", int32(0))}), ordered: true, writes: true}
	case 3:
		u := pick(g, doc("$set", doc("m", pick[any](g, int32(3), "c", doc("x", int32(1), "y", int32(2))))), doc("$set", doc("m.x", g.integer(3))), doc("$unset", doc("m.y", "")), doc("$inc", doc("m.x", int32(1))), doc("$set", doc("v", int32(1))))
		return call{command: doc("update", "series", "updates", bson.A{doc("q", bson.D{s.onScalarMeta()}, "u", u, "multi", !g.chance(8))}), ordered: true, writes: true}
	case 4, 5, 6:
		return s.find()
	}
	return s.aggregate()
}

func (s seriesGenerator) find() call {
	g := s.generator
	c := doc("find", "series", "filter", s.filter(), "batchSize", int32(100_000))
	if g.chance(2) {
		c = append(c, doc("projection", pick(g, doc("t", int32(1)), doc("m", int32(0)), doc("v", int32(1), "m.x", int32(1), "_id", int32(0)), doc("s", int32(0), "o.x", int32(0))))...)
	}
	if g.chance(2) {
		return call{command: g.collated(c)}
	}
	sort := pick(g, doc("t", int32(1)), doc("t", int32(-1)), doc("m", int32(1), "t", int32(-1)), doc("v", int32(1)), doc("m.x", int32(-1)), doc())
	c = append(c, doc("sort", append(sort, bson.E{Key: "_id", Value: int32(1)}), "limit", g.integer(20), "skip", g.integer(3))...)
	return call{command: g.collated(c), ordered: true}
}

func (s seriesGenerator) aggregate() call {
	g := s.generator
	stages := bson.A{doc("$match", s.filter())}
	ordered := g.chance(2)
	if ordered {
		stages = append(stages, doc("$sort", append(pick(g, doc("t", int32(1)), doc("t", int32(-1)), doc("m", int32(1), "t", int32(1))), bson.E{Key: "_id", Value: int32(1)})))
	}
	accumulate := func() any {
		if ordered {
			return doc(pick(g, "$sum", "$avg", "$min", "$max", "$first", "$last", "$push"), pick(g, "$v", "$t", "$s", "$m"))
		}
		return doc(pick(g, "$min", "$max"), pick[any](g, "$t", doc("$add", bson.A{doc("$toDouble", "$v"), 0.0}))) // of which the order is no matter
	}
	collated := ordered
	switch g.IntN(8) {
	case 0, 1, 2:
		collated = false // as any of several equal metas may stand for them
		by := pick[any](g, "$m", "$m.x", "$s", nil, doc("$dateTrunc", doc("date", "$t", "unit", pick(g, "hour", "minute", "day"))), doc("m", "$m", "d", doc("$dayOfMonth", "$t")))
		stages = append(stages, doc("$group", doc("_id", by, "n", doc("$sum", int32(1)), "a", accumulate(), "b", accumulate())))
		ordered = false
	case 3:
		stages = append(stages, doc("$set", doc("e", doc("$dateToString", doc("date", "$t", "format", "%H:%M")), "k", "$m.x")), doc("$match", doc("k", g.condition(0))))
	case 4:
		stages = append(stages, doc("$project", pick(g, doc("t", int32(1), "m", int32(1)), doc("m", int32(0)), doc("x", "$m", "v", int32(1)), doc("t", int32(0), "v", int32(0)))))
	case 5:
		stages = append(stages, doc("$count", "n"))
	case 6:
		stages = append(stages, doc("$unwind", "$l"), doc("$match", s.filter()))
	case 7:
		stages = bson.A{doc("$match", s.filter()), doc("$setWindowFields", doc("partitionBy", pick(g, "$m", "$m.x"), "sortBy", doc("t", int32(1), "_id", int32(1)),
			"output", doc("w", doc("$sum", int32(1), "window", doc("documents", bson.A{-g.integer(3), "current"}))))), doc("$sort", doc("_id", int32(1)))}
		ordered = true
		if s.bare {
			stages[1] = doc("$limit", int32(100))
		}
	}
	c := doc("aggregate", "series", "pipeline", stages, "cursor", doc("batchSize", int32(100_000)))
	if collated {
		c = g.collated(c)
	}
	return call{command: c, ordered: ordered}
}
