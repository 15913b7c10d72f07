package differential

import (
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// generator makes calls from a seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 0))} }

// pick returns one of the choices.
func pick[T any](g generator, choices ...T) T { return choices[g.IntN(len(choices))] }

func (g generator) field() string { return pick(g, "a", "b", "c", "d", "a.x", "b.y", "c.0", "d.x.y") }

// value is small on purpose: what never matches tells nothing.
func (g generator) value(depth int) any {
	switch n := g.IntN(14); {
	case n < 4:
		return int32(g.IntN(6) - 1)
	case n == 4:
		return int64(g.IntN(4))
	case n == 5:
		return pick(g, 0.5, 1.0, 2.0, -1.5)
	case n < 8:
		return pick(g, "", "a", "b", "ab", "B")
	case n == 8:
		return nil
	case n == 9:
		return g.IntN(2) == 0
	case n == 10:
		return bson.DateTime(g.IntN(3) * 86_400_000)
	case n == 11 && depth > 0:
		list := bson.A{}
		for range g.IntN(4) {
			list = append(list, g.value(depth-1))
		}
		return list
	case depth > 0:
		d := bson.D{}
		for _, k := range []string{"x", "y"} {
			if g.IntN(3) > 0 {
				d = append(d, bson.E{Key: k, Value: g.value(depth - 1)})
			}
		}
		return d
	}
	return int32(1)
}

func (g generator) documents(n int) (docs bson.A) {
	for i := range n {
		d := bson.D{{Key: "_id", Value: int32(i)}}
		for _, k := range []string{"a", "b", "c", "d"} {
			if g.IntN(5) > 0 {
				d = append(d, bson.E{Key: k, Value: g.value(2)})
			}
		}
		docs = append(docs, d)
	}
	return docs
}

// index returns the key of an index; some are refused for the arrays in the documents, by both servers.
func (g generator) index() bson.D {
	key := bson.D{}
	for _, f := range []string{"a", "b.y", "c", "d"} {
		if g.IntN(3) == 0 {
			key = append(key, bson.E{Key: f, Value: pick[int32](g, 1, -1)})
		}
	}
	if len(key) == 0 {
		return bson.D{{Key: "a", Value: int32(1)}}
	}
	return key
}

func (g generator) filter(depth int) bson.D {
	if depth > 0 && g.IntN(3) == 0 {
		list := bson.A{}
		for range 1 + g.IntN(3) {
			list = append(list, g.filter(depth-1))
		}
		return bson.D{{Key: pick(g, "$and", "$or", "$nor"), Value: list}}
	}
	f := bson.D{}
	for range g.IntN(3) {
		name := g.field()
		if len(f) == 0 || f[0].Key != name {
			f = append(f, bson.E{Key: name, Value: g.condition(depth)})
		}
	}
	return f
}

func (g generator) condition(depth int) any {
	one := func(op string, v any) bson.D { return bson.D{{Key: op, Value: v}} }
	switch g.IntN(11) {
	case 0, 1:
		return g.value(1)
	case 2, 3:
		return one(pick(g, "$gt", "$gte", "$lt", "$lte", "$eq", "$ne"), g.value(1))
	case 4:
		return one(pick(g, "$in", "$nin", "$all"), bson.A{g.value(1), g.value(0)})
	case 5:
		return one("$exists", g.IntN(2) == 0)
	case 6:
		return one("$type", pick[any](g, "number", "string", "array", "object", "null", int32(16), "bool"))
	case 7:
		return one("$size", int32(g.IntN(4)))
	case 8:
		return one("$elemMatch", pick[any](g, bson.D{{Key: "$gt", Value: int32(0)}}, bson.D{{Key: "x", Value: g.value(0)}}))
	case 9:
		return one("$mod", bson.A{int32(2), int32(g.IntN(2))})
	}
	if depth > 0 {
		if c, ok := g.condition(0).(bson.D); ok && len(c) == 1 && c[0].Key[0] == '$' {
			return one("$not", c)
		}
	}
	return bson.D{{Key: "$gte", Value: g.value(0)}, {Key: "$lt", Value: g.value(0)}}
}

func (g generator) sort() bson.D {
	s := bson.D{}
	if f := g.field(); g.IntN(2) == 0 {
		s = append(s, bson.E{Key: f, Value: pick[int32](g, 1, -1)})
	}
	return append(s, bson.E{Key: "_id", Value: pick[int32](g, 1, -1)})
}

func (g generator) projection() bson.D {
	on := int32(g.IntN(2))
	return pick(g, bson.D{}, bson.D{{Key: g.field(), Value: on}}, bson.D{{Key: "a", Value: on}, {Key: pick(g, "b", "c.0", "d.x.y"), Value: on}},
		bson.D{{Key: g.field(), Value: bson.D{{Key: "$slice", Value: int32(g.IntN(5) - 2)}}}})
}

func (g generator) update() any {
	set := func(op string, v any) bson.D { return bson.D{{Key: op, Value: bson.D{{Key: g.field(), Value: v}}}} }
	switch g.IntN(9) {
	case 0:
		return bson.D{{Key: "a", Value: g.value(2)}}
	case 1:
		return bson.A{bson.D{{Key: "$set", Value: bson.D{{Key: "e", Value: g.expression(2)}}}}}
	case 2:
		return set("$unset", "")
	case 3:
		return set(pick(g, "$inc", "$mul"), pick[any](g, int32(2), int64(3), 0.5))
	case 4:
		return set(pick(g, "$min", "$max"), g.value(1))
	case 5:
		return set(pick(g, "$push", "$addToSet"), pick[any](g, g.value(1), bson.D{{Key: "$each", Value: bson.A{g.value(0), g.value(0)}}}))
	case 6:
		return set("$pull", pick[any](g, g.value(0), bson.D{{Key: "$gte", Value: int32(1)}}))
	case 7:
		return pick(g, set("$pop", pick[int32](g, 1, -1)), set("$rename", "e"))
	}
	return set("$set", g.value(2))
}

func (g generator) expression(depth int) any {
	if depth == 0 || g.IntN(4) == 0 {
		return pick[any](g, "$"+g.field(), "$"+g.field(), bson.D{{Key: "$literal", Value: g.value(0)}})
	}
	one, two := g.expression(depth-1), g.expression(depth-1)
	switch g.IntN(4) {
	case 0:
		return bson.D{{Key: pick(g, "$type", "$isArray", "$isNumber", "$not", "$abs", "$toString"), Value: bson.A{one}}}
	case 1:
		return bson.D{{Key: pick(g, "$eq", "$lt", "$gte", "$cmp", "$and", "$or"), Value: bson.A{one, two}}}
	case 2:
		return bson.D{{Key: pick(g, "$add", "$subtract", "$multiply", "$concat", "$concatArrays", "$setUnion", "$in"), Value: bson.A{one, two}}}
	}
	return pick(g, bson.D{{Key: "$cond", Value: bson.A{one, two, int32(0)}}}, bson.D{{Key: "$ifNull", Value: bson.A{one, two}}})
}

// pipeline returns stages, and whether what comes out of them has an order: groups have none.
func (g generator) pipeline() (p bson.A, ordered bool) {
	// Sums of doubles depend on the order of their terms, so groups see documents in order.
	p = append(p, bson.D{{Key: "$match", Value: g.filter(1)}}, bson.D{{Key: "$sort", Value: bson.D{{Key: "_id", Value: int32(1)}}}})
	for range g.IntN(3) {
		p = append(p, pick(g,
			bson.D{{Key: "$addFields", Value: bson.D{{Key: "e", Value: g.expression(2)}}}},
			bson.D{{Key: "$project", Value: bson.D{{Key: "a", Value: int32(1)}, {Key: "e", Value: g.expression(2)}}}},
			bson.D{{Key: "$unwind", Value: bson.D{{Key: "path", Value: "$" + pick(g, "a", "b", "c")},
				{Key: "preserveNullAndEmptyArrays", Value: g.IntN(2) == 0}}}},
			bson.D{{Key: "$limit", Value: int32(1 + g.IntN(20))}},
			bson.D{{Key: "$skip", Value: int32(g.IntN(5))}}))
	}
	if g.IntN(3) == 0 {
		p = append(p, bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: g.expression(1)},
			{Key: "n", Value: bson.D{{Key: "$sum", Value: int32(1)}}},
			{Key: "v", Value: bson.D{{Key: pick(g, "$min", "$max", "$sum", "$avg", "$push"), Value: g.expression(1)}}}}}})
		return p, false
	}
	return p, true
}

// call returns a command, whether its answer has an order, and whether it writes.
func (g generator) call() (command bson.D, ordered, writes bool) {
	switch g.IntN(10) {
	case 0, 1, 2:
		ordered = g.IntN(2) == 0
		c := bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: g.filter(2)}, {Key: "projection", Value: g.projection()},
			{Key: "batchSize", Value: int32(1000)}}
		if ordered {
			c = append(c, bson.E{Key: "sort", Value: g.sort()}, bson.E{Key: "skip", Value: int32(g.IntN(3))},
				bson.E{Key: "limit", Value: int32(g.IntN(20))})
		}
		return c, ordered, false
	case 3:
		return bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: g.filter(2)}}, true, false
	case 4:
		// Without a filter mongod reads the keys of an index and returns undefined for an empty array, as it does nowhere else.
		return bson.D{{Key: "distinct", Value: "c"}, {Key: "key", Value: g.field()}, {Key: "query", Value: bson.D{
			{Key: "_id", Value: bson.D{{Key: "$gte", Value: int32(0)}}}, {Key: "$and", Value: bson.A{g.filter(1)}}}}}, false, false
	case 5:
		return bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: g.filter(1)}, {Key: "sort", Value: g.sort()},
			{Key: "update", Value: g.update()}, {Key: "new", Value: true}}, true, true
	case 6:
		return bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: g.filter(1)},
			{Key: "u", Value: g.update()}, {Key: "multi", Value: true}}}}}, true, true
	case 7:
		return bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{
			{Key: "q", Value: g.filter(2)}, {Key: "limit", Value: int32(0)}}}}}, true, true
	}
	p, ordered := g.pipeline()
	return bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: p},
		{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: int32(1000)}}}}, ordered, false
}
