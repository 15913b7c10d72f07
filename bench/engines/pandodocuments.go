package engines

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/document"
)

// pandoDocuments is package document, with its defaults: templates and zstd. No history is kept for change streams, since
// SQLite has nothing like them.
type pandoDocuments struct {
	s       *document.Store
	flights *document.Collection
	buffers sync.Pool
	mu      sync.RWMutex
	users   []*document.Collection
}

func openPandoDocuments(o engine.Options) (engine.Documents, error) {
	s, err := document.Open(o.Dir, &document.Options{Storage: *pandoOptions(o), History: -1})
	if err != nil {
		return nil, err
	}
	d := &pandoDocuments{s: s, flights: s.Database(document.DefaultDatabase).Lookup("flights")}
	d.buffers.New = func() any { return new([]byte) }
	return d, nil
}

// users returns collection n: a handle is a name, and need not be made each time.
func (d *pandoDocuments) collection(n int) *document.Collection {
	d.mu.RLock()
	if n < len(d.users) {
		defer d.mu.RUnlock()
		return d.users[n]
	}
	d.mu.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.users) <= n {
		d.users = append(d.users, d.s.Database(document.DefaultDatabase).Lookup("users"+strconv.Itoa(len(d.users))))
	}
	return d.users[n]
}

// Create makes a collection and its two indexes.
func (d *pandoDocuments) Create(n int) error {
	ctx := context.Background()
	c, err := d.s.Collection(ctx, "users"+strconv.Itoa(n), nil)
	if err != nil {
		return err
	}
	if _, err = c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "email", Value: 1}}, Unique: true}); err != nil {
		return err
	}
	_, err = c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "city", Value: 1}}})
	return err
}

// Insert is one InsertMany, which is one commit.
func (d *pandoDocuments) Insert(n int, users []engine.User) error {
	list := make([]bson.Raw, len(users))
	arena := make([]byte, 0, 256*len(users))
	for i := range users {
		from := len(arena)
		arena = users[i].AppendBSON(arena)
		list[i] = arena[from:len(arena):len(arena)]
	}
	_, err := d.collection(n).InsertMany(context.Background(), list, nil)
	return err
}

// ByID is a get by primary key into a buffer that is used again.
func (d *pandoDocuments) ByID(n int, id int64) (string, error) {
	buf := d.buffers.Get().(*[]byte)
	defer d.buffers.Put(buf)
	var key [8]byte
	doc, err := d.collection(n).GetValueTo(context.Background(), (*buf)[:0], bson.RawValue{Type: bson.TypeInt64, Value: bsoncore.AppendInt64(key[:0], id)})
	if err != nil {
		return "", err
	}
	*buf = doc
	return doc.Lookup("email").StringValue(), nil
}

// equals is the filter {field: value}.
func equals(field, value string) bson.Raw {
	at, b := bsoncore.AppendDocumentStart(make([]byte, 0, 64))
	b, _ = bsoncore.AppendDocumentEnd(bsoncore.AppendStringElement(b, field, value), at) // which fails for wrong offsets only
	return bson.Raw(b)
}

// ByEmail is a find with a filter, as an application writes it: the index is the planner's choice.
func (d *pandoDocuments) ByEmail(n int, email string) (int64, error) {
	for doc, err := range d.collection(n).Find(context.Background(), equals("email", email), nil) {
		if err != nil {
			return 0, err
		}
		return doc.Lookup("_id").Int64(), nil
	}
	return 0, fmt.Errorf("no user with the email %s", email)
}

// ByCity is a find with a filter and a limit. It looks into each document for the city.
func (d *pandoDocuments) ByCity(n int, city string, limit int) (int, error) {
	found := 0
	filter := equals("city", city)
	inBSON := filter[4 : len(filter)-1] // the element, as it is in each document
	for doc, err := range d.collection(n).Find(context.Background(), filter, &document.FindOptions{Limit: int64(limit)}) {
		if err != nil {
			return 0, err
		}
		if !bytes.Contains(doc, inBSON) {
			return 0, fmt.Errorf("looked for %s and found %s", city, doc)
		}
		found++
	}
	return found, nil
}

// LoadFlights makes a document of each row, without the fields that are not known.
func (d *pandoDocuments) LoadFlights(t *engine.Table) error {
	ctx := context.Background()
	if _, err := d.flights.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "tailnum", Value: 1}}}); err != nil {
		return err
	}
	return inBatches(len(t.Rows), func(from, to int) error {
		list := make([]bson.Raw, 0, to-from)
		for i, row := range t.Rows[from:to] {
			at, doc := bsoncore.AppendDocumentStart(nil)
			doc = bsoncore.AppendInt32Element(doc, "_id", int32(from+i))
			for f, v := range row {
				switch v := v.(type) {
				case int32:
					doc = bsoncore.AppendInt32Element(doc, t.Columns[f], v)
				case string:
					doc = bsoncore.AppendStringElement(doc, t.Columns[f], v)
				case time.Time:
					doc = bsoncore.AppendDateTimeElement(doc, t.Columns[f], v.UnixMilli())
				}
			}
			doc, err := bsoncore.AppendDocumentEnd(doc, at)
			if err != nil {
				return err
			}
			list = append(list, doc)
		}
		_, err := d.flights.InsertMany(ctx, list, nil)
		return err
	})
}

// LateFlights is a count with a filter.
func (d *pandoDocuments) LateFlights(origin string, delay int) (int, error) {
	n, err := d.flights.Count(context.Background(), bson.D{{Key: "origin", Value: origin}, {Key: "arr_delay", Value: bson.D{{Key: "$gt", Value: delay}}}}, nil)
	return int(n), err
}

// Settle brings what is in the memtables into the tree.
func (d *pandoDocuments) Settle() error { return d.s.DB().Checkpoint(context.Background()) }

// Compact rewrites everything with zstd, which is what documents are kept in when size matters.
func (d *pandoDocuments) Compact() error {
	return d.s.DB().Compact(context.Background(), pando.CompactOptions{Compression: pando.Zstd})
}

// Close closes the store and its database.
func (d *pandoDocuments) Close() error { return d.s.Close() }

// documentBatch is how many documents go into a commit.
const documentBatch = 16_000

func inBatches(n int, fn func(from, to int) error) error {
	for from := 0; from < n; from += documentBatch {
		if err := fn(from, min(from+documentBatch, n)); err != nil {
			return err
		}
	}
	return nil
}
