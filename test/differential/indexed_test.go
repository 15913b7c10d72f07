package differential

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestIndexesChangeNoAnswer needs no mongod: this server answers the same with indexes of all kinds as without any. There are conditions
// and indexes here that a mongod answers differently with an index.
func TestIndexesChangeNoAnswer(t *testing.T) {
	us := ours(t)
	for seed := *first; seed < *first+8; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p := &indexed{t: t, generator: newGenerator(seed), us: us}
			p.load()
			for range 80 {
				command := p.query()
				if reads(command) {
					command = p.collated(command)
				}
				if p.compare(command) {
					return
				}
			}
			p.compare(doc("find", "", "sort", doc("_id", int32(1)), "batchSize", int32(1000)))
		})
	}
}

// indexed is two collections with the same documents and options, plain and indexed.
type indexed struct {
	generator
	t     *testing.T
	us    *peer
	specs string   // of the indexes, and what the collections are made with
	whole []string // names of those that hold all documents in their order
}

// load makes both collections.
func (p *indexed) load() {
	docs := p.documents(40)
	for i, d := range docs {
		docs[i] = p.changed(d.(bson.D))
	}
	options := pick(p.generator, doc(), doc(), doc("collation", p.collation()), doc("capped", true, "size", int32(1<<20)),
		doc("collation", p.collation(), "capped", true, "size", int32(1<<20)), doc("clusteredIndex", doc("key", doc("_id", int32(1)), "unique", true)))
	p.specs = shown(p.t, options)
	for _, name := range []string{"plain", "indexed"} {
		p.run(doc("drop", name))
		if text := outcome(p.t, p.run(append(doc("create", name), options...)), true, true); strings.HasPrefix(text, "error") {
			p.t.Fatal(text)
		}
		if text := outcome(p.t, p.run(doc("insert", name, "documents", docs)), true, true); strings.HasPrefix(text, "error") {
			p.t.Fatal(text)
		}
	}
	for i := range 1 + p.IntN(4) {
		spec := append(p.spec(), bson.E{Key: "name", Value: fmt.Sprint(i)})
		if p.run(doc("createIndexes", "indexed", "indexes", bson.A{spec}))["ok"] != 1.0 {
			continue // not for these documents
		}
		text := shown(p.t, spec)
		p.specs += text
		if len(spec) == 2 && !strings.Contains(text, "hashed") && !strings.Contains(text, `"2d`) && !strings.Contains(text, "$**") {
			p.whole = append(p.whole, fmt.Sprint(i))
		}
	}
}

func (p *indexed) run(command bson.D) bson.M {
	p.t.Helper()
	answer, err := p.us.run(command)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// changed puts in what other documents of the generator do not have: deeper values, extremes, and names with dots.
func (g generator) changed(d bson.D) bson.D {
	if g.chance(8) {
		d = append(d, bson.E{Key: pick(g, "a.x", "o.x", "b.y", "a.x.y"), Value: g.value(1)})
	}
	if g.chance(2) {
		d = append(d, bson.E{Key: "q", Value: g.spot()})
	}
	for i := range d {
		switch {
		case d[i].Key == "_id" && g.chance(3):
			d[i].Value = fmt.Sprintf("%s%v", pick(g, "a", "A", "\u00e9", ""), d[i].Value)
		case slices.Contains([]string{"a", "b", "d"}, d[i].Key) && g.chance(3):
			d[i].Value = g.value(4)
		case d[i].Key == "n" && g.chance(10):
			d[i].Value = pick[any](g, bson.MinKey{}, bson.MaxKey{}, nil, bson.A{}, bson.A{nil}, bson.A{bson.A{}}, bson.Undefined{})
		}
	}
	return d
}

// spot is what a flat index takes: coordinates in a list or a document, several of them, now and then none, or beyond its bounds.
func (g generator) spot() any {
	x, y := float64(g.IntN(12))/2-1, float64(g.IntN(12))/2-1
	switch g.IntN(12) {
	case 0:
		return doc("x", x, "y", y)
	case 1:
		return bson.A{bson.A{x, y}, bson.A{y, x}}
	case 2:
		return bson.A{int32(g.IntN(5)), int64(g.IntN(5))}
	case 3:
		return pick[any](g, bson.A{}, nil, bson.A{bson.A{x, y}, doc("lng", y, "lat", y)}, bson.A{x, y, "more"})
	case 4:
		if g.chance(8) {
			return pick[any](g, bson.A{200.0, y}, bson.A{x}, "nowhere", doc("x", x), bson.A{x, "y"})
		}
	}
	return bson.A{x, y}
}

// around is an area of the plane. Its edges are off the spots, as those of square are.
func (g generator) around() bson.D {
	x, y := float64(g.IntN(8))/2-0.75, float64(g.IntN(8))/2-0.75
	return doc("$geoWithin", some(g,
		func() bson.D { return doc("$box", bson.A{bson.A{x, y}, bson.A{x + 2, y + 1.5}}) },
		func() bson.D { return doc("$center", bson.A{bson.A{x, y}, pick(g, 0.3, 1.1, 2.6)}) },
		func() bson.D { return doc("$centerSphere", bson.A{bson.A{x, y}, pick(g, 0.01, 0.04)}) },
		func() bson.D {
			return doc("$polygon", bson.A{bson.A{x, y}, bson.A{x + 3, y + 0.5}, bson.A{x + 1, y + 2.5}})
		}))
}

// spec is an index without its name.
func (g generator) spec() bson.D {
	path := func() string {
		return pick(g, "a", "a.x", "b", "b.y", "c", "d", "d.x.y", "n", "s", "t", "o", "o.x", "o.y", "l")
	}
	key := doc(path(), pick[int32](g, 1, -1))
	if f := path(); f != key[0].Key {
		key = append(key, bson.E{Key: f, Value: pick[int32](g, 1, -1)})
	}
	switch g.IntN(13) {
	case 9:
		flat := doc("key", pick(g, doc("q", "2d"), doc("q", "2d", path(), int32(1))))
		return append(flat, pick(g, doc(), doc(), doc("bits", 1+g.integer(32)), doc("min", -10.0, "max", 10.0))...)
	case 0:
		return doc("key", key, "sparse", true)
	case 1, 2:
		return doc("key", key, "partialFilterExpression", pick(g, doc("a", doc("$exists", true)), doc("n", doc("$gt", int32(0))), doc("a", nil),
			doc("b.y", doc("$lte", int32(3))), doc("$or", bson.A{doc("a", int32(1)), doc("n", doc("$gte", int32(2)))}), doc("a", doc("$in", bson.A{int32(1), "a"}))))
	case 3:
		return doc("key", key, "collation", g.collation())
	case 10:
		return doc("key", append(key, bson.E{Key: "_id", Value: pick[int32](g, 1, -1)}), "unique", true)
	case 4:
		return doc("key", doc(pick(g, "n", "s", "t"), "hashed", path(), int32(1)))
	case 5:
		return doc("key", pick(g, doc("p", "2dsphere", path(), int32(1)), doc(path(), int32(-1), "p", "2dsphere")))
	case 6:
		return doc("key", doc(pick(g, "$**", "a.$**", "o.$**"), int32(1)))
	case 7:
		return doc("key", doc("$**", int32(1)), "wildcardProjection",
			pick(g, doc("a", doc("x", int32(1))), doc("a", int32(0), "o", doc("x", int32(0))), doc("a.x", 0.5, "_id", int32(1))))
	case 8:
		return doc("key", pick(g, doc("n", int32(1), "a.$**", int32(1)), doc("o.$**", int32(-1), "s", int32(1)),
			doc("a.$**", int32(1), "n", int32(-1), "s", int32(1)), doc("b", int32(1), "o.$**", int32(1), "t", int32(1))))
	}
	return doc("key", key)
}

// query is a command. What of several documents comes first is said by it, or does not matter to the answer.
func (g generator) query() bson.D {
	filter := g.anyFilter(2)
	switch g.IntN(11) {
	case 9:
		return g.piped(doc("$match", filter), g.joined(), doc("$project", doc("r", doc("$sortArray", doc("input", "$r._id", "sortBy", int32(1))))), doc("$sort", doc("_id", int32(1))))
	case 0:
		return doc("count", "", "query", filter, "skip", g.integer(2)*g.integer(5), "limit", g.integer(2)*g.integer(20))
	case 1:
		return doc("distinct", "", "key", pick(g, "a", "n", "s", "a.x", "t", "b", "b.y", "l", "o.x"), "query", filter)
	case 2:
		group := doc("_id", "$"+pick(g, "n", "s", "a", "a.x", "t"), "k", doc("$sum", int32(1)), "m", doc("$max", "$n"))
		return g.piped(doc("$match", filter), doc("$group", group), doc("$sort", doc("_id", int32(1))))
	case 3:
		return doc("find", "", "filter", filter, "sort", g.order(), "batchSize", int32(1000), "skip", g.integer(3), "limit", g.integer(12))
	case 4:
		return doc("find", "", "filter", filter, "projection", doc(pick(g, "s", "n", "a.x"), int32(1), "_id", int32(0)), "batchSize", int32(1000))
	case 5:
		return g.piped(doc("$match", filter), doc("$sort", g.order()), doc("$skip", g.integer(4)), doc("$limit", 1+g.integer(12)), doc("$project", doc("a", int32(1), "n", int32(1))))
	case 6:
		order := g.order()
		first := doc("_id", "$"+order[0].Key, "first", doc(pick(g, "$first", "$last"), "$_id"))
		return g.piped(doc("$match", filter), doc("$sort", order), doc("$group", first), doc("$project", doc("_id", int32(0))), doc("$sort", doc("first", int32(1))))
	case 7:
		compared := doc("$expr", doc(pick(g, "$eq", "$lt", "$gte"), bson.A{"$" + pick(g, "a", "n", "s", "t", "b.y", "o.x"), "$$v"}))
		return doc("find", "", "filter", append(compared, filter...), "sort", g.order(), "batchSize", int32(1000), "let", doc("v", g.variable()))
	case 8:
		return g.write(filter)
	}
	return doc("find", "", "filter", filter, "sort", doc("_id", int32(1)), "batchSize", int32(1000))
}

// order is a sort in which no two documents are equal.
func (g generator) order() bson.D {
	order := bson.D{}
	for range g.IntN(4) {
		path := pick(g, "a", "a.x", "b", "b.y", "d.x.y", "n", "n", "s", "t", "o.x", "o.y", "l")
		// Of two paths that lead through different arrays, or one of which is the beginning of the other, there may be no order.
		if !slices.ContainsFunc(order, func(e bson.E) bool {
			return e.Key[0] == path[0] || strings.Contains("abdol", e.Key[:1]) && strings.Contains("abdol", path[:1])
		}) {
			order = append(order, bson.E{Key: path, Value: pick[int32](g, 1, -1)})
		}
	}
	return append(order, bson.E{Key: "_id", Value: pick[int32](g, 1, -1)})
}

// piped is a pipeline.
func (g generator) piped(stages ...any) bson.D {
	return doc("aggregate", "", "pipeline", bson.A(stages), "cursor", doc())
}

// joined is a stage that joins a collection with itself, by fields that an index of it may have.
func (g generator) joined() bson.D {
	path := func() string { return pick(g, "a", "a.x", "b", "b.y", "c", "n", "n", "s", "t", "o.x", "l", "_id") }
	switch g.IntN(4) {
	case 0:
		compared := doc("$expr", doc(pick(g, "$eq", "$eq", "$gte", "$lt"), bson.A{"$" + path(), "$$v"}))
		return doc("$lookup", doc("from", "", "let", doc("v", "$"+path()), "pipeline", bson.A{doc("$match", compared)}, "as", "r"))
	case 1:
		return doc("$graphLookup", doc("from", "", "startWith", "$"+path(), "connectFromField", path(), "connectToField", path(), "as", "r", "maxDepth", g.integer(2)))
	case 2:
		return doc("$lookup", doc("from", "", "localField", path(), "foreignField", path(), "pipeline", bson.A{doc("$match", g.anyFilter(1))}, "as", "r"))
	}
	return doc("$lookup", doc("from", "", "localField", path(), "foreignField", path(), "as", "r"))
}

// of makes a command one of a collection, with which alone it joins.
func of(command bson.D, name string) bson.D {
	command[0].Value = name
	for _, e := range command {
		stages, _ := e.Value.(bson.A)
		for _, stage := range stages {
			if join, ok := stage.(bson.D); ok && slices.Contains([]string{"$lookup", "$graphLookup"}, join[0].Key) {
				join[0].Value.(bson.D)[0].Value = name
			}
		}
	}
	return command
}

// write changes the documents that a filter finds, by which an index may find them, in fields that it may have.
func (g generator) write(filter bson.D) bson.D {
	change := pick(g, doc("$set", doc(pick(g, "n", "s", "b.y"), g.value(0))), doc("$inc", doc("z", int32(1))), doc("$unset", doc(pick(g, "a", "s"), int32(1))))
	switch g.IntN(4) {
	case 0:
		return doc("delete", "", "deletes", bson.A{doc("q", doc("$and", bson.A{filter, doc("z", doc("$gte", g.integer(3)))}), "limit", int32(0))})
	case 1:
		return doc("findAndModify", "", "query", filter, "sort", g.order(), "update", change, "new", g.chance(2))
	}
	return doc("update", "", "updates", bson.A{doc("q", filter, "u", change, "multi", true)})
}

// compare asks both collections. It is over when documents were written and some could not be: which were before that depends on the plan.
func (p *indexed) compare(command bson.D) (over bool) {
	ordered := !slices.ContainsFunc(command, func(e bson.E) bool { return e.Key == "projection" })
	ask := func(name string) string {
		answer := p.run(of(command, name))
		cursor, _ := answer["cursor"].(bson.D)
		for _, e := range cursor {
			plain(e.Value) // which of several equal values is the first depends on the plan
		}
		text := outcome(p.t, answer, ordered, true)
		if command[0].Key == "distinct" || command[0].Key == "aggregate" {
			text = strings.NewReplacer("\u00e9", "e", "A", "a", "B", "b").Replace(text) // so it is with those that a collation makes equal
		}
		return text
	}
	want := ask("plain")
	if len(p.whole) > 0 && p.chance(3) && reads(command) && command[0].Key != "distinct" {
		command = append(command, bson.E{Key: "hint", Value: pick(p.generator, p.whole...)})
	}
	got := ask("indexed")
	if over = !reads(command) && strings.HasPrefix(got, "error"); got != want && !over {
		p.t.Errorf("%s\nwith:    %s\nwithout: %s\nindexes: %s", shown(p.t, command), around(got, want), around(want, got), p.specs)
	}
	return over
}

// reads reports whether a command of a query writes nothing.
func reads(command bson.D) bool {
	return slices.Contains([]string{"find", "count", "aggregate", "distinct"}, command[0].Key)
}
