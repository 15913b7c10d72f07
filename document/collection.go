package document

import (
	"context"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
)

// Collection holds documents, each under its _id, and keeps indexes of them. A handle is cheap: it is a name, looked up by each
// call, so it goes on working when the collection is dropped and made again. A collection that is not there reads as empty;
// the first write makes it. It is safe for concurrent use, unless it is seen through a Tx.
type Collection struct {
	store *Store
	ns    namespace
	tx    *Tx     // nil: each call is on its own
	at    *moment // of a snapshot: nil otherwise
}

// moment returns what a read of the collection sees: the present, what its transaction sees, or its snapshot. It must be closed.
func (c *Collection) moment() *moment {
	if c.at != nil {
		return &moment{store: c.store, reader: c.at.reader, seq: c.at.seq}
	}
	return c.store.moment(c.tx)
}

// Name returns the collection's name.
func (c *Collection) Name() string { return c.ns.collection }

// Database returns the database in which the collection is.
func (c *Collection) Database() *Database { return c.store.Database(c.ns.database) }

// collection is a collection as long as it lives, whatever it is called.
type collection struct {
	store   *Store
	number  uint32
	uuid    bson.Binary
	format  Format
	records *pando.Keyspace
	codec   *codec.Codec

	name      atomic.Pointer[namespace]
	settings  atomic.Pointer[settings]
	indexes   atomic.Pointer[[]*secondary] // replaced as a whole; those being built are in it
	nextIndex uint32                       // under Store.schema
	dropped   atomic.Bool

	// schema is held for reading while a write commits, and for writing while the list of indexes changes: a write that made its
	// entries from another list than the one in force starts again.
	schema sync.RWMutex

	capped cappedState

	asked, about atomic.Int64 // see estimate
}

// secondary is one index of a collection.
type secondary struct {
	number   uint32
	def      *index.Definition
	ks       *pando.Keyspace
	multikey atomic.Uint64 // a bit for each component that met an array; set before the commit that needs it, never cleared
	ready    bool
	since    uint64 // the change from which on it has been complete; 0: as long as the store has been open
	build    *build // while it is being built
}

// use returns the collection of a handle, and nil when it is not there.
func (c *Collection) use() (*collection, error) {
	if err := c.store.usable(); err != nil {
		return nil, err
	}
	if c.tx != nil {
		if x := c.tx.created[c.ns]; x != nil {
			return x, nil
		}
	}
	return c.store.current.Load().byName[c.ns.String()], nil
}

// view returns the view of this name, and nil when there is none.
func (c *Collection) view() *view { return c.store.current.Load().views[c.ns.String()] }

// make returns the collection of a handle, and creates it when it is not there.
func (c *Collection) make(ctx context.Context) (*collection, error) {
	x, err := c.use()
	if x != nil || err != nil {
		return x, err
	}
	if c.view() != nil {
		return nil, onView(c.ns)
	}
	if c.tx != nil {
		return c.tx.create(c.ns, emptyDocument())
	}
	return c.store.create(ctx, c.ns, emptyDocument(), false)
}

// key appends the record key of an _id.
func (c *collection) key(dst []byte, id bsoncore.Value) []byte {
	return keyenc.Append(dst, id, false, nil)
}

// source is what plans of this collection run on.
//
// It leaves out hidden indexes, and those that were not complete at the moment that is read: since is its number in the log.
func (c *collection) source(since uint64) *execute.Collection {
	x := &execute.Collection{
		Namespace: c.name.Load().String(), Records: c.records, Codec: c.codec, Capped: c.settings.Load().capped, Estimate: c.estimate,
	}
	for _, i := range *c.indexes.Load() {
		if i.ready && !i.def.Hidden && i.since <= since {
			x.Indexes = append(x.Indexes, execute.Index{Definition: i.def, Keyspace: i.ks, Multikey: i.multikey.Load})
		}
	}
	return x
}

// estimateAge is for how many calls an estimate of the number of records is good: counting looks at each that has not settled.
const estimateAge = 1000

// estimate returns about how many records there are.
func (c *collection) estimate() int64 {
	if c.asked.Add(1)%estimateAge == 1 {
		if n, err := c.records.Count(nil, nil); err == nil {
			c.about.Store(n)
		}
	}
	return c.about.Load()
}

// Get returns a copy of the document with this _id, or ErrNotFound.
func (c *Collection) Get(ctx context.Context, id any) (bson.Raw, error) { return c.GetTo(ctx, nil, id) }

// GetTo appends the document with this _id to dst and returns the result, or ErrNotFound. See GetValueTo for reads that allocate
// nothing.
func (c *Collection) GetTo(ctx context.Context, dst []byte, id any) (bson.Raw, error) {
	v, err := toValue(id)
	if err != nil {
		return dst, err
	}
	return c.GetValueTo(ctx, dst, bson.RawValue{Type: bson.Type(v.Type), Value: v.Data})
}
