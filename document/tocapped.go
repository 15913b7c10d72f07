package document

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// CopyCapped copies the documents of the collection into a new capped one of the same database, which takes size bytes, and forgets the
// first where not all fit. It takes over the collection's options but not its indexes, and no validator is asked. It fails with
// NamespaceNotFound when there is no collection, and with NamespaceExists when there is one called to. What is written to the collection
// meanwhile is not copied. When it fails the copy is gone.
func (c *Collection) CopyCapped(ctx context.Context, to string, size int64) error {
	copied := c.Database().Lookup(to)
	return c.capInto(ctx, size, func() error {
		there, err := copied.use()
		if err := errors.Join(err, copied.CheckName()); err != nil {
			return err
		}
		if there != nil || copied.view() != nil {
			return mongoerror.New(mongoerror.NamespaceExists, "the destination %s of a copy of %s already exists", copied.ns, c.ns)
		}
		return nil
	}, func(fresh *Collection) error {
		if err := c.copyInto(ctx, fresh); err != nil {
			return err
		}
		return fresh.Rename(ctx, copied.ns.database, to, false)
	})
}

// MakeCapped turns the collection into a capped one that takes size bytes, as MongoDB's convertToCapped does: the first documents are
// forgotten where not all fit, it loses its indexes but that of _id, and gets another UUID. Those who write to it, and those who create,
// change or drop a collection of the store, wait meanwhile. When it fails nothing has changed.
func (c *Collection) MakeCapped(ctx context.Context, size int64) error {
	return c.capInto(ctx, size, func() error { return nil }, func(fresh *Collection) error { return c.replaceBy(ctx, fresh) })
}

// capInto makes a capped collection with the options of this one, under a name that nobody has: place fills it and gives it its name, and when
// that fails it is dropped. check says, once this one is known to be what can be copied, whether that is to be done at all.
func (c *Collection) capInto(ctx context.Context, size int64, check func() error, place func(fresh *Collection) error) error {
	options, err := c.optionsCapped(size)
	if err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	fresh, err := c.Database().createTemporary(ctx, options)
	if err != nil {
		return err
	}
	if err := place(fresh); err != nil {
		return errors.Join(err, fresh.Drop(c.store.work))
	}
	return nil
}

// optionsCapped returns the options of a capped copy of the collection.
func (c *Collection) optionsCapped(size int64) (document, error) {
	if err := c.alterable(); err != nil {
		return nil, err
	}
	if c.view() != nil {
		return nil, onView(c.ns)
	}
	x, err := c.use()
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, mongoerror.New(mongoerror.NamespaceNotFound, "source collection %s does not exist", c.ns)
	}
	if x.settings.Load().series != nil {
		return nil, mongoerror.New(mongoerror.CommandNotSupportedOnView, "Namespace %s is a timeseries collection", c.ns)
	}
	b := bsoncore.NewDocumentBuilder().AppendBoolean("capped", true).AppendInt64("size", size)
	for _, e := range elementsOf(x.spec()) {
		if e.Key() != "capped" && e.Key() != "size" {
			b.AppendValue(e.Key(), e.Value())
		}
	}
	return b.Build(), nil
}

// copyInto inserts all documents into a capped collection that nobody else writes to, in their order.
func (c *Collection) copyInto(ctx context.Context, other *Collection) error {
	x, err := other.use()
	if err != nil || x == nil {
		return orError(err, func() error { return notFound(other.ns) })
	}
	docs, err := c.OpenFind(ctx, bson.D{}, nil)
	if err != nil {
		return err
	}
	defer docs.Close()
	const most, mostBytes = 1000, 1 << 20 // of a commit
	var list []document
	size := 0
	for docs.Next(ctx) {
		doc := append(document(nil), docs.Current()...)
		list = append(list, doc)
		if size += len(doc); len(list) < most && size < mostBytes {
			continue
		}
		if err := x.insertCopies(ctx, list); err != nil {
			return err
		}
		list, size = list[:0], 0
	}
	if err := docs.Err(); err != nil {
		return err
	}
	return x.insertCopies(ctx, list)
}

// insertCopies inserts documents of another collection into a capped one with one commit. No validator is asked.
func (c *collection) insertCopies(ctx context.Context, list []document) error {
	defer c.capped.inserting()()
	return c.orDropped(c.store.write(ctx, func(w *writer) error {
		w.unchecked = true
		w.touch(c)
		for _, doc := range list {
			if err := w.insert(c, doc); err != nil {
				return err
			}
		}
		return nil
	}))
}

// replaceBy copies all documents into a new collection, and puts that into the place of this one.
func (c *Collection) replaceBy(ctx context.Context, fresh *Collection) error {
	s := c.store
	s.schema.Lock()
	defer s.schema.Unlock()
	cat := s.current.Load()
	x, err := cat.named(c.ns)
	if err != nil {
		return err
	}
	made, err := cat.named(fresh.ns)
	if err != nil {
		return err
	}
	if x == nil || made == nil {
		return notFound(c.ns)
	}
	x.cancelBuilds()
	x.schema.Lock() // nothing is written between the copy and the exchange
	defer x.schema.Unlock()
	if err := c.copyInto(ctx, fresh); err != nil {
		return err
	}
	made.schema.Lock() // out of order, but nobody else knows the name
	defer made.schema.Unlock()
	if err := s.rename(ctx, made, x, c.ns); err != nil {
		return err
	}
	x.dropped.Store(true)
	s.dropKeyspaces(x)
	return nil
}

// temporaryPrefix begins the names of collections on their way into the place of others.
const temporaryPrefix = "tmp.agg_out."

// createTemporary makes a collection that is going to be renamed when it is complete, under a name that nobody has: listings and change streams
// leave it out. Where it is dropped with its database meanwhile, what is done with it fails.
func (d *Database) createTemporary(ctx context.Context, options document) (*Collection, error) {
	c, err := d.store.createAs(ctx, namespace{d.name, temporaryPrefix + d.store.newID().Hex()}, options, nil, true, true)
	if err != nil {
		return nil, err
	}
	return c.handle(), nil
}
