package differential

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// generator makes calls from a seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 0))} }

// pick returns one of the choices.
func pick[T any](g generator, choices ...T) T { return choices[g.IntN(len(choices))] }

// chance is true once in n times.
func (g generator) chance(n int) bool { return g.IntN(n) == 0 }

// some returns the result of one of the functions, so that the others make nothing.
func some[T any](g generator, choices ...func() T) T { return choices[g.IntN(len(choices))]() }

// doc makes a document of names and values in turn.
func doc(pairs ...any) bson.D {
	d := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		d = append(d, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return d
}

// list makes an array of up to n values.
func (g generator) list(n int, value func() any) bson.A {
	l := bson.A{}
	for range g.IntN(n + 1) {
		l = append(l, value())
	}
	return l
}

func (g generator) integer(n int) int32 { return int32(g.IntN(n)) }

// field is any path. Fields a to d have values of every type; n has numbers, s strings, t dates, l and o arrays of numbers and of
// documents, p places; some documents have none of them.
func (g generator) field() string {
	return pick(g, "a", "b", "c", "d", "a.x", "b.y", "c.0", "d.x.y", "n", "s", "t", "l", "o", "o.x", "o.y", "l.0", "o.0.x", "_id")
}

// target is the path of a field that may be written to.
func (g generator) target() string {
	return pick(g, "a", "b", "c", "d", "a.x", "b.y", "c.0", "d.x.y", "n", "s", "l", "o", "o.0.x", "l.1", "e", "e.x")
}

// value is small on purpose: what never matches tells nothing.
func (g generator) value(depth int) any {
	switch n := g.IntN(16); {
	case n < 4:
		return int32(g.IntN(6) - 1)
	case n == 4:
		return int64(g.IntN(4))
	case n == 5:
		return pick(g, 0.5, 1.0, 2.0, -1.5)
	case n < 8:
		return g.text()
	case n == 8:
		return nil
	case n == 9:
		return g.IntN(2) == 0
	case n == 10:
		return g.date()
	case n == 11:
		return pick[any](g, decimal("1"), decimal("0.5"), bson.Regex{Pattern: "a"}, bson.MinKey{}, bson.MaxKey{}, bson.Binary{Data: []byte{1, 2}},
			bson.Timestamp{T: 1, I: 2}, decimal("2.50"))
	case n < 14 && depth > 0:
		return g.list(3, func() any { return g.value(depth - 1) })
	case depth > 0:
		return g.object(depth)
	}
	return int32(1)
}

func (g generator) object(depth int) bson.D {
	d := bson.D{}
	for _, k := range []string{"x", "y"} {
		if g.IntN(3) > 0 {
			d = append(d, bson.E{Key: k, Value: g.value(depth - 1)})
		}
	}
	return d
}

func decimal(s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return d
}

func (g generator) text() string {
	return pick(g, "", "a", "b", "ab", "B", "a b", "A", "\u00e9", "10", "2", "a,b,a")
}

func (g generator) number() any {
	return pick[any](g, g.integer(8)-2, g.integer(8)-2, g.integer(8), int64(g.IntN(5)), 0.5, 2.0, -1.5, int32(100), decimal("1.5"),
		pick[any](g, int32(3), int32(7), int64(1)<<40, math.Copysign(0, -1), math.NaN(), math.Inf(1), decimal("-0"), decimal("1E+3"), int64(math.MaxInt64), int32(math.MaxInt32)))
}

// date is one of few, now and then beside a change of the clocks. None is so early that what is subtracted leads to before 1970: there
// mongod 6.0.5 is a second off when a date has a fraction of one.
func (g generator) date() bson.DateTime {
	if g.chance(4) {
		changes := []int64{1_615_705_200_000, 1_636_264_800_000, 1_616_893_200_000, 1_635_642_000_000} // New York, Berlin: spring and autumn of 2021
		return bson.DateTime(pick(g, changes...) + int64(g.IntN(3)-1)*1_800_000)
	}
	return bson.DateTime(800_000_000_000 + int64(g.IntN(5))*86_400_000*17 + int64(g.IntN(3))*3_723_004)
}

// place is a point, or now and then another shape.
func (g generator) place() any {
	at := func() bson.A { return bson.A{float64(g.IntN(5)), float64(g.IntN(5))} }
	switch g.IntN(6) {
	case 0:
		return doc("type", "LineString", "coordinates", bson.A{at(), bson.A{float64(g.IntN(5)) + 0.5, 7.0}})
	case 1:
		return doc("type", "Polygon", "coordinates", bson.A{square(float64(g.IntN(4))+0.25, 1.5)})
	}
	return doc("type", "Point", "coordinates", at())
}

// square keeps its edges off the points: whether what touches an edge intersects is decided by the rounding of its coordinates.
func square(at, size float64) bson.A {
	return bson.A{bson.A{at, at}, bson.A{at + size, at}, bson.A{at + size, at + size}, bson.A{at, at + size}, bson.A{at, at}}
}

func (g generator) documents(n int) (docs bson.A) {
	for i := range n {
		d := doc("_id", int32(i))
		for _, k := range []string{"a", "b", "c", "d"} {
			if g.IntN(5) > 0 {
				d = append(d, bson.E{Key: k, Value: g.value(2)})
			}
		}
		for _, f := range []bson.E{{Key: "n", Value: g.number()}, {Key: "s", Value: g.text()}, {Key: "t", Value: g.date()},
			{Key: "l", Value: g.list(4, g.number)}, {Key: "o", Value: g.list(3, func() any { return g.object(1) })}, {Key: "p", Value: g.place()}} {
			if g.IntN(8) > 0 {
				d = append(d, f)
			}
		}
		docs = append(docs, d)
	}
	return docs
}

// index returns an index; some are refused for what is in the documents, by both servers. None is sparse: mongod takes those for
// $gte: null and $expr too, and so misses documents without the field.
func (g generator) index() bson.D {
	one := func() string { return pick(g, "a", "b.y", "c", "d", "n", "s", "t", "o.x", "l") }
	key := doc(one(), pick[int32](g, 1, -1))
	if f := one(); g.chance(2) && f != key[0].Key {
		key = append(key, bson.E{Key: f, Value: pick[int32](g, 1, -1)})
	}
	switch g.IntN(14) {
	case 10:
		return doc("key", doc(one(), int32(1), "c.0", int32(1)))
	case 11:
		return doc("key", doc(pick(g, "n", "s", "t"), "hashed", "b.y", int32(1)))
	case 0:
		return doc("key", doc("$**", int32(1)), "wildcardProjection", doc("a", int32(1), "c", int32(1), "o", int32(1)))
	case 1:
		return doc("key", doc(pick(g, "n", "s", "t"), "hashed"))
	case 2:
		return doc("key", doc("p", "2dsphere"))
	case 3:
		return doc("key", doc("p", "2dsphere", "n", int32(1)))
	case 5:
		return doc("key", key, "partialFilterExpression",
			doc(pick(g, "n", "a", "s"), pick(g, doc("$exists", true), doc("$gt", int32(0)), doc("$type", "string"))))
	case 6:
		return doc("key", key, "collation", g.collation())
	case 7:
		return doc("key", doc("t", int32(1), "_id", int32(1)), "unique", true)
	case 8:
		return doc("key", key, "unique", true)
	case 9:
		return doc("key", doc(pick(g, "a.$**", "d.$**"), int32(1)))
	}
	return doc("key", key)
}

func (g generator) collation() bson.D {
	return some(g,
		func() bson.D { return doc("locale", "en", "strength", 1+g.integer(3)) },
		func() bson.D { return doc("locale", "en", "strength", int32(1), "caseLevel", true) },
		func() bson.D { return doc("locale", "en", "numericOrdering", true) },
		func() bson.D { return doc("locale", "en", "caseFirst", "upper") },
		func() bson.D { return doc("locale", "simple") })
}

func (g generator) sort() bson.D {
	s := bson.D{}
	// mongod 6.0.5 sorts by o.0.x after a projection has left o.x out.
	if f := g.field(); g.chance(2) && f != "_id" && f != "o.0.x" {
		s = append(s, bson.E{Key: f, Value: pick[int32](g, 1, -1)})
	}
	return append(s, bson.E{Key: "_id", Value: pick[int32](g, 1, -1)})
}

func (g generator) projection() bson.D {
	on := g.integer(2)
	switch g.IntN(8) {
	case 0:
		return doc()
	case 1:
		return doc(g.field(), on)
	case 2:
		return doc("a", on, pick(g, "b", "c.0", "d.x.y", "o.x"), on)
	case 3:
		return doc(g.field(), doc("$slice", pick[any](g, g.integer(5)-2, bson.A{g.integer(4) - 2, 1 + g.integer(3)})))
	case 4:
		return doc(pick(g, "o", "l", "a"), doc("$elemMatch", pick[any](g, doc("x", g.value(0)), doc("$gt", g.number()))))
	case 5:
		return doc("e", g.expression(2), "p", int32(1))
	case 6:
		return doc("o", doc("x", on), "_id", g.integer(2))
	}
	return doc("o.$", int32(1))
}

// call is a command; ordered says that its answer has an order, writes that it writes.
type call struct {
	command         bson.D
	ordered, writes bool
}

func (g generator) call() call {
	switch g.IntN(24) {
	case 0, 1, 2, 3:
		return g.find()
	case 13, 14:
		return g.hinted()
	case 15:
		return g.bulk()
	case 4:
		return call{command: g.collated(doc("count", "c", "query", g.filter(2), "limit", g.integer(2)*30, "skip", g.integer(2)*5)), ordered: true}
	case 5:
		// Without a filter mongod reads the keys of an index, and returns null for what is not there.
		return call{command: g.collated(doc("distinct", "c", "key", pick(g, g.field(), g.field(), "o.0", "l.1", "o.0.x"), "query", doc("_id", doc("$gte", int32(0)), "$and", bson.A{g.filter(1)})))}
	case 6, 7:
		return g.findAndModify()
	case 8, 9, 10:
		return call{command: doc("update", "c", "updates", bson.A{g.statement()}), ordered: true, writes: true}
	case 11:
		return call{command: doc("delete", "c", "deletes", bson.A{g.collated(doc("q", g.filter(2), "limit", int32(0)))}), ordered: true, writes: true}
	case 12:
		return call{command: doc("insert", "c", "documents", g.news(), "ordered", g.chance(2)), ordered: true, writes: true}
	}
	p := g.pipeline()
	c := doc("aggregate", "c", "pipeline", p.stages, "cursor", doc("batchSize", int32(100_000)))
	if g.chance(10) && !p.writes {
		c[1].Value = append(bson.A{doc("$match", doc("$expr", doc(pick(g, "$eq", "$gt"), bson.A{"$" + g.field(), "$$v"})))}, p.stages...)
		if p.stages[0].(bson.D)[0].Key == "$geoNear" {
			c[1].Value = p.stages
		}
		c = append(c, bson.E{Key: "let", Value: doc("v", g.variable())})
	}
	return call{command: g.collated(c), ordered: p.ordered, writes: p.writes}
}

// variable is a value of let: a constant, or an expression of constants.
func (g generator) variable() any {
	return pick[any](g, g.number(), g.text(), doc("$literal", g.value(1)), doc("$add", bson.A{int32(1), g.integer(3)}), bson.A{g.integer(4), "a"})
}

// hinted is a read that says which index is to be used.
func (g generator) hinted() call {
	hint := pick[any](g, "0", "0", "1", "_id_", doc("_id", int32(1)), doc("$natural", int32(1)), "none")
	c := some(g,
		func() bson.D {
			return doc("find", "c", "filter", g.filter(2), "sort", g.sort(), "limit", g.integer(3)*10, "projection", g.projection())
		},
		func() bson.D {
			return doc("find", "c", "filter", doc(g.field(), g.condition(1)), "sort", doc("_id", int32(1)))
		},
		func() bson.D { return doc("count", "c", "query", g.filter(1)) },
		func() bson.D {
			return doc("aggregate", "c", "pipeline", bson.A{doc("$match", g.filter(1)), inOrder(), doc("$limit", 1+g.integer(30))}, "cursor", doc())
		})
	if p, ok := c[len(c)-1].Value.(bson.D); ok && len(p) > 0 && p[0].Key == "o.$" {
		c[len(c)-1].Value = doc()
	}
	if c[0].Key == "find" {
		c = append(c, bson.E{Key: "batchSize", Value: int32(100_000)})
	}
	return call{command: g.collated(append(c, bson.E{Key: "hint", Value: hint})), ordered: true}
}

// between is a find of what lies between keys of an index; ok is false for one that has no bounds of this kind.
func (g generator) between(index bson.D) (command bson.D, ok bool) {
	keys := index[0].Value.(bson.D)
	low, high := bson.D{}, bson.D{}
	for i, k := range keys {
		if _, plain := k.Value.(int32); !plain || strings.HasSuffix(k.Key, "$**") || index[1].Key == "collation" {
			return nil, false
		}
		from, to := g.value(1), g.value(1)
		if ends := []any{bson.MinKey{}, bson.MaxKey{}}; i > 0 && (slices.Contains(ends, from) || slices.Contains(ends, to) || fmt.Sprint(from) == fmt.Sprint(to)) {
			from, to = "from", "to" // mongod takes a field with the same bound twice for equal to it, and does not sort by it
		}
		low, high = append(low, bson.E{Key: k.Key, Value: from}), append(high, bson.E{Key: k.Key, Value: to})
	}
	order := bson.D{}
	for _, k := range keys[:g.IntN(len(keys)+1)] {
		order = append(order, bson.E{Key: k.Key, Value: k.Value.(int32) * pick[int32](g, 1, -1)})
	}
	if len(order) == 0 || order[len(order)-1].Key != "_id" {
		order = append(order, bson.E{Key: "_id", Value: pick[int32](g, 1, -1)})
	}
	command = doc("find", "c", "filter", g.filter(1), "sort", order, "limit", g.integer(2)*5, "batchSize", int32(100_000), "hint", index[len(index)-1].Value)
	bounds := pick(g, doc("min", low), doc("max", high), doc("min", low, "max", high))
	return append(command, bounds...), true
}

// bulk is several statements in one command, some of which fail.
func (g generator) bulk() call {
	name, list := "update", bson.A{}
	one := func() any { return g.statement() }
	if g.chance(3) {
		name, one = "delete", func() any {
			return pick(g, doc("q", g.filter(1), "limit", int32(0)), doc("q", doc("_id", g.integer(60)), "limit", int32(1)),
				doc("q", doc(pick(g, "n", "s"), doc("$badOperator", int32(1))), "limit", int32(0)))
		}
	}
	for range 1 + g.IntN(4) {
		list = append(list, one())
	}
	return call{command: doc(name, "c", name+"s", list, "ordered", g.chance(2)), ordered: true, writes: true}
}

// collated adds a collation to some commands.
func (g generator) collated(command bson.D) bson.D {
	if g.chance(4) {
		return append(command, bson.E{Key: "collation", Value: g.collation()})
	}
	return command
}

func (g generator) find() call {
	c := doc("find", "c", "filter", g.filter(2), "projection", g.projection(), "batchSize", int32(100_000))
	ordered := g.chance(2)
	if ordered {
		c = append(c, doc("sort", g.sort(), "skip", g.integer(3), "limit", g.integer(20))...)
	}
	if p := c[2].Value.(bson.D); len(p) > 0 && p[0].Key == "o.$" {
		// With one condition on one array, as else it is not defined whose position that is.
		c[1].Value = pick(g, doc("o.x", g.condition(1)), doc("o", doc("$elemMatch", doc("x", g.condition(0)))), doc("l", g.condition(0)))
	}
	if g.chance(10) {
		c[1].Value = doc("p", g.near())
		return call{command: c}
	}
	if g.chance(8) {
		c[1].Value = doc("$expr", doc(pick(g, "$eq", "$lt", "$gte"), bson.A{"$" + g.field(), "$$v"}))
		c[2].Value = doc("a", int32(1), "e", doc("$cond", bson.A{g.sound(), "$$v", g.expression(1)}))
		c = append(c, bson.E{Key: "let", Value: doc("v", g.variable())})
	}
	return call{command: g.collated(c), ordered: ordered}
}

// news are documents to insert: some have an _id that is there.
func (g generator) news() bson.A {
	docs := g.documents(3)
	for _, d := range docs {
		d.(bson.D)[0].Value = pick(g, int32(1000), int32(1001), int32(1002), int32(1003), int32(5))
	}
	return docs
}
