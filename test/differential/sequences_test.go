package differential

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/test/mongod"
)

// sequence is one of commands in which each finds what those before have left: collections of all kinds, that are altered, renamed
// and dropped on the way, cursors that stay open, and transactions of two sessions beside each other. After each write the contents,
// the indexes and the counts are compared too. After a difference it ends, as all that follows would differ.
type sequence struct {
	generator
	pair
	cursors  [2][]int64 // that are open, of ours and of theirs, one beside the other
	from     []string   // the collections that they read
	sessions [2]*session
	log      []string
	differs  bool
}

// session has a transaction, or none.
type session struct {
	id      bson.Binary
	number  int64
	open    bool
	written bool
}

// kept are the names that a sequence uses: of collections of the kinds that creations lists, at first.
var kept = []string{"plain", "capped", "clustered", "valid", "collated", "view", "series"}

func TestSequencesOfCommands(t *testing.T) {
	t.Parallel()
	them, us := theirSet(t), ours(t)
	known := knownDifferences(t)
	from, steps := firstSeed(), *calls/3
	for seed := from; seed < from+uint64(*seeds); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			q := &sequence{generator: newGenerator(seed), pair: pair{t: t, us: us, them: them, known: known}}
			for i := range q.sessions {
				id := make([]byte, 16)
				id[0], id[15] = byte(i), byte(seed)
				copy(id[1:], fmt.Sprint(seed))
				q.sessions[i] = &session{id: bson.Binary{Subtype: 4, Data: id}}
			}
			defer q.end()
			q.start()
			for range steps {
				if q.step(); q.differs {
					t.Log("the commands:\n" + strings.Join(q.log, "\n"))
					return
				}
			}
		})
	}
}

// theirSet starts mongod as a replica set of one: others have no transactions.
func theirSet(t *testing.T) *peer {
	t.Helper()
	if os.Getenv("PANDO_MONGOD") == "" && os.Getenv("PANDO_DRIVERS") != "1" {
		t.Skip("neither PANDO_MONGOD names a mongod, nor does PANDO_DRIVERS=1 ask to fetch one")
	}
	addr := mongod.Start(t, "--setParameter", "internalQueryForceClassicEngine=true", "--replSet", "rs0", "--oplogSize", "64")
	q, err := dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.conn.Close() })
	set := doc("_id", "rs0", "members", bson.A{doc("_id", int32(0), "host", addr)})
	if answer, err := q.run(doc("replSetInitiate", set, "$db", "admin")); err != nil || answer["ok"] != 1.0 {
		t.Fatal(answer, err)
	}
	for {
		if answer, err := q.run(doc("hello", int32(1))); err != nil {
			t.Fatal(err)
		} else if answer["isWritablePrimary"] == true {
			return q
		}
	}
}

// ask sends a command to both servers, and compares what outcome keeps of the answers, with the labels of errors.
func (q *sequence) ask(command bson.D, ordered bool) (us, them bson.M) {
	q.t.Helper()
	q.log = append(q.log, shown(q.t, command))
	return q.compare(command, command, ordered)
}

// compare is ask with a command for each, which have cursors of their own.
func (q *sequence) compare(ourCommand, theirCommand bson.D, ordered bool) (us, them bson.M) {
	q.t.Helper()
	var texts [2]string
	var answers [2]bson.M
	for i, c := range []bson.D{ourCommand, theirCommand} {
		answer, err := []*peer{q.us, q.them}[i].run(c)
		if err != nil {
			q.t.Fatalf("%v\n%s", err, strings.Join(q.log, "\n"))
		}
		answers[i] = answer
		texts[i] = outcome(q.t, answer, ordered, true) + fmt.Sprint(" ", answer["errorLabels"], " ", cursorOf(answer) != 0)
	}
	if texts[0] == texts[1] {
		return answers[0], answers[1]
	}
	q.differs = true
	text := fmt.Sprintf("%s\nours:   %s\ntheirs: %s", shown(q.t, ourCommand), around(texts[0], texts[1]), around(texts[1], texts[0]))
	for part, reason := range q.known {
		if strings.Contains(text, part) {
			q.t.Logf("known (%s): %s", reason, text)
			return answers[0], answers[1]
		}
	}
	q.t.Errorf("%s\n%v\n%v", text, answers[0]["errmsg"], answers[1]["errmsg"])
	return answers[0], answers[1]
}

// cursorOf returns the cursor that an answer leaves open, 0 for none.
func cursorOf(answer bson.M) (id int64) {
	cursor, _ := answer["cursor"].(bson.D)
	for _, e := range cursor {
		if e.Key == "id" {
			id, _ = e.Value.(int64)
		}
	}
	return id
}

// start makes the collections, each with documents and indexes of its own.
func (q *sequence) start() {
	for _, name := range append([]string{"out"}, kept...) {
		q.both(doc("drop", name), true)
	}
	for _, name := range kept {
		q.ask(q.creation(name), true)
		if name != "view" && name != "series" {
			q.ask(doc("insert", name, "documents", q.documents(12), "ordered", false), true)
			q.ask(doc("createIndexes", name, "indexes", bson.A{append(q.index(), bson.E{Key: "name", Value: "i"})}), true)
		}
	}
	q.ask(doc("insert", "series", "documents", seriesGenerator{generator: q.generator}.measurements(10), "ordered", false), true)
}

// end aborts the transactions that are open: mongod would wait for them when collections are dropped.
func (q *sequence) end() {
	for _, s := range q.sessions {
		q.both(doc("abortTransaction", int32(1), "lsid", doc("id", s.id), "txnNumber", s.number, "autocommit", false, "$db", "admin"), true)
	}
}

// creation is the command that makes a collection of a name's kind.
func (q *sequence) creation(name string) bson.D {
	c := doc("create", name)
	switch name {
	case "capped":
		return append(c, doc("capped", true, "size", int32(100_000), "max", 8+q.integer(8))...)
	case "clustered":
		return append(c, doc("clusteredIndex", doc("key", doc("_id", int32(1)), "unique", true))...)
	case "valid":
		return append(c, doc("validator", pick(q.generator, doc("n", doc("$not", doc("$gt", int32(50)))), doc("$jsonSchema", q.schema(1))),
			"validationLevel", pick(q.generator, "strict", "moderate"), "validationAction", pick(q.generator, "error", "error", "warn"))...)
	case "collated":
		return append(c, doc("collation", doc("locale", "en", "strength", int32(2)))...)
	case "view":
		return append(c, doc("viewOn", pick(q.generator, "plain", "clustered", "valid"), "pipeline", bson.A{doc("$match", doc("_id", doc("$lt", int32(40)))), doc("$set", doc("w", "$n"))})...)
	case "series":
		return append(c, doc("timeseries", doc("timeField", "t", "metaField", "m"))...)
	}
	return c
}

// state compares a collection as it is now.
func (q *sequence) state(name string) {
	if name == "capped" {
		q.ask(doc("find", name, "batchSize", int32(1000)), true)
	} else {
		q.ask(doc("find", name, "sort", doc("_id", int32(1)), "batchSize", int32(1000)), true)
	}
	if !q.sessions[0].open && !q.sessions[1].open { // mongod counts what is not committed yet
		q.ask(doc("count", name), true)
	}
	if name != "series" { // whose first index is the order of its records
		q.ask(doc("listIndexes", name), false)
	}
}

func (q *sequence) step() {
	name := pick(q.generator, kept...)
	switch q.IntN(12) {
	case 0:
		q.alter(name)
	case 1, 2:
		q.open(name)
	case 3, 4:
		q.readOn()
	case 5, 6, 7:
		q.inSession()
	default:
		switch {
		case q.sessions[0].open || q.sessions[1].open: // with which it may conflict: mongod waits for it, where Pando lets it go first
			q.ask(q.read(name), true)
			return
		case len(q.from) > 0: // whether a cursor sees it depends on the plan
			q.readOn()
			return
		case name == "series": // which series_test.go writes to
			return
		}
		q.ask(q.write(name), true)
		if q.state(name); name == "plain" {
			q.state("view")
		}
	}
}

// alter changes what is there beside documents. Cursors on a collection that is dropped end with other codes.
func (q *sequence) alter(name string) {
	if len(q.from) > 0 || q.sessions[0].open || q.sessions[1].open {
		return
	}
	index := append(q.index(), bson.E{Key: "name", Value: pick(q.generator, "i", "k")})
	c := pick(q.generator,
		doc("createIndexes", name, "indexes", bson.A{index}), doc("createIndexes", name, "indexes", bson.A{index}),
		doc("dropIndexes", name, "index", pick[any](q.generator, "i", "k", "*", doc("_id", int32(1)), bson.A{"i", "k"})),
		doc("collMod", name, "validator", pick(q.generator, doc(), doc("n", doc("$exists", true)))),
		doc("collMod", name, "index", doc("name", "i", "hidden", q.chance(2))),
		doc("collMod", name, "validationLevel", pick(q.generator, "off", "strict", "moderate")),
		doc("collMod", "view", "viewOn", "plain", "pipeline", bson.A{doc("$match", q.filter(1))}),
		doc("convertToCapped", "plain", "size", int32(100_000)),
		q.creation("other"),
		doc("aggregate", name, "pipeline", bson.A{doc("$match", q.filter(1)), doc("$out", pick(q.generator, "out", name))}, "cursor", doc()))
	if c[0].Value == "series" && strings.Contains(shown(q.t, c), "$**") || c[0].Key == "createIndexes" && c[0].Value == "series" && q.chance(2) {
		return // which no longer are refused since 7.0
	}
	if c[0].Key == "create" || c[0].Key == "convertToCapped" || c[0].Key == "aggregate" && name == "series" {
		return
	}
	q.ask(c, true)
	if q.state(name); q.chance(3) && name != "view" && name != "series" {
		q.ask(doc("drop", name), true)
		q.ask(q.creation(name), true)
		q.ask(doc("insert", name, "documents", q.documents(6), "ordered", false), true)
		q.state(name)
	}
}

// write is a command that changes documents. A collection whose documents come in different orders is changed by _id only where not all are.
func (q *sequence) write(name string) bson.D {
	g := q.generator
	one := doc("_id", pick[any](g, g.integer(14), g.integer(14), doc("$in", bson.A{g.integer(14)}), 1000+g.integer(4)))
	switch g.IntN(7) {
	case 0:
		return doc("insert", name, "documents", g.news(), "ordered", g.chance(2), "bypassDocumentValidation", g.chance(3))
	case 1:
		return doc("delete", name, "deletes", bson.A{doc("q", one, "limit", g.integer(2)), doc("q", one, "limit", int32(1))}, "ordered", g.chance(2))
	case 2:
		return doc("findAndModify", name, "query", one, "update", g.update(), "new", g.chance(2), "upsert", g.chance(3), "bypassDocumentValidation", g.chance(3))
	case 3:
		return doc("findAndModify", name, "query", one, "remove", true)
	case 4:
		return doc("update", name, "updates", bson.A{doc("q", one, "u", g.update(), "upsert", g.chance(3))}, "let", doc("v", g.integer(3), "w", doc("$add", bson.A{"$$v", int32(1)})))
	}
	list := bson.A{}
	for range 1 + g.IntN(4) {
		s := doc("q", pick(g, one, doc("_id", g.integer(14))), "u", g.update(), "upsert", g.chance(4))
		if usesFilters(s) {
			s = append(s, bson.E{Key: "arrayFilters", Value: bson.A{pick(g, doc("i", g.condition(0)), doc("i.x", g.condition(0)))}})
		}
		list = append(list, s)
	}
	return doc("update", name, "updates", list, "ordered", g.chance(2), "bypassDocumentValidation", g.chance(4))
}

// read is a command whose answer has an order.
func (q *sequence) read(name string) bson.D {
	g := q.generator
	let := doc("v", g.integer(6), "now", "$$NOW")
	byVariable := doc("$expr", doc(pick(g, "$lt", "$eq", "$gte"), bson.A{"$_id", "$$v"}))
	switch g.IntN(5) {
	case 0:
		return doc("count", name, "query", g.filter(1))
	case 1:
		return doc("find", name, "filter", byVariable, "let", let, "sort", doc("_id", int32(1)), "batchSize", int32(1000))
	case 2:
		return doc("aggregate", name, "pipeline", bson.A{doc("$match", byVariable), doc("$sort", doc("_id", int32(1))), doc("$project", doc("n", int32(1)))}, "let", let, "cursor", doc())
	case 3:
		return doc("find", name, "filter", g.filter(1), "sort", doc("_id", int32(1)), "limit", g.integer(9), "singleBatch", name != "view" && name != "series" && g.chance(2), "batchSize", int32(1000))
	}
	return doc("find", name, "filter", g.filter(1), "sort", doc("_id", int32(-1)), "skip", g.integer(3), "batchSize", int32(1000))
}

// open opens a cursor, which stays open if it has more.
func (q *sequence) open(name string) {
	g := q.generator
	// A sort that has to see everything first, so that no write is seen later.
	c := pick(g, doc("find", name, "sort", doc("n", int32(1), "_id", int32(1)), "batchSize", g.integer(4)),
		doc("aggregate", name, "pipeline", bson.A{doc("$sort", doc("n", int32(1), "_id", int32(1))), doc("$project", doc("n", int32(1)))}, "cursor", doc("batchSize", g.integer(4))))
	us, them := q.ask(c, true)
	if ourID, theirID := cursorOf(us), cursorOf(them); ourID != 0 && theirID != 0 {
		q.cursors[0], q.cursors[1], q.from = append(q.cursors[0], ourID), append(q.cursors[1], theirID), append(q.from, name)
	}
}

// readOn reads on from a cursor, or kills it; now and then it is one that is none.
func (q *sequence) readOn() {
	if len(q.from) == 0 {
		return
	}
	i := q.IntN(len(q.from))
	name := q.from[i]
	size := pick[any](q.generator, q.integer(4), int32(1000), q.integer(4)-1)
	command := func(id int64) bson.D {
		return doc("getMore", id, "collection", name, "batchSize", size)
	}
	ends := q.chance(6)
	if ends {
		command = func(id int64) bson.D { return doc("killCursors", name, "cursors", bson.A{id}) }
	}
	q.log = append(q.log, shown(q.t, command(int64(i))))
	us, _ := q.compare(command(q.cursors[0][i]), command(q.cursors[1][i]), true)
	if ends || us["ok"] == 1.0 && cursorOf(us) == 0 {
		for of := range q.cursors {
			q.cursors[of] = append(q.cursors[of][:i:i], q.cursors[of][i+1:]...)
		}
		q.from = append(q.from[:i:i], q.from[i+1:]...)
	}
}

// unlike reports whether a write to a collection in a transaction fails in other ways than in mongod: of a capped collection only what would
// change something does here, of a time series each statement, and of a view what is wrong with the update comes later.
func (q *sequence) unlike(name string) bool {
	return name == "capped" || name == "series" || name == "view"
}

// inSession goes on with a transaction, begins one, or ends it. Only one of two that are open writes: of a conflict mongod tells at once, where
// Pando may tell at the commit.
func (q *sequence) inSession() {
	i := q.IntN(2)
	s, other := q.sessions[i], q.sessions[1-i]
	part := func(c bson.D) bson.D {
		return append(c, doc("lsid", doc("id", s.id), "txnNumber", s.number, "autocommit", false)...)
	}
	if s.open && q.chance(3) {
		end := part(doc(pick(q.generator, "commitTransaction", "commitTransaction", "abortTransaction"), int32(1)))
		end = append(end, bson.E{Key: "$db", Value: "admin"})
		for range 1 + q.IntN(2) { // the second time it is repeated
			q.ask(end, true)
		}
		s.open, s.written = false, false
		for _, name := range []string{"plain", "clustered", "valid", "collated"} {
			q.state(name)
		}
		return
	}
	name := pick(q.generator, "plain", "clustered", "valid", "collated", "view", "capped", "series")
	c := q.read(name)
	if q.chance(2) && !(other.open && other.written) && !q.unlike(name) {
		s.written, c = true, q.write(name)
	}
	begins := !s.open
	if begins {
		s.open, s.number = true, s.number+1
	}
	if c = part(c); begins {
		c = append(c, bson.E{Key: "startTransaction", Value: true})
	}
	us, _ := q.ask(c, true)
	if us["ok"] != 1.0 || us["writeErrors"] != nil {
		q.ask(append(part(doc("abortTransaction", int32(1))), bson.E{Key: "$db", Value: "admin"}), true)
		s.open = false
	}
	if !s.open {
		s.written = false
	}
}
