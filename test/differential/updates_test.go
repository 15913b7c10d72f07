package differential

import "go.mongodb.org/mongo-driver/v2/bson"

// statement is one of an update command.
func (g generator) statement() bson.D {
	s := doc("q", g.filter(1), "u", g.update())
	if u, ok := s[1].Value.(bson.D); !ok || len(u) == 0 || u[0].Key[0] == '$' {
		s = append(s, bson.E{Key: "multi", Value: true})
	} else if g.chance(2) {
		s[0].Value = doc("_id", g.integer(60))
	} else {
		s = append(s, bson.E{Key: "multi", Value: true}) // which is refused
	}
	return g.updated(s, 0)
}

// updated adds what goes with an update: array filters, upserts, of which the query says by what is to be found.
func (g generator) updated(s bson.D, query int) bson.D {
	if g.chance(6) {
		q := doc("_id", 1000+g.integer(3))
		s[query].Value = some(g,
			func() bson.D { return append(q, g.filter(0)...) },
			func() bson.D { return append(q, g.filter(0)...) },
			func() bson.D { return doc("$and", bson.A{q, g.filter(0)}, pick(g, "n", "a.x"), doc("$eq", g.value(1))) },
			func() bson.D { return doc("$or", bson.A{append(q, g.filter(0)...)}) },
			func() bson.D {
				return doc("_id", doc(pick(g, "$in", "$all"), bson.A{1000 + g.integer(3)}), "b", doc("$in", bson.A{g.value(1)}))
			})
		s = append(s, bson.E{Key: "upsert", Value: true})
	}
	if usesFilters(s) || g.chance(40) {
		s = append(s, bson.E{Key: "arrayFilters", Value: bson.A{pick(g, doc("i", g.condition(0)), doc("i.x", g.condition(0)))}})
	}
	return g.collated(s)
}

// usesFilters reports whether an update has the identifier of an array filter in a path.
func usesFilters(s bson.D) bool {
	for _, e := range s {
		operators, ok := e.Value.(bson.D)
		if e.Key != "u" && e.Key != "update" || !ok {
			continue
		}
		for _, o := range operators {
			if fields, ok := o.Value.(bson.D); ok && len(fields) > 0 && (fields[0].Key == "l.$[i]" || fields[0].Key == "o.$[i].x") {
				return true
			}
		}
	}
	return false
}

func (g generator) findAndModify() call {
	c := doc("findAndModify", "c", "query", g.filter(1), "sort", g.sort(), "new", g.chance(2))
	if g.chance(4) {
		p := g.projection()
		c = append(c, bson.E{Key: "fields", Value: p})
	}
	if g.chance(4) {
		c[3].Value = false
		return call{command: g.collated(append(c, bson.E{Key: "remove", Value: true})), ordered: true, writes: true}
	}
	return call{command: g.updated(append(c, bson.E{Key: "update", Value: g.update()}), 1), ordered: true, writes: true}
}

func (g generator) update() any {
	switch g.IntN(12) {
	case 0:
		return doc("a", g.value(2), "n", g.number(), "o", g.list(2, func() any { return g.object(1) }))
	case 1, 2:
		stage := func() any {
			return some(g,
				func() any { return doc("$set", doc(pick(g, "e", "a.x", "o"), g.expression(2))) },
				func() any { return doc("$unset", pick[any](g, "c", "a", "o.x", bson.A{"b", "l"})) },
				func() any { return doc("$set", doc(pick(g, "a", "b", "o.x"), "$$REMOVE")) },
				func() any { return doc("$set", doc("b", doc("$cond", bson.A{g.sound(), "$$REMOVE", g.expression(0)}))) },
				func() any {
					return doc("$replaceWith", doc("$mergeObjects", bson.A{"$$ROOT", doc("e", g.expression(1))}))
				},
				func() any { return doc("$project", doc("a", int32(1), "n", int32(1), "e", g.expression(1))) })
		}
		return append(bson.A{stage()}, g.list(1, stage)...)
	}
	u := g.operator()
	if more := g.operator(); g.chance(3) && more[0].Key != u[0].Key {
		u = append(u, more...)
	}
	return u
}

func (g generator) operator() bson.D {
	set := func(op string, v any) bson.D {
		d := doc(g.target(), v)
		if more := g.target(); g.chance(4) {
			d = append(d, bson.E{Key: more, Value: v})
		}
		return doc(op, d)
	}
	array := func() string { return pick(g, "l", "o", "a", "c", "e") }
	switch g.IntN(17) {
	case 14:
		return doc("$currentDate", doc(g.target(), pick[any](g, true, doc("$type", pick(g, "date", "timestamp")))))
	case 12:
		return doc("$push", doc(pick(g, "o.$[].y", "c.$[].x", "d.$[]", "o.0.y"), g.pushed()))
	case 13:
		return doc(pick(g, "$addToSet", "$pull"), doc(pick(g, "o.$[].y", "c.$[]", "o.1.x"), g.value(1)))
	case 0:
		return set("$unset", "")
	case 1:
		return set(pick(g, "$inc", "$mul"), g.number())
	case 2:
		return set(pick(g, "$min", "$max"), g.value(1))
	case 3:
		return doc(pick(g, "$push", "$addToSet"), doc(array(), pick[any](g, g.value(1), doc("$each", g.list(3, func() any { return g.value(0) })))))
	case 4:
		return doc("$push", doc(array(), g.pushed()))
	case 5:
		return doc("$pull", doc(array(), pick[any](g, g.value(1), doc("$gte", int32(1)), doc("x", g.condition(0)), doc("$in", bson.A{g.value(0), g.value(0)}))))
	case 6:
		return doc("$pullAll", doc(array(), g.list(3, func() any { return g.value(1) })))
	case 7:
		return doc("$pop", doc(array(), pick[int32](g, 1, -1)))
	case 8:
		return doc("$rename", doc(g.target(), pick(g, "e", "f", "a.z", "n")))
	case 9:
		return doc("$bit", doc(pick(g, "n", "a", "e"), doc(pick(g, "and", "or", "xor"), pick[any](g, g.integer(8), int64(3)))))
	case 10:
		return set("$setOnInsert", g.value(1))
	case 11:
		return doc(pick(g, "$set", "$inc", "$mul", "$max", "$unset"), doc(pick(g, "l.$[]", "l.$[i]", "o.$[i].x", "o.$[].x", "l.$", "o.$.x"), g.number()))
	}
	return set("$set", g.value(2))
}

// pushed is the operand of $push with modifiers.
func (g generator) pushed() bson.D {
	p := doc("$each", g.list(3, func() any { return pick[any](g, g.number(), g.object(1)) }))
	if g.chance(2) {
		p = append(p, bson.E{Key: "$position", Value: g.integer(5) - 2})
	}
	if g.chance(2) {
		p = append(p, bson.E{Key: "$slice", Value: g.integer(7) - 3})
	}
	if each, ok := p[0].Value.(bson.A); ok && len(each) > 0 && g.chance(2) { // sorting an empty array modifies it only where an index has it
		p = append(p, bson.E{Key: "$sort", Value: pick[any](g, int32(1), int32(-1), doc("x", int32(1)), doc("y", int32(-1), "x", int32(1)))})
	}
	return p
}
