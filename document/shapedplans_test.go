package document_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestPlansOverShapedData asks two collections with the same some hundred documents the same: one without an index, and one with several,
// by each of them. The values of a field lie in stripes, thirds, rising, falling, or are nearly all the same, so that plans differ in what
// they read. It asks as of now, of a snapshot of which the indexes have been dropped and made otherwise since, in a transaction behind its
// writes, and after the store was opened again or salvaged.
func TestPlansOverShapedData(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for seed := range uint64(shapedSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := &shaped{t: t, Rand: rand.New(rand.NewPCG(seed, 1)), fs: memfs.New(), dir: "db", indexes: map[string]document.Index{}}
			s.open()
			s.load()
			for range 4 {
				s.ask(10)
				s.write()
				pickOne(s, s.askSnapshot, s.askInTransaction, s.reopen, s.salvage)()
			}
			s.ask(10)
			must(t, s.store.Close())
		})
	}
}

// shaped is two collections, and what their documents are made of.
type shaped struct {
	*rand.Rand
	t              *testing.T
	fs             *memfs.FS
	dir            string
	store          *document.Store
	plain, indexed *document.Collection
	n              int
	made           int // documents
	shapes         [4]int
	indexes        map[string]document.Index
}

func pickOne[T any](s *shaped, list ...T) T { return list[s.IntN(len(list))] }

func fieldsOf(list ...any) bson.D {
	d := bson.D{}
	for i := 0; i < len(list); i += 2 {
		d = append(d, bson.E{Key: list[i].(string), Value: list[i+1]})
	}
	return d
}

func (s *shaped) open() {
	var err error
	s.store, err = document.Open(s.dir, &document.Options{Storage: pando.Options{FS: s.fs, MemoryBytes: 4 << 20}, TTLInterval: -1})
	must(s.t, err)
	s.plain, s.indexed = collection(s.t, s.store, "plain", nil), collection(s.t, s.store, "indexed", nil)
}

// load makes the indexes, some of them before the documents are there.
func (s *shaped) load() {
	s.n = 300 + s.IntN(500)
	for i := range s.shapes {
		s.shapes[i] = s.IntN(6)
	}
	s.makeIndexes()
	s.insert(s.plain, s.indexed, s.n/2)
	must(s.t, s.store.DB().Checkpoint(ctx))
	s.makeIndexes()
	s.insert(s.plain, s.indexed, s.n/2)
}

func (s *shaped) insert(plain, indexed *document.Collection, n int) {
	var docs []any
	for range n {
		docs = append(docs, s.document(s.made))
		s.made++
	}
	for _, c := range []*document.Collection{plain, indexed} {
		_, err := c.InsertMany(ctx, docs, nil)
		must(s.t, err)
	}
}

// at is the value of a field in document i.
func (s *shaped) at(field, i int) int {
	switch s.shapes[field] {
	case 0:
		return i % 3
	case 1:
		return 3 * i / s.n
	case 2:
		return i
	case 3:
		return -i
	case 4: // stripes
		return i / 20 % 2 * i
	}
	if s.IntN(50) == 0 {
		return i
	}
	return 7
}

// dressed is a number, or seldom something else.
func (s *shaped) dressed(n int) any {
	switch s.IntN(40) {
	case 0:
		return nil
	case 1:
		return float64(n) + 0.5
	case 2:
		return pickOne(s, "s", "S") + fmt.Sprint(n%20)
	case 3:
		return fieldsOf("x", n%5)
	case 4:
		return float64(n)
	}
	return n
}

func (s *shaped) document(i int) bson.D {
	d := fieldsOf("_id", i, "a", s.dressed(s.at(0, i)), "o", fieldsOf("x", s.dressed(s.at(1, i)), "y", s.dressed(s.at(2, i))))
	if s.IntN(4) > 0 {
		d = append(d, bson.E{Key: "b", Value: s.dressed(s.at(3, i))})
	}
	elements := bson.A{}
	for range s.IntN(4) {
		elements = append(elements, fieldsOf("x", s.dressed(s.at(1, i)), "y", s.dressed(s.IntN(9))))
	}
	return append(d, bson.E{Key: "e", Value: elements})
}

func (s *shaped) field() string { return pickOne(s, "a", "b", "o.x", "o.y", "e.x", "e.y", "_id") }

// order is keys of an index or a sort.
func (s *shaped) order() bson.D {
	d := bson.D{}
	for range 1 + s.IntN(3) {
		if f := s.field(); f != "_id" && !slices.ContainsFunc(d, func(e bson.E) bool { return e.Key == f }) {
			d = append(d, bson.E{Key: f, Value: pickOne(s, 1, -1)})
		}
	}
	return d
}

// makeIndexes makes two indexes of some kind.
func (s *shaped) makeIndexes() {
	for range 2 {
		x := document.Index{Keys: append(s.order(), bson.E{Key: "_id", Value: -1}), Name: fmt.Sprint("x", len(s.indexes), s.Uint32())}
		switch s.IntN(8) {
		case 0:
			x.Sparse = true
		case 1:
			x.Partial = pickOne(s, fieldsOf("a", fieldsOf("$gt", 1)), fieldsOf("b", fieldsOf("$exists", true)), fieldsOf("o.x", fieldsOf("$in", bson.A{0, 1, 7})))
		case 2:
			x.Collation = fieldsOf("locale", "en", "strength", 2)
		case 3:
			x.Keys = fieldsOf(pickOne(s, "a", "b", "o.x"), "hashed")
		case 4:
			x.Keys = pickOne(s, fieldsOf("$**", 1), fieldsOf("o.$**", 1), fieldsOf("a", 1, "o.$**", -1))
		case 5:
			x.Hidden = true
		}
		if _, err := s.indexed.CreateIndex(ctx, x); err == nil { // an equal one may be there
			s.indexes[x.Name] = x
		}
	}
}

// whole are the names of indexes that may be asked for without changing the answer.
func (s *shaped) whole() (names []string) {
	for name, x := range s.indexes {
		if !x.Sparse && !x.Hidden && x.Partial == nil && x.Collation == nil && !strings.Contains(fmt.Sprint(x.Keys), "$**") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *shaped) condition() any {
	value := func() any { return s.dressed(s.at(s.IntN(4), s.IntN(s.n))) }
	n := s.IntN(s.n)
	switch s.IntN(8) {
	case 0:
		return fieldsOf(pickOne(s, "$gt", "$gte", "$lt", "$lte", "$ne"), value())
	case 1, 2:
		return fieldsOf("$gte", n, "$lt", n+s.IntN(s.n))
	case 3:
		return fieldsOf(pickOne(s, "$in", "$in", "$nin"), bson.A{value(), value(), value(), nil})
	case 4:
		return fieldsOf("$not", fieldsOf(pickOne(s, "$gt", "$eq", "$lte"), value()))
	case 5:
		return pickOne(s, fieldsOf("$exists", false), fieldsOf("$type", "number"), fieldsOf("$regex", "^s1"), fieldsOf("$exists", true), fieldsOf("$mod", bson.A{3, 1}))
	}
	return value()
}

func (s *shaped) filter(depth int) bson.D {
	f := bson.D{}
	for range s.IntN(3) {
		switch n := s.IntN(8); {
		case n == 0 && depth > 0:
			f = append(f, bson.E{Key: pickOne(s, "$or", "$or", "$nor"), Value: bson.A{s.filter(depth - 1), s.filter(depth - 1), fieldsOf("a", s.condition())}})
		case n == 1:
			f = append(f, bson.E{Key: "e", Value: fieldsOf("$elemMatch", fieldsOf("x", s.condition(), "y", s.condition()))})
		default:
			f = append(f, bson.E{Key: s.field(), Value: s.condition()})
		}
	}
	return f
}

// shapedQuery is a question, as text and as what asks a collection.
type shapedQuery struct {
	text string
	ask  func(c *document.Collection, hint any) ([]string, error)
}

func (s *shaped) query() shapedQuery {
	filter := s.filter(1)
	o := document.FindOptions{Sort: append(s.order(), bson.E{Key: "_id", Value: pickOne(s, 1, -1)}), Skip: int64(s.IntN(2) * s.IntN(40)), Limit: int64(s.IntN(2) * s.IntN(40))}
	switch s.IntN(5) {
	case 0:
		o = document.FindOptions{}
		return shapedQuery{fmt.Sprint("count ", filter), func(c *document.Collection, hint any) ([]string, error) {
			n, err := c.Count(ctx, filter, &document.FindOptions{Hint: hint})
			return []string{fmt.Sprint(n)}, err
		}}
	case 1:
		by := s.field()
		first := fieldsOf("_id", "$"+by, "first", fieldsOf(pickOne(s, "$first", "$last"), "$_id"))
		stages := bson.A{fieldsOf("$match", filter), fieldsOf("$sort", append(fieldsOf(by, 1), slices.DeleteFunc(o.Sort.(bson.D), func(e bson.E) bool { return e.Key == by })...)),
			fieldsOf("$group", first), fieldsOf("$project", fieldsOf("_id", 0)), fieldsOf("$sort", fieldsOf("first", 1))}
		return shapedQuery{fmt.Sprint("aggregate ", stages), func(c *document.Collection, hint any) ([]string, error) {
			return inOrder(c.Aggregate(ctx, stages, &document.AggregateOptions{Hint: hint}))
		}}
	case 2:
		o.Projection = fieldsOf("a", 1, "_id", s.IntN(2))
	case 3:
		o.Collation = fieldsOf("locale", "en", "strength", 2)
	}
	return shapedQuery{fmt.Sprintf("find %v %+v", filter, o), func(c *document.Collection, hint any) ([]string, error) {
		o := o
		o.Hint = hint
		return inOrder(c.Find(ctx, filter, &o))
	}}
}

// inOrder are documents, as bytes, with their fields in one order: an index gives them in that of its keys.
func inOrder(docs iter.Seq2[bson.Raw, error]) ([]string, error) {
	return fieldsInOrder(docs, "", func(e bson.RawElement) string { return string(e) })
}

// inWords are such documents to be read.
func inWords(docs iter.Seq2[bson.Raw, error]) ([]string, error) {
	return fieldsInOrder(docs, ", ", bson.RawElement.String)
}

func fieldsInOrder(docs iter.Seq2[bson.Raw, error], between string, show func(bson.RawElement) string) (list []string, err error) {
	for doc, err := range docs {
		if err != nil {
			return nil, err
		}
		elements, err := doc.Elements()
		if err != nil {
			return nil, err
		}
		var shown []string
		for _, e := range elements {
			shown = append(shown, show(e))
		}
		slices.Sort(shown)
		list = append(list, strings.Join(shown, between))
	}
	return list, nil
}

// ask compares answers as of now.
func (s *shaped) ask(queries int) { s.askOf(s.plain, s.indexed, queries, s.whole()) }

func (s *shaped) askOf(plain, indexed *document.Collection, queries int, hints []string) {
	s.t.Helper()
	for range queries {
		q := s.query()
		want, err := q.ask(plain, nil)
		must(s.t, err)
		for _, name := range append([]string{""}, hints...) {
			var hint any
			if name != "" {
				hint = name
			}
			if got, err := q.ask(indexed, hint); err != nil || !slices.Equal(got, want) {
				s.t.Fatalf("%s by %q: %v\n got %q\nwant %q\nindexes %v", q.text, name, err, got, want, s.indexes)
			}
		}
	}
	v, err := s.indexed.Validate(ctx)
	must(s.t, err)
	for _, x := range v.Indexes {
		if x.Missing != 0 || x.Extra != 0 {
			s.t.Errorf("%+v", x)
		}
	}
}

func (s *shaped) write() { s.writeTo(s.plain, s.indexed) }

// writeTo changes what it finds by an index, in a field that the index may have.
func (s *shaped) writeTo(plain, indexed *document.Collection) {
	s.t.Helper()
	filter, field, set := s.filter(1), pickOne(s, "a", "b", "o.x"), s.dressed(s.IntN(s.n))
	change := pickOne[any](s, fieldsOf("$set", fieldsOf(field, set)), fieldsOf("$unset", fieldsOf(field, 1)), bson.A{fieldsOf("$set", fieldsOf(field, "$_id"))})
	var results []string
	for _, c := range []*document.Collection{plain, indexed} {
		result, err := c.Update(ctx, filter, change, &document.UpdateOptions{Many: true})
		must(s.t, err)
		n, err := c.Delete(ctx, fieldsOf("$and", bson.A{filter, fieldsOf("_id", fieldsOf("$mod", bson.A{7, 1}))}), &document.DeleteOptions{Many: true})
		must(s.t, err)
		results = append(results, fmt.Sprint(result.Matched, result.Modified, n))
	}
	if results[0] != results[1] {
		s.t.Fatalf("update %v %v: %s without indexes, %s with %v", filter, change, results[0], results[1], s.indexes)
	}
	s.insert(plain, indexed, 20)
}

func (s *shaped) askSnapshot() {
	snapshot, err := s.store.Snapshot(ctx)
	must(s.t, err)
	for name := range s.indexes {
		must(s.t, s.indexed.DropIndex(ctx, name))
		delete(s.indexes, name)
	}
	s.write()
	s.makeIndexes()
	s.askOf(snapshot.In(s.plain), snapshot.In(s.indexed), 10, nil)
	must(s.t, snapshot.Close())
}

func (s *shaped) askInTransaction() {
	tx, err := s.store.Begin(ctx)
	must(s.t, err)
	plain, indexed := tx.In(s.plain), tx.In(s.indexed)
	s.writeTo(plain, indexed)
	s.askOf(plain, indexed, 10, s.whole())
	if s.IntN(2) == 0 {
		tx.Abort()
		return
	}
	must(s.t, tx.Commit(ctx))
}

func (s *shaped) reopen() {
	must(s.t, s.store.Close())
	s.open()
}

func (s *shaped) salvage() {
	must(s.t, s.store.Close())
	from := s.dir
	s.dir += "-salvaged"
	_, err := document.Salvage(ctx, from, s.dir, &document.Options{Storage: pando.Options{FS: s.fs}})
	must(s.t, err)
	s.open()
}
