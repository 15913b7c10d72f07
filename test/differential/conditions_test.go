package differential

import "go.mongodb.org/mongo-driver/v2/bson"

// anyValue is value with what only this server answers alike with and without an index.
func (g generator) anyValue() any {
	switch g.IntN(12) {
	case 0:
		return pick[any](g, bson.MinKey{}, bson.MaxKey{}, nil, bson.A{}, bson.D{})
	case 1:
		return g.list(2, func() any { return g.value(1) })
	case 2:
		return g.object(2)
	}
	return g.value(1)
}

// operators returns a condition that is a document of operators; nil: none came.
func (g generator) operators() bson.D {
	if c, ok := g.anyCondition(0).(bson.D); ok && len(c) > 0 && c[0].Key[0] == '$' {
		return c
	}
	return nil
}

// anyCondition is condition with anyValue, and with conditions within one another.
func (g generator) anyCondition(depth int) any {
	switch g.IntN(12) {
	case 0:
		return g.anyValue()
	case 1, 2, 3:
		v := g.anyValue()
		if _, ok := v.(bson.Regex); ok {
			v = "a"
		}
		return doc(pick(g, "$gt", "$gte", "$lt", "$lte", "$eq", "$ne"), v)
	case 4:
		return doc(pick(g, "$in", "$nin", "$all"), bson.A{g.anyValue(), g.anyValue(), g.anyValue()})
	case 5:
		if c := g.operators(); depth > 0 && c != nil {
			return doc(pick(g, "$elemMatch", "$not"), c)
		}
		return doc("$type", pick[any](g, "number", "null", "minKey", "maxKey", int32(6), bson.A{"int", "date"}))
	case 6:
		return doc("$elemMatch", doc(pick(g, "x", "y", "0", "x.0"), g.anyCondition(0)))
	case 7:
		return doc("$elemMatch", doc("x", g.anyCondition(0), "y", g.anyCondition(0)))
	}
	return g.condition(depth)
}

// anyFilter is filter with anyCondition.
func (g generator) anyFilter(depth int) bson.D {
	if depth > 0 && g.chance(3) {
		l := bson.A{}
		for range 1 + g.IntN(3) {
			l = append(l, g.anyFilter(depth-1))
		}
		return doc(pick(g, "$and", "$or", "$or", "$nor"), l)
	}
	switch g.IntN(14) {
	case 0:
		return doc("$expr", g.sound())
	case 1:
		return doc("p", g.within(), pick(g, "n", "a", "b.y"), g.anyCondition(1))
	case 2:
		if g.chance(2) {
			return doc("q", g.around())
		}
		return doc("q", g.around(), pick(g, "n", "a", "b.y"), g.anyCondition(1))
	}
	f := bson.D{}
	for range pick(g, 1, 1, 2, 3) {
		path := pick(g, "a", "a", "b", "c", "d", "a.x", "b.y", "d.x.y", "n", "s", "t", "l", "o", "o.x", "o.y", "_id")
		f = append(f, bson.E{Key: path, Value: g.anyCondition(depth)})
	}
	return f
}
