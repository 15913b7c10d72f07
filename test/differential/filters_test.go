package differential

import "go.mongodb.org/mongo-driver/v2/bson"

func (g generator) filter(depth int) bson.D {
	if depth > 0 && g.chance(3) {
		l := bson.A{}
		for range 1 + g.IntN(3) {
			l = append(l, g.filter(depth-1))
		}
		return doc(pick(g, "$and", "$or", "$nor"), l)
	}
	switch g.IntN(18) {
	case 16:
		return pick(g, doc("$sampleRate", 1.0), doc("$sampleRate", int32(0)),
			doc("$comment", "why", "n", g.condition(0)), doc("$comment", doc("who", "me"), "s", g.condition(0)))
	case 0:
		return doc("$expr", g.sound())
	case 1:
		return doc("$jsonSchema", g.schema(1))
	case 2:
		return doc("p", g.within())
	}
	f := bson.D{}
	for range g.IntN(3) {
		f = append(f, bson.E{Key: g.field(), Value: g.condition(depth)})
	}
	return f
}

// sound is an expression that does not fail, as it is not defined which condition of a filter is looked at first.
func (g generator) sound() any {
	leaf := func() any {
		return pick[any](g, "$"+g.field(), doc("$literal", g.value(1)), doc("$size", doc("$ifNull", bson.A{"$none", bson.A{}})))
	}
	one := doc(pick(g, "$eq", "$ne", "$lt", "$lte", "$gt", "$gte"), bson.A{leaf(), leaf()})
	return pick(g, one, doc("$not", bson.A{one}), doc("$or", bson.A{one, leaf()}), doc("$in", bson.A{leaf(), bson.A{leaf(), leaf()}}),
		doc("$regexMatch", doc("input", doc("$toString", "$_id"), "regex", "1")))
}

func (g generator) within() bson.D {
	around := doc("$centerSphere", bson.A{bson.A{2.0, 2.0}, pick(g, 0.01, 0.03, 0.05)})
	return some(g,
		func() bson.D { return doc("$geoWithin", around) },
		func() bson.D {
			return doc(pick(g, "$geoWithin", "$geoIntersects"), doc("$geometry", doc("type", "Polygon", "coordinates",
				bson.A{square(float64(g.IntN(3))-0.25, 2.75)})))
		},
		func() bson.D { return doc("$geoIntersects", doc("$geometry", g.place())) },
		func() bson.D {
			return doc("$geoWithin", doc("$center", bson.A{bson.A{2.0, 2.0}, pick(g, 0.5, 1.3, 2.7)}))
		},
		func() bson.D {
			return doc("$geoWithin", doc("$polygon", bson.A{bson.A{0.5, 0.5}, bson.A{3.5, 0.25}, bson.A{pick(g, 1.5, 3.25), 3.75}}))
		},
		func() bson.D { return doc("$geoWithin", doc("$box", bson.A{bson.A{0.5, 0.5}, bson.A{3.5, 3.5}})) })
}

func (g generator) near() bson.D {
	n := doc("$geometry", doc("type", "Point", "coordinates", bson.A{1.3, 2.1}), "$maxDistance", pick(g, 100_000.0, 250_000.0, 1e6))
	if g.chance(3) {
		n = append(n, bson.E{Key: "$minDistance", Value: pick[any](g, 0, 120_000.0)})
	}
	return doc(pick(g, "$near", "$nearSphere"), n)
}

// condition is what is asked of one field.
func (g generator) condition(depth int) any {
	switch g.IntN(15) {
	case 0, 1:
		return g.value(1)
	case 2, 3:
		v := g.value(1)
		switch v.(type) {
		case nil, bson.MinKey, bson.MaxKey:
			v = "" // mongod answers ranges with these from indexes, which tell less of what is not there than the documents do
		}
		return doc(pick(g, "$gt", "$gte", "$lt", "$lte", "$eq", "$ne"), v)
	case 4:
		return doc(pick(g, "$in", "$nin", "$all"), bson.A{g.value(1), g.value(0)})
	case 5:
		return doc("$exists", g.chance(2))
	case 6:
		return doc("$type", pick[any](g, "number", "string", "array", "object", "null", int32(16), "bool", bson.A{"int", "date"}))
	case 7:
		return doc("$size", g.integer(4))
	case 8:
		return doc("$elemMatch", pick[any](g, doc("$gt", int32(0)), doc("x", g.value(0)), doc("$in", bson.A{g.value(0), g.value(0)}),
			doc("x", doc("$exists", true), "y", g.condition(0))))
	case 9:
		return doc("$mod", bson.A{pick[any](g, int32(2), int64(3), 2.5), g.integer(2)})
	case 10:
		return g.regex()
	case 11:
		return doc(pick(g, "$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"), pick[any](g, g.integer(8), bson.A{g.integer(3), int32(1)}))
	case 12:
		return doc("$all", bson.A{doc("$elemMatch", doc("x", g.value(0))), doc("$elemMatch", doc("y", doc("$exists", true)))})
	}
	if depth > 0 {
		if c, ok := g.condition(0).(bson.D); ok && len(c) > 0 && c[0].Key[0] == '$' {
			return doc("$not", c)
		}
	}
	return doc("$gte", g.number(), "$lt", g.number())
}

func (g generator) regex() any {
	pattern := pick(g, "a", "^a", "^A", "b$", "a.b", "^$", "a|b", "[ab]{2}", "\\d+", "(a)(b)?", "^ab*", "\\.")
	options := pick(g, "", "i", "m", "s", "x", "im")
	return pick[any](g, doc("$regex", pattern, "$options", options), bson.Regex{Pattern: pattern, Options: options},
		doc("$in", bson.A{bson.Regex{Pattern: pattern, Options: options}, g.value(0)}), doc("$not", bson.Regex{Pattern: pattern}))
}

func (g generator) schema(depth int) bson.D {
	if depth > 0 && g.chance(3) {
		return doc(pick(g, "allOf", "anyOf", "oneOf"), bson.A{g.schema(0), g.schema(0)})
	}
	property := func() bson.D {
		return some(g,
			func() bson.D {
				return doc("bsonType", pick[any](g, "int", "string", "array", bson.A{"number", "null"}))
			},
			func() bson.D { return doc("minimum", g.integer(3), "exclusiveMinimum", g.chance(2)) },
			func() bson.D { return doc("maximum", g.integer(5)) },
			func() bson.D { return doc("enum", bson.A{g.value(1), g.value(0), g.value(0)}) },
			func() bson.D { return doc("minLength", g.integer(2), "maxLength", 1+g.integer(2)) },
			func() bson.D { return doc("pattern", "a") },
			func() bson.D { return doc("multipleOf", pick[any](g, int32(2), 0.5)) },
			func() bson.D { return doc("not", doc("bsonType", "string")) },
			func() bson.D { return doc("items", doc("bsonType", "number"), "minItems", g.integer(3)) },
			func() bson.D { return doc("uniqueItems", true, "maxItems", 1+g.integer(3)) },
			func() bson.D { return doc("type", pick(g, "object", "number", "boolean")) },
			func() bson.D {
				return doc("required", bson.A{"x"}, "additionalProperties", g.chance(2), "properties", doc("x", doc()))
			},
			func() bson.D { return doc("minProperties", g.integer(2), "maxProperties", 1+g.integer(2)) },
			func() bson.D { return doc("items", bson.A{doc("bsonType", "int")}, "additionalItems", g.chance(2)) })
	}
	s := doc("properties", doc(pick(g, "a", "b", "n", "s"), property(), pick(g, "c", "d", "l", "o"), property()))
	switch g.IntN(6) {
	case 0:
		s = append(s, bson.E{Key: "required", Value: bson.A{pick(g, "a", "n", "s")}})
	case 1:
		s = append(s, bson.E{Key: "dependencies", Value: doc("a", pick[any](g, bson.A{"b"}, doc("required", bson.A{"c"})))})
	case 2:
		s = append(s, bson.E{Key: "patternProperties", Value: doc("^[ab]$", property())})
	}
	return s
}
