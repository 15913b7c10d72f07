package document

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
)

// Index says what index to make. Its fields are those of MongoDB's createIndexes.
type Index struct {
	// Keys is the pattern: fields with 1 (ascending), -1 (descending), "hashed" or "2dsphere"; "$**" is a wildcard.
	Keys any
	// Name of the index. Default: made from the keys, such as email_1.
	Name string
	// Unique refuses documents with the same values as another.
	Unique bool
	// Sparse leaves out documents that have none of the fields.
	Sparse bool
	// Hidden keeps the index up to date, but planners do not see it.
	Hidden bool
	// Partial is a filter: only documents that match it are in the index.
	Partial any
	// ExpireAfterSeconds, if set, deletes documents that long after the date in the field.
	ExpireAfterSeconds *int32
	// Collation of the strings. Default: that of the collection.
	Collation any
	// WildcardProjection says which fields a wildcard takes in.
	WildcardProjection any
	// Progress, if set, is told how many documents have been entered and about how many there are.
	Progress func(done, total int64)
}

// spec returns the index as createIndexes has it.
func (i *Index) spec() (document, error) {
	keys, err := toDocument(i.Keys)
	if err != nil {
		return nil, err
	}
	b := bsoncore.NewDocumentBuilder().AppendDocument("key", keys)
	if i.Name != "" {
		b.AppendString("name", i.Name)
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"unique", i.Unique}, {"sparse", i.Sparse}, {"hidden", i.Hidden}} {
		if flag.set {
			b.AppendBoolean(flag.name, true)
		}
	}
	for _, part := range []struct {
		name string
		v    any
	}{{"partialFilterExpression", i.Partial}, {"collation", i.Collation}, {"wildcardProjection", i.WildcardProjection}} {
		if part.v == nil {
			continue
		}
		doc, err := toDocument(part.v)
		if err != nil {
			return nil, err
		}
		b.AppendDocument(part.name, doc)
	}
	if i.ExpireAfterSeconds != nil {
		b.AppendInt32("expireAfterSeconds", *i.ExpireAfterSeconds)
	}
	return b.Build(), nil
}

// CreateIndex makes an index and returns its name. Making one that is there already does nothing, and one that another call is making
// waits for that. Readers and writers go on meanwhile. It fails with DuplicateKey, naming the values, when a unique index would hold them
// twice.
func (c *Collection) CreateIndex(ctx context.Context, i Index) (string, error) {
	spec, err := i.spec()
	if err != nil {
		return "", err
	}
	names, err := c.CreateIndexes(ctx, []bson.Raw{bson.Raw(spec)}, i.Progress)
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// CreateIndexes makes indexes from specifications as MongoDB's createIndexes command has them, and returns their names. Either all
// are there afterwards, or none was made. progress may be nil.
func (c *Collection) CreateIndexes(ctx context.Context, specs []bson.Raw, progress func(done, total int64)) ([]string, error) {
	if c.at != nil {
		return nil, onSnapshot()
	}
	if c.view() != nil {
		return nil, onView(c.ns)
	}
	x, err := c.use()
	if err != nil {
		return nil, err
	}
	if x == nil { // it is not made for indexes that cannot be
		defs, err := parseIndexes(specs, nil)
		if err := errors.Join(err, checkTogether(defs)); err != nil {
			return nil, err
		}
		if x, err = c.make(ctx); err != nil {
			return nil, err
		}
	}
	defs, err := x.parseIndexes(specs)
	if err != nil {
		return nil, err
	}
	if c.tx != nil {
		return c.tx.createIndexes(x, defs)
	}
	if err := x.createIndexes(ctx, defs, progress); err != nil {
		return nil, err
	}
	return namesOf(defs), nil
}

// createIndexes makes indexes that have been checked.
func (c *collection) createIndexes(ctx context.Context, defs []*index.Definition, progress func(done, total int64)) error {
	for waited := (*build)(nil); ; {
		fresh, other, err := c.register(ctx, defs)
		switch {
		case err != nil:
			return err
		case other == nil:
			return c.buildRegistered(ctx, fresh, progress)
		case other == waited:
			return mongoerror.New(mongoerror.IndexBuildAborted, "Index build failed: an index could not be built before, and not be taken back; drop it")
		}
		if err := other.wait(ctx, c.store); err != nil {
			return err
		}
		waited = other
	}
}

// buildRegistered is buildAll, which leaves nothing when it fails.
func (c *collection) buildRegistered(ctx context.Context, fresh []*secondary, progress func(done, total int64)) error {
	defer func() {
		for _, x := range fresh {
			close(x.build.ended)
		}
	}()
	if err := c.buildAll(ctx, fresh, progress); err != nil {
		return errors.Join(err, c.unregister(fresh))
	}
	return nil
}

// createIndexes makes indexes of a collection that the transaction has created, and that is empty so far.
func (tx *Tx) createIndexes(x *collection, defs []*index.Definition) ([]string, error) {
	if tx.created[*x.name.Load()] != x {
		return nil, mongoerror.New(mongoerror.OperationNotSupportedInTransaction, "Cannot create new indexes on existing collection %s in a multi-document transaction.", x.name.Load())
	}
	if n, err := tx.tx.In(x.records).Count(nil, nil); err != nil || n > 0 {
		return nil, orError(err, func() error {
			return mongoerror.New(mongoerror.OperationNotSupportedInTransaction, "Cannot create new indexes on collection %s, which is not empty, in a multi-document transaction.", x.name.Load())
		})
	}
	list := slices.Clone(*x.indexes.Load())
	missing, err := x.missing(list, defs)
	if err != nil {
		return nil, err
	}
	if len(missing) == 0 {
		return namesOf(defs), nil
	}
	var fresh []*secondary
	err = tx.write(func(w *writer) error {
		for _, def := range missing {
			i := &secondary{number: x.nextIndex.Add(1), def: def, ready: true}
			var err error
			if i.ks, err = tx.store.makeKeyspace(indexName(x.number, i.number), x.indexOptionsOf(def)); err != nil {
				return err
			}
			fresh = append(fresh, i)
			command := x.indexCommand("createIndexes", bsoncore.NewArrayBuilder().AppendDocument(def.Spec).Build())
			if err := w.noteCommand(command, x.aboutSelf().Build()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		x.dropEntries(fresh)
		return nil, err
	}
	list = append(list, fresh...)
	x.indexes.Store(&list)
	for i, t := range tx.w.touched { // earlier writes left nothing that would have entries
		if t.c == x {
			tx.w.touched[i].indexes = &list
		}
	}
	return namesOf(defs), nil
}

func namesOf(defs []*index.Definition) []string {
	names := make([]string, len(defs))
	for i, def := range defs {
		names[i] = def.Name
	}
	return names
}

// maxIndexes is how many indexes a collection may have, that of _id included.
const maxIndexes = 64

// register puts new indexes into the list, so that all writes that begin from now on keep them up to date: those that are not there. All
// are registered or none. Where one of them is being built by another call, none is, and other is that build: whether the index will be
// there is known when it has ended.
func (c *collection) register(ctx context.Context, defs []*index.Definition) (fresh []*secondary, other *build, err error) {
	s := c.store
	s.schema.Lock()
	defer s.schema.Unlock()
	list := *c.indexes.Load()
	missing, err := c.missing(list, defs)
	if err != nil {
		return nil, nil, err
	}
	if other := c.underway(list, defs); other != nil || len(missing) == 0 {
		return nil, other, nil
	}
	for _, def := range missing {
		x := &secondary{number: c.nextIndex.Add(1), def: def, build: newBuild()}
		if x.ks, err = s.makeKeyspace(indexName(c.number, x.number), c.indexOptionsOf(def)); err != nil {
			break
		}
		fresh = append(fresh, x)
	}
	if err == nil {
		err = c.changeIndexes(ctx, slices.Concat(list, fresh), nil, nil)
	}
	if err != nil {
		c.dropEntries(fresh)
		return nil, nil, err
	}
	return fresh, nil, nil
}

// underway returns the build of one of some indexes that are, but for those that are missing, in the list; nil: none is being built.
func (c *collection) underway(list []*secondary, defs []*index.Definition) *build {
	for _, x := range list {
		if !x.ready && x.build != nil && x.anew == nil && slices.ContainsFunc(defs, func(def *index.Definition) bool { return def.Name == x.def.Name }) {
			return x.build
		}
	}
	return nil
}

// changeIndexes replaces the list of indexes, in the catalogue and in memory, when no write is committing. The caller holds
// Store.schema. commands, if any, are for change streams, and what for the oplog.
func (c *collection) changeIndexes(ctx context.Context, list []*secondary, commands []document, what document) error {
	c.schema.Lock()
	defer c.schema.Unlock()
	return c.replaceIndexes(ctx, list, commands, what)
}

// replaceIndexes is changeIndexes for a caller that holds c.schema.
func (c *collection) replaceIndexes(ctx context.Context, list []*secondary, commands []document, what document) error {
	if c.dropped.Load() {
		return notFound(*c.name.Load())
	}
	for _, old := range *c.indexes.Load() {
		for _, x := range list {
			if x.number == old.number && x != old {
				x.multikey.Or(old.multikey.Load()) // what was written since x was made
			}
		}
	}
	entry := c.entry(list)
	value, err := marshal(entry)
	if err != nil {
		return err
	}
	ns := c.name.Load()
	err = c.store.write(ctx, func(w *writer) error {
		for _, command := range commands {
			if err := w.noteCommand(command, what); err != nil {
				return err
			}
		}
		return w.tx.In(c.store.meta).Put(nameKey(ns.database, ns.collection), value)
	})
	if err != nil {
		return fmt.Errorf("change the indexes of %s: %w", ns, err)
	}
	for i, x := range list {
		x.stored.Or(uint64(entry.Indexes[i].Multikey))
	}
	c.indexes.Store(&list)
	return nil
}

// unregister takes indexes that could not be built off the list.
func (c *collection) unregister(gone []*secondary) error {
	if len(gone) == 0 {
		return nil
	}
	c.store.schema.Lock()
	defer c.store.schema.Unlock()
	return c.removeIndexes(c.store.work, gone, nil)
}

// removeIndexes takes indexes off the list and drops what they hold. The caller holds Store.schema.
func (c *collection) removeIndexes(ctx context.Context, gone []*secondary, commands []document) error {
	rest := slices.DeleteFunc(slices.Clone(*c.indexes.Load()), func(x *secondary) bool { return slices.Contains(gone, x) })
	if err := c.changeIndexes(ctx, rest, commands, c.aboutSelf().Build()); err != nil {
		if errors.Is(err, NamespaceNotFound) {
			return nil // the whole collection is gone
		}
		return err
	}
	c.dropEntries(gone)
	return nil
}

// dropEntries drops what indexes hold that are not in the list.
func (c *collection) dropEntries(gone []*secondary) {
	for _, x := range gone {
		c.store.dropKeyspace(x.ks.Name())
	}
}

// DropIndex drops the index with a name or a pattern of keys, or those of a list of names: all of them, or none where one cannot be
// dropped. "*" drops all but that of _id.
func (c *Collection) DropIndex(ctx context.Context, which any) error {
	v, err := toValue(which)
	if err := errors.Join(err, c.alterable()); err != nil {
		return err
	}
	x, err := c.useExisting()
	if err != nil {
		return err
	}
	s := c.store
	s.schema.Lock()
	defer s.schema.Unlock()
	gone, err := x.selectListed(v)
	if err != nil || len(gone) == 0 {
		return err
	}
	for _, i := range gone {
		i.build.abort()
	}
	var commands []document
	for _, i := range gone {
		specs := bsoncore.NewArrayBuilder().AppendDocument(i.def.Spec).Build()
		commands = append(commands, x.indexCommand("dropIndexes", specs))
	}
	return x.removeIndexes(ctx, gone, commands)
}

// indexCommand is a command about indexes, for change streams.
func (c *collection) indexCommand(name string, specs bsoncore.Array) document {
	return bsoncore.NewDocumentBuilder().AppendString(name, c.name.Load().String()).AppendArray("indexes", specs).Build()
}

// codeAmbiguousKeys is MongoDB's AmbiguousIndexKeyPattern.
const codeAmbiguousKeys = mongoerror.Code(181)

// selectListed returns the indexes that DropIndex means.
func (c *collection) selectListed(which bsoncore.Value) ([]*secondary, error) {
	list, listed := which.ArrayOK()
	if !listed {
		return c.selectIndexes(which)
	}
	names, err := list.Values()
	if err != nil {
		return nil, malformed("%v", err)
	}
	var gone []*secondary
	for _, v := range names {
		name, ok := v.StringValueOK()
		if !ok {
			return nil, wrongType("dropIndexes.index", which, "a list of strings")
		}
		found, err := c.selectIndexes(v)
		if err != nil {
			return nil, err
		}
		if len(names) > 1 && (name == "*" || len(found) > 0 && slices.Contains(gone, found[0])) {
			return nil, mongoerror.New(mongoerror.IndexNotFound, "index not found with name [%s]", name)
		}
		gone = append(gone, found...)
	}
	return gone, nil
}

// selectIndexes returns the indexes with a name or a pattern of keys.
func (c *collection) selectIndexes(which bsoncore.Value) ([]*secondary, error) {
	var gone []*secondary
	name, byName := which.StringValueOK()
	keys, byKeys := which.DocumentOK()
	if !byName && !byKeys {
		return nil, wrongType("dropIndexes.index", which, "a string or an object")
	}
	for _, x := range *c.indexes.Load() {
		if x.unlisted() {
			continue
		}
		if byName && (name == "*" || name == x.def.Name) || byKeys && sameSpec(keys, x.def.Keys) {
			gone = append(gone, x)
		}
	}
	s := c.settings.Load().series
	if own, is := document(c.settings.Load().spec).Lookup("clusteredIndex").DocumentOK(); is && (byName && own.Lookup("name").StringValue() == name || byKeys && isIDPattern(keys)) {
		return nil, mongoerror.New(clusteredDropped, "It is illegal to drop the clusteredIndex")
	}
	switch {
	case s.hasIndex() && (byName && name == s.order.Name || byKeys && sameSpec(keys, s.order.Keys)):
		return nil, mongoerror.New(mongoerror.InvalidOptions, "cannot drop the index %s: it is the order of the records", s.order.Name)
	case s != nil && (byKeys || name == "_id_") && len(gone) > 0:
	case byName && name == "_id_", byKeys && isIDPattern(keys) && s == nil:
		return nil, mongoerror.New(mongoerror.InvalidOptions, "cannot drop _id index")
	case len(gone) == 0 && byName && name != "*":
		return nil, mongoerror.New(mongoerror.IndexNotFound, "index not found with name [%s]", name)
	case len(gone) == 0 && byKeys:
		return nil, mongoerror.New(mongoerror.IndexNotFound, "can't find index with key: %s", notation.Document(keys))
	case len(gone) > 1 && byKeys:
		return nil, mongoerror.New(codeAmbiguousKeys, "%d indexes found for key: %s, identify by name instead", len(gone), notation.Document(keys))
	}
	return gone, nil
}

// unlisted reports whether an index is none to those who list and count them: that of _id of a capped collection, in whose place is the one that
// all collections have, and one that is made anew beside the one that there is.
func (x *secondary) unlisted() bool { return x.def.Name == cappedIDIndex || x.anew != nil }

// countListed returns how many indexes of a list are not unlisted.
func countListed(list []*secondary) (n int) {
	for _, x := range list {
		if !x.unlisted() {
			n++
		}
	}
	return n
}

func isIDPattern(keys document) bool {
	e, err := keys.IndexErr(0)
	return err == nil && e.Key() == "_id" && len(elementsOf(keys)) == 1
}

// IndexInfo describes an index.
type IndexInfo struct {
	Name     string
	Spec     bson.Raw // as MongoDB's listIndexes shows it
	Ready    bool     // false while it is being built
	Multikey bool     // it holds several entries for a document with an array
}

// Indexes lists the indexes, that of _id first.
func (c *Collection) Indexes(ctx context.Context) ([]IndexInfo, error) {
	if _, series := c.bucketsOf(); series != nil {
		return nil, ctx.Err()
	}
	x, err := c.use()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	if x == nil && c.store.isOplog(c.ns) {
		return nil, nil
	}
	if x == nil {
		return nil, notFound(c.ns)
	}
	list := x.ownIndex()
	for _, i := range *x.indexes.Load() {
		if !i.unlisted() {
			list = append(list, IndexInfo{Name: i.def.Name, Spec: bson.Raw(i.def.Spec), Ready: i.ready, Multikey: i.multikey.Load() != 0})
		}
	}
	return list, nil
}
