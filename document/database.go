package document

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Database is a named group of collections. It is safe for concurrent use.
type Database struct {
	store *Store
	name  string
}

// Name returns the database's name.
func (d *Database) Name() string { return d.name }

// Collection opens a collection, and creates it where there is none; then o, which may be nil, says how.
func (d *Database) Collection(ctx context.Context, name string, o *CollectionOptions) (*Collection, error) {
	spec, err := o.spec()
	if err != nil {
		return nil, err
	}
	_, err = d.store.create(ctx, namespace{d.name, name}, spec, nil, false)
	return d.Lookup(name), err
}

// Create creates a collection or view from options as MongoDB's create command has them, and fails with NamespaceExists when there is
// one with other options.
func (d *Database) Create(ctx context.Context, name string, options any) error {
	spec, err := toDocument(options)
	if err != nil {
		return err
	}
	_, err = d.store.create(ctx, namespace{d.name, name}, spec, nil, true)
	return err
}

// CreateAs is Create of a collection with a UUID that it had elsewhere. It fails with NamespaceExists when another collection of the
// store has that UUID, or the collection that is there has another.
func (d *Database) CreateAs(ctx context.Context, name string, options any, uuid bson.Binary) error {
	if uuid.Subtype != bson.TypeBinaryUUID || len(uuid.Data) != 16 {
		return mongoerror.New(mongoerror.InvalidUUID, "the UUID of a collection has 16 bytes, and subtype 4")
	}
	spec, err := toDocument(options)
	if err != nil {
		return err
	}
	_, err = d.store.create(ctx, namespace{d.name, name}, spec, uuid.Data, true)
	return err
}

// Lookup returns a handle on a collection, whether there is one or not: the first write makes it.
func (d *Database) Lookup(name string) *Collection {
	return &Collection{store: d.store, ns: namespace{d.name, name}}
}

// CollectionInfo describes a collection or view.
type CollectionInfo struct {
	Name    string
	View    bool
	Series  bool        // it is a time series
	UUID    bson.Binary // of a collection
	Options bson.Raw    // as MongoDB's create command has them
}

// Collections lists the collections and views, in the order of their names.
func (d *Database) Collections(ctx context.Context) ([]CollectionInfo, error) {
	if err := errors.Join(d.store.usable(), ctx.Err()); err != nil {
		return nil, err
	}
	cat := d.store.current.Load()
	var list []CollectionInfo
	for _, c := range cat.byName {
		if ns := c.name.Load(); ns.database == d.name {
			list = append(list, CollectionInfo{Name: ns.collection, UUID: c.uuid, Options: bson.Raw(c.spec()), Series: isSeriesSpec(c.spec())})
		}
	}
	for _, v := range cat.views {
		if v.ns.database == d.name {
			list = append(list, CollectionInfo{Name: v.ns.collection, View: true, Options: bson.Raw(v.settings.spec)})
		}
	}
	if d.store.isOplog(namespace{d.name, oplogName}) {
		list = append(list, d.store.oplogInfo())
	}
	slices.SortFunc(list, func(a, b CollectionInfo) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Databases lists the databases that have collections, in the order of their names.
func (s *Store) Databases(ctx context.Context) ([]string, error) {
	if err := errors.Join(s.usable(), ctx.Err()); err != nil {
		return nil, err
	}
	cat := s.current.Load()
	var list []string
	for _, c := range cat.byName {
		list = append(list, c.name.Load().database)
	}
	for _, v := range cat.views {
		list = append(list, v.ns.database)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Drop drops the database with all that it holds. Who creates or changes a collection of the store waits meanwhile: what is created after the
// first one was dropped would otherwise be there after the database is.
func (d *Database) Drop(ctx context.Context) error {
	d.store.schema.Lock()
	defer d.store.schema.Unlock()
	list, err := d.Collections(ctx)
	if err != nil {
		return err
	}
	for _, i := range list {
		if d.store.isOplog(namespace{d.name, i.Name}) {
			continue
		}
		if err := d.Lookup(i.Name).drop(ctx); err != nil {
			return err
		}
	}
	return d.store.write(ctx, func(w *writer) error {
		return w.noteCommand(bsoncore.NewDocumentBuilder().AppendString("dropDatabase", d.name).Build(), nil)
	})
}

// create makes a collection or view, or returns the one that is there; exclusive makes it fail then, if it was made with other
// options. uuid is nil for a new one.
func (s *Store) create(ctx context.Context, ns namespace, spec document, uuid []byte, exclusive bool) (*collection, error) {
	return s.createAs(ctx, ns, spec, uuid, exclusive, false)
}

// createAs is create of a collection that may be temporary.
func (s *Store) createAs(ctx context.Context, ns namespace, spec document, uuid []byte, exclusive, temporary bool) (*collection, error) {
	if err := errors.Join(s.usable(), ctx.Err()); err != nil {
		return nil, err
	}
	if err := errors.Join(ns.check(), s.onOplog(ns)); err != nil {
		return nil, err
	}
	if _, series := s.Database(ns.database).Lookup(ns.collection).bucketsOf(); series != nil {
		return nil, mongoerror.New(mongoerror.NamespaceExists, "Collection %s already exists.", ns)
	}
	spec, err := asCreated(spec)
	if err != nil {
		return nil, err
	}
	s.schema.Lock()
	defer s.schema.Unlock()
	if err := s.uuidFree(ns, uuid); err != nil {
		return nil, err
	}
	if c, done, err := s.existing(ns, spec, exclusive); done || err != nil {
		return c, err
	}
	settings, err := parseSettings(spec)
	if err == nil {
		err = settings.checkValidator()
	}
	if err != nil {
		return nil, err
	}
	if settings.viewOn != "" {
		return nil, s.createView(ctx, ns, settings)
	}
	c, err := s.makeCollection(ns, settings, uuid)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", ns, err)
	}
	c.temporary.Store(temporary)
	err = s.write(ctx, func(w *writer) error {
		return errors.Join(w.noteCreate(c), w.putEntry(c))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create %s: %w", ns, err), s.undoCollection(c))
	}
	cat := s.current.Load().with()
	cat.byName[ns.String()], cat.byNumber[c.number] = c, c
	s.current.Store(cat)
	return c, nil
}

// uuidFree refuses a UUID that is another collection's, and one for a collection that has another. The caller holds schema.
func (s *Store) uuidFree(ns namespace, uuid []byte) error {
	if uuid == nil {
		return nil
	}
	for _, c := range s.current.Load().byName {
		if same, here := bytes.Equal(c.uuid.Data, uuid), *c.name.Load() == ns; same != here {
			return mongoerror.New(mongoerror.NamespaceExists, "%s has the UUID %x", c.name.Load(), c.uuid.Data)
		}
	}
	return nil
}

// existing returns the collection that is there already.
func (s *Store) existing(ns namespace, spec document, exclusive bool) (c *collection, done bool, err error) {
	cat := s.current.Load()
	c, v := cat.byName[ns.String()], cat.views[ns.String()]
	if c == nil && v == nil {
		return nil, false, nil
	}
	var was document
	if c != nil {
		was = c.spec()
	} else {
		was = v.settings.spec
	}
	if c != nil && isSeriesSpec(was) && exclusive {
		return nil, false, mongoerror.New(mongoerror.NamespaceExists, "A timeseries collection already exists. NS: %s", ns)
	}
	if exclusive && string(was) != string(spec) {
		return nil, false, mongoerror.New(mongoerror.NamespaceExists, "Collection %s already exists.", ns)
	}
	return c, true, nil
}

// makeCollection makes the keyspaces of a new collection, and its UUID unless one is given. The caller holds schema.
func (s *Store) makeCollection(ns namespace, settings *settings, uuid []byte) (*collection, error) {
	s.nextID++
	c := &collection{store: s, number: s.nextID, format: settings.format}
	c.name.Store(&ns)
	c.settings.Store(settings)
	var err error
	if c.uuid, err = collectionUUID(uuid); err != nil {
		return nil, err
	}
	if err := c.collateIDs(); err != nil {
		return nil, err
	}
	c.records, err = s.makeKeyspace(recordsName(c.number), &pando.KeyspaceOptions{LeafBytes: recordLeaf, Compression: &settings.compression})
	if err != nil {
		return nil, err
	}
	list := []*secondary{}
	c.indexes.Store(&list)
	if c.codec, err = codec.New(c.format, &templates{c}); err == nil && settings.capped {
		var x *secondary
		if x, err = c.makeCappedID(); err == nil {
			list = append(list, x)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.undoCollection(c))
	}
	return c, nil
}

// collectionUUID returns the UUID that is given, or a random one.
func collectionUUID(given []byte) (bson.Binary, error) {
	id := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: bytes.Clone(given)}
	if given != nil {
		return id, nil
	}
	id.Data = make([]byte, 16)
	_, err := rand.Read(id.Data)
	id.Data[6], id.Data[8] = id.Data[6]&0x0f|0x40, id.Data[8]&0x3f|0x80
	return id, err
}

// dropKeyspaces removes what a collection that is gone held, but its templates, as long as the log tells of it.
func (s *Store) dropKeyspaces(c *collection) {
	s.dropKeyspace(c.records.Name())
	for _, x := range *c.indexes.Load() {
		s.dropKeyspace(x.ks.Name())
	}
	if s.options.History >= 0 {
		return
	}
	if err := s.forgetTemplates(c.number); err != nil {
		s.log.Warn("the templates of a dropped collection could not be removed", "error", err)
	}
}

// undoCollection removes a collection that nobody has seen.
func (s *Store) undoCollection(c *collection) error {
	s.dropKeyspaces(c)
	return s.forgetTemplates(c.number)
}

// Drop drops the collection or view with all that it holds, or fails with NamespaceNotFound.
func (c *Collection) Drop(ctx context.Context) error {
	if err := c.alterable(); err != nil {
		return err
	}
	if inner, series := c.bucketsOf(); series != nil {
		return inner.Drop(ctx)
	}
	c.store.schema.Lock()
	defer c.store.schema.Unlock()
	return c.drop(ctx)
}

// drop is Drop of what is no bucket of a time series. The caller holds Store.schema.
func (c *Collection) drop(ctx context.Context) error {
	s := c.store
	if err := errors.Join(s.usable(), ctx.Err()); err != nil {
		return err
	}
	x, err := s.current.Load().named(c.ns)
	if err != nil {
		return err
	}
	if x == nil && c.view() == nil {
		return notFound(c.ns)
	}
	if x != nil {
		x.cancelBuilds()
		x.schema.Lock()
		defer x.schema.Unlock()
	}
	err = s.write(ctx, func(w *writer) error {
		command := bsoncore.NewDocumentBuilder().AppendString("drop", c.ns.collection).AppendString("db", c.ns.database).Build()
		entry := w.tx.In(s.meta).Delete(nameKey(c.ns.database, c.ns.collection))
		if x == nil {
			return errors.Join(entry, w.noteCommand(command, aboutView()))
		}
		what, err := x.aboutDrop()
		return errors.Join(err, entry, w.noteCommand(command, what), w.bury(x))
	})
	if err != nil {
		return fmt.Errorf("drop %s: %w", c.ns, err)
	}
	cat := s.current.Load().with()
	delete(cat.byName, c.ns.String())
	delete(cat.views, c.ns.String())
	s.current.Store(cat)
	if x == nil {
		return nil
	}
	x.dropped.Store(true)
	s.dropKeyspaces(x)
	return nil
}

func notFound(ns namespace) error {
	return mongoerror.New(mongoerror.NamespaceNotFound, "ns not found: %s", ns)
}

// Rename gives the collection another name, in the same database or another. With replace a collection of that name is dropped.
func (c *Collection) Rename(ctx context.Context, database, name string, replace bool) error {
	return c.rename(ctx, namespace{database, name}, replace, func(*collection) error { return nil })
}

// rename is Rename, unless check refuses what is to be replaced, which may be nil.
func (c *Collection) rename(ctx context.Context, to namespace, replace bool, check func(other *collection) error) error {
	s := c.store
	if err := errors.Join(c.alterable(), to.check()); err != nil {
		return err
	}
	if c.view() != nil {
		return mongoerror.New(mongoerror.CommandNotSupportedOnView, "cannot rename view: %s", c.ns)
	}
	if x, err := c.use(); err != nil || x == nil {
		return orError(err, func() error {
			return mongoerror.New(mongoerror.NamespaceNotFound, "Source collection %s does not exist", c.ns)
		})
	}
	if c.IsTimeSeries() {
		return mongoerror.New(mongoerror.CommandNotSupportedOnView, "cannot rename view: %s", c.ns)
	}
	if to == c.ns {
		return mongoerror.New(mongoerror.IllegalOperation, "Can't rename a collection to itself")
	}
	s.schema.Lock()
	defer s.schema.Unlock()
	cat := s.current.Load()
	x, err := cat.named(c.ns)
	if err != nil {
		return err
	}
	if x == nil {
		return notFound(c.ns)
	}
	other, err := cat.named(to)
	if err != nil {
		return err
	}
	if (other != nil || cat.views[to.String()] != nil) && (!replace || other == nil) {
		return mongoerror.New(mongoerror.NamespaceExists, "target namespace exists")
	}
	if err := check(other); err != nil {
		return err
	}
	if other != nil {
		other.cancelBuilds()
	}
	defer lockSchemas(x, other)()
	if err := s.rename(ctx, x, other, to); err != nil {
		return err
	}
	if other == nil {
		return nil
	}
	other.dropped.Store(true)
	s.dropKeyspaces(other)
	return nil
}

// lockSchemas keeps out all writers of a collection and, unless it is nil, of another one. What it returns lets them in again.
func lockSchemas(x, other *collection) (unlock func()) {
	if other == nil {
		x.schema.Lock()
		return x.schema.Unlock
	}
	first, second := x, other
	if first.number > second.number {
		first, second = second, first
	}
	first.schema.Lock()
	second.schema.Lock()
	return func() {
		second.schema.Unlock()
		first.schema.Unlock()
	}
}

// rename puts a collection under another name, in the place of one that may be there, as one commit. The caller holds the locks of
// all of them.
func (s *Store) rename(ctx context.Context, x, other *collection, to namespace) error {
	from := *x.name.Load()
	undo := x.putFormer()
	x.name.Store(&to)
	temporary := x.temporary.Swap(false)
	err := s.write(ctx, func(w *writer) error {
		command := bsoncore.NewDocumentBuilder().AppendString("renameCollection", from.String()).AppendString("to", to.String()).Build()
		what, err := x.aboutRename(other)
		if err == nil && other != nil {
			err = w.bury(other)
		}
		return errors.Join(err, w.noteCommand(command, what), w.putEntry(x), w.tx.In(s.meta).Delete(nameKey(from.database, from.collection)))
	})
	if err != nil {
		x.name.Store(&from)
		x.temporary.Store(temporary)
		undo()
		x.undone.Add(1)
		return fmt.Errorf("rename %s: %w", from, err)
	}
	cat := s.current.Load().with()
	delete(cat.byName, from.String())
	cat.byName[to.String()] = x
	s.current.Store(cat)
	return nil
}
