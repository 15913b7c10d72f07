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
	tx    *Tx         // nil: each call is on its own
	at    *moment     // of a snapshot: nil otherwise
	only  *collection // the one that is meant, and no other that has the name; nil: whichever has it
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
	former    atomic.Pointer[[]formerName] // in their order
	settings  atomic.Pointer[settings]
	indexes   atomic.Pointer[[]*secondary] // replaced as a whole; those being built are in it
	nextIndex atomic.Uint32                // counted up under Store.schema, read by writes that change the catalogue
	dropped   atomic.Bool
	undone    atomic.Uint64 // changes of the name or the settings that have failed: entries for the catalogue may be of them

	// schema is held for reading while a write commits, and for writing while the list of indexes, the name or the options change: a
	// write that made its entries from another list than the one in force, or went by other options, starts again. Who takes those of
	// several collections takes them in the order of their numbers.
	schema sync.RWMutex
	unread unread
	groups sync.Mutex // held while statements of one command are carried out with one commit

	capped cappedState
	ids    *index.Definition // of _id, where strings are compared by the collection's collation; nil: byte by byte
	loose  atomic.Bool       // of a time series: the order of its records is that of no index; never cleared

	looseStored atomic.Bool // a commit has put that into the catalogue
	temporary   atomic.Bool // it is going to be renamed when it is complete: who opens the store and finds it drops it

	about, due atomic.Int64 // the number of records, and the change from which on it is to be made anew: see estimate
}

// secondary is one index of a collection.
type secondary struct {
	number   uint32
	def      *index.Definition
	ks       *pando.Keyspace
	multikey atomic.Uint64 // a bit for each component that met an array; set before the commit that needs it, never cleared
	stored   atomic.Uint64 // those of them that a commit has put into the catalogue
	ready    bool
	since    uint64     // the change from which on it has been complete; 0: as long as the store has been open
	build    *build     // while it is being built
	anew     *secondary // the complete one that it is built beside, which is the index to everybody else; nil: there is none
}

// Exists reports whether the collection is there; a view is none.
func (c *Collection) Exists() (bool, error) {
	x, err := c.lookup()
	return x != nil, err
}

// use returns the collection of a handle, open, and nil when it is not there.
func (c *Collection) use() (*collection, error) {
	x, err := c.lookup()
	if x == nil || err != nil {
		return nil, err
	}
	return x, x.open()
}

// useExisting is use for those who fail, with NamespaceNotFound, where the collection is not there.
func (c *Collection) useExisting() (*collection, error) {
	x, err := c.use()
	if x == nil && err == nil {
		err = notFound(c.ns)
	}
	return x, err
}

// useRecords is use for those who read a record by _id. It does not open the indexes, and it may leave the codec unopened: passing
// tells that it did, and that the record has to be decoded by decodePassing.
func (c *Collection) useRecords() (x *collection, passing bool, err error) {
	x, err = c.lookup()
	if x == nil || err != nil {
		return nil, false, err
	}
	passing, err = x.openRecords()
	return x, passing, err
}

// decodePassing decodes a record with a codec that is made for it and not kept. The codec is made after the record was read: the
// record and its template may be younger than the look-up of the collection.
func (c *collection) decodePassing(dst, record []byte) ([]byte, error) {
	passing, done, err := codec.NewPassing(c.format, &templates{c})
	if err != nil {
		return dst, c.unopened(err)
	}
	defer done()
	return passing.Decode(dst, record)
}

// lookup returns the collection of a handle as it is, which may not be open, and nil when it is not there.
func (c *Collection) lookup() (*collection, error) {
	if err := c.store.usable(); err != nil {
		return nil, err
	}
	x, err := c.named()
	if x != nil || err != nil {
		return x, err
	}
	return nil, c.notBuckets()
}

// named is lookup by the name alone.
func (c *Collection) named() (*collection, error) {
	if c.tx != nil {
		return c.tx.find(c.ns)
	}
	x := c.names().byName[c.ns.String()]
	if c.only != nil && x != c.only {
		return nil, nil
	}
	return x, nil
}

// handle returns a handle on the collection under the name that it has. It is none on another one that gets the name.
func (c *collection) handle() *Collection {
	return &Collection{store: c.store, ns: *c.name.Load(), only: c}
}

// names returns the catalogue that the handle goes by.
func (c *Collection) names() *catalogue {
	if c.at != nil && c.at.names != nil {
		return c.at.names
	}
	return c.store.current.Load()
}

// view returns the view of this name, and nil when there is none.
func (c *Collection) view() *view {
	if c.only != nil {
		return nil
	}
	return c.names().views[c.ns.String()]
}

// make returns the collection of a handle, and creates it when it is not there.
func (c *Collection) make(ctx context.Context) (*collection, error) {
	x, err := c.use()
	if x != nil || err != nil {
		return x, err
	}
	if c.at != nil {
		return nil, onSnapshot()
	}
	if c.only != nil {
		return nil, notFound(c.ns)
	}
	if c.view() != nil {
		return nil, onView(c.ns)
	}
	if c.tx != nil {
		return c.tx.create(c.ns, emptyDocument())
	}
	if x, err = c.store.create(ctx, c.ns, emptyDocument(), nil, false); err != nil {
		return nil, err
	}
	return x, x.open()
}

// key appends the record key of an _id.
func (c *collection) key(dst []byte, id bsoncore.Value) []byte {
	if c.ids != nil {
		return c.ids.AppendValue(dst, 0, id)
	}
	return keyenc.Append(dst, id, false, nil)
}

// collateIDs makes _ids compare by the collection's collation, as the unique index of _id does in MongoDB. Collections that were
// created before there was this compare them byte by byte.
func (c *collection) collateIDs() (err error) {
	settings := c.settings.Load()
	if settings.collation == nil || settings.series != nil {
		return nil
	}
	c.ids, err = index.Parse(idSpec(), settings.collation)
	if err == nil {
		c.ids.Unique = true
	}
	return err
}

// idSpec is the specification of an index of _id.
func idSpec() document {
	return bsoncore.NewDocumentBuilder().AppendInt32("v", 2).AppendDocument("key", idPattern()).AppendString("name", cappedIDIndex).Build()
}

// source is what plans of this collection run on.
//
// It leaves out hidden indexes, and those that were not complete at the moment that is read: since is its number in the log.
func (c *collection) source(since uint64) *execute.Collection {
	x := &execute.Collection{
		Namespace: c.name.Load().String(), Records: c.records, Codec: c.codec, Capped: c.settings.Load().capped, Order: c.order(), Estimate: c.estimate,
	}
	for _, i := range *c.indexes.Load() {
		switch {
		case x.Capped && i.def.Name == cappedIDIndex:
			x.IDIndex = &execute.Index{Definition: i.def, Keyspace: i.ks, Multikey: i.multikey.Load}
		case i.ready && !i.def.Hidden && i.since <= since:
			x.Indexes = append(x.Indexes, execute.Index{Definition: i.def, Keyspace: i.ks, Multikey: i.multikey.Load})
		}
	}
	return x
}

// estimateChanges is after how many changes of the store, at least, an estimate of the number of records is made anew: counting looks
// at each record that has not settled.
const estimateChanges = 256

// estimate returns about how many records there are. The number is made anew when the store has seen a quarter as many changes as
// there were records, so that it is never far off, and costs little for each change.
func (c *collection) estimate() int64 {
	seq := int64(c.store.db.LastSeq())
	about, due := c.about.Load(), c.due.Load()
	if due > 0 && (seq < due || !c.due.CompareAndSwap(due, seq+estimateChanges)) {
		return about
	}
	if n, err := c.records.Count(nil, nil); err == nil {
		about = n
		c.about.Store(n)
		c.due.Store(seq + max(estimateChanges, n/4))
	}
	return about
}

// Get returns a copy of the document with this _id, or ErrNotFound.
func (c *Collection) Get(ctx context.Context, id any) (bson.Raw, error) { return c.GetTo(ctx, nil, id) }

// GetTo appends the document with this _id to dst and returns the result, or ErrNotFound. See GetValueTo for reads that allocate
// nothing.
func (c *Collection) GetTo(ctx context.Context, dst []byte, id any) (bson.Raw, error) {
	if id == nil {
		return c.GetValueTo(ctx, dst, bson.RawValue{Type: bson.TypeNull})
	}
	v, err := toValue(id)
	if err != nil {
		return dst, err
	}
	return c.GetValueTo(ctx, dst, bson.RawValue{Type: bson.Type(v.Type), Value: v.Data})
}
