package execute_test

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/vfs/memfs"
)

// fixture is a collection in a database of its own, written as package document writes it.
type fixture struct {
	t        testing.TB
	db       *pando.DB
	c        *execute.Collection
	multikey []uint64
	entries  index.Entries
}

func newFixture(t testing.TB, format codec.Format) *fixture {
	t.Helper()
	db, err := pando.Open("db", &pando.Options{FS: memfs.New(), Profile: pando.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{t: t, db: db, c: &execute.Collection{Namespace: "test.c"}}
	if f.c.Records, err = db.Keyspace("records", nil); err != nil {
		t.Fatal(err)
	}
	if f.c.Codec, err = codec.New(format, &templates{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// templates keeps templates nowhere: nothing is opened again.
type templates struct{}

func (*templates) Definitions() codec.Definitions { return none{} }
func (*templates) Store(uint32, []byte) error     { return nil }

// none is no definitions.
type none struct{}

func (none) Next() (number uint32, definition []byte, ok bool) { return 0, nil, false }
func (none) Close() error                                      { return nil }

// index adds an index, before there are documents.
func (f *fixture) index(spec any) {
	f.t.Helper()
	def, err := index.Parse(encode(f.t, spec), nil)
	if err != nil {
		f.t.Fatalf("%v: %v", spec, err)
	}
	ks, err := f.db.Keyspace("index/"+def.Name, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	n := len(f.c.Indexes)
	f.multikey = append(f.multikey, 0)
	f.c.Indexes = append(f.c.Indexes, execute.Index{Definition: def, Keyspace: ks, Multikey: func() uint64 { return f.multikey[n] }})
}

// insert stores a document with its entries; ok is false when an index does not take it.
func (f *fixture) insert(doc bsoncore.Document) bool {
	f.t.Helper()
	b := f.db.NewBatch()
	key := keyenc.Append(nil, doc.Lookup("_id"), false, nil)
	record, err := f.c.Codec.Encode(nil, doc)
	if err != nil {
		f.t.Fatal(err)
	}
	b.In(f.c.Records).Put(key, record)
	multikey := append([]uint64(nil), f.multikey...)
	for i, x := range f.c.Indexes {
		if err := x.Definition.Append(&f.entries, path.Document(doc)); err != nil {
			return false
		}
		multikey[i] |= f.entries.Multikey
		for k, entry := range f.entries.Keys {
			var value []byte
			if x.Definition.Unique {
				if taken, err := x.Keyspace.Has(entry); err != nil || taken {
					return false
				}
				if value = append([]byte{1}, key...); f.entries.Exact[k] {
					value[0] = 0
				}
				b.In(x.Keyspace).Put(entry, value)
				continue
			}
			if !f.entries.Exact[k] {
				value = []byte{1}
			}
			b.In(x.Keyspace).Put(append(append([]byte(nil), entry...), key...), value)
		}
	}
	if err := f.db.Write(b); err != nil {
		f.t.Fatal(err)
	}
	copy(f.multikey, multikey)
	return true
}

// reader reads the present state.
func (f *fixture) reader() execute.Reader {
	s := f.db.Snapshot()
	f.t.Cleanup(func() { _ = s.Close() })
	return execute.FromSnapshot(s)
}

// query makes a query of a filter.
func (f *fixture) query(filter any) *plan.Query {
	f.t.Helper()
	q := &plan.Query{}
	var err error
	if q.Filter, err = query.Parse(encode(f.t, filter), nil); err != nil {
		f.t.Fatalf("%v: %v", filter, err)
	}
	return q
}

func (f *fixture) project(q *plan.Query, spec any) {
	f.t.Helper()
	var err error
	if q.Projection, err = projection.Parse(encode(f.t, spec), nil); err != nil {
		f.t.Fatalf("%v: %v", spec, err)
	}
}

func (f *fixture) choose(r execute.Reader, q *plan.Query) *plan.Plan {
	f.t.Helper()
	p, err := plan.Choose(q, execute.Planning(r, f.c))
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// run returns the documents of a plan, and what it counted.
func (f *fixture) run(r execute.Reader, p *plan.Plan, o *execute.Options) (docs []bsoncore.Document, st *plan.Stats, err error) {
	f.t.Helper()
	cur, err := execute.Open(context.Background(), r, f.c, p, o)
	if err != nil {
		return nil, nil, err
	}
	for cur.Next() {
		doc, err := cur.Document(nil)
		if err != nil {
			return nil, nil, errors.Join(err, cur.Close())
		}
		docs = append(docs, doc)
	}
	return docs, cur.Stats(), errors.Join(cur.Err(), cur.Close())
}

func encode(t testing.TB, v any) bsoncore.Document {
	t.Helper()
	if d, ok := v.(bson.D); v == nil || ok && d == nil {
		v = bson.D{}
	}
	out, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
