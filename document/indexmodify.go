package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// modifyIndex is collMod's index: {keyPattern or name, expireAfterSeconds, hidden, prepareUnique, unique}. With dry, which is for
// unique, it only says whether that can be. after, if not nil, are the options that the collection gets with the same commit, and told is how the
// log tells of them; done says that it has them, which it has not where there is nothing to change in the index. The caller holds Store.schema.
func (c *collection) modifyIndex(ctx context.Context, v bsoncore.Value, dry bool, after *settings, told document) (done bool, err error) {
	spec, ok := v.DocumentOK()
	if !ok {
		return false, wrongType("collMod.index", v, "an object")
	}
	if dry && !truthy(spec.Lookup("unique")) {
		return false, mongoerror.New(mongoerror.InvalidOptions, "dry run mode requires an index modification with unique: true.")
	}
	which, err := spec.LookupErr("name")
	if err == nil && spec.Lookup("keyPattern").Type != 0 {
		return false, mongoerror.New(mongoerror.InvalidOptions, "Cannot specify both key pattern and name.")
	}
	if err != nil {
		if which, err = spec.LookupErr("keyPattern"); err != nil {
			return false, mongoerror.New(mongoerror.InvalidOptions, "must specify either index name or key pattern")
		}
	}
	changes, err := c.indexChanges(spec)
	if err != nil || len(changes) == len(emptyDocument()) {
		return false, err
	}
	if name, _ := which.StringValueOK(); name == "*" { // which is all of them to selectIndexes, and no index's name
		return false, mongoerror.New(mongoerror.IndexNotFound, "cannot find index %s for ns %s", name, c.name.Load())
	}
	found, err := c.selectIndexes(which)
	if err != nil || len(found) == 0 {
		return false, err
	}
	return true, c.modifyOne(ctx, found[0], &indexChange{spec: spec, changes: changes, dry: dry, after: after, told: told})
}

// indexChange is a change of an index: what was asked for, and in terms of the index's specification; the others are those of modifyIndex.
type indexChange struct {
	spec, changes document
	dry           bool
	after         *settings
	told          document
}

// modifyOne is modifyIndex for one index. One that is being built is left as its build knows it.
func (c *collection) modifyOne(ctx context.Context, x *secondary, change *indexChange) error {
	if !x.ready {
		return mongoerror.New(mongoerror.BackgroundOperationInProgressForNamespace, "the index %s is being built", x.def.Name)
	}
	merged, err := mergeOptions(x.def.Spec, change.changes)
	if err != nil {
		return err
	}
	if x.def.Unique { // then there is nothing to prepare
		if merged, err = mergeOptions(merged, bsoncore.NewDocumentBuilder().AppendBoolean("prepareUnique", false).Build()); err != nil {
			return err
		}
	}
	def, err := index.Parse(merged, nil) // it names its collation, if it has one
	if err != nil {
		return err
	}
	if err := def.CheckPrepared(); err != nil {
		return err
	}
	fresh := &secondary{number: x.number, def: def, ks: x.ks, ready: true, since: x.since}
	c.schema.Lock()
	defer c.schema.Unlock()
	fresh.multikey.Store(x.multikey.Load())
	if converts := def.Unique && !x.def.Unique; converts {
		if err := c.mayBeUnique(ctx, x); err != nil {
			return err
		}
		if err := c.makeUnique(ctx, x, fresh, change.dry); err != nil {
			return err
		}
	}
	if change.dry {
		return nil
	}
	err = c.storeChange(ctx, x, fresh, change)
	switch {
	case fresh.ks == x.ks:
		return err
	case err != nil:
		c.dropEntries([]*secondary{fresh})
		return err
	}
	c.dropEntries([]*secondary{x})
	return nil
}

// storeChange puts an index into the place of another one, and the new options, if there are any, into that of those that there are. The caller
// holds c.schema.
func (c *collection) storeChange(ctx context.Context, x, fresh *secondary, change *indexChange) error {
	list := slices.Clone(*c.indexes.Load())
	list[slices.Index(list, x)] = fresh
	command := bsoncore.NewDocumentBuilder().AppendString("collMod", c.name.Load().String()).AppendDocument("index", change.spec)
	about := c.aboutModify(c.settings.Load().spec, indexOptions(x.def.Spec, change.spec))
	if change.after == nil {
		return c.replaceIndexes(ctx, list, []document{command.Build()}, about)
	}
	command.AppendDocument("options", change.told)
	return c.trySettings(change.after, func() error { return c.replaceIndexes(ctx, list, []document{command.Build()}, about) })
}

// indexChanges returns what collMod's index asks to change, in terms of an index's specification; nothing, when that is about the index
// of _id, which is unique.
func (c *collection) indexChanges(spec document) (document, error) {
	name, _ := spec.Lookup("name").StringValueOK()
	keys, _ := spec.Lookup("keyPattern").DocumentOK()
	ofID := c.settings.Load().series == nil && (name == "_id_" || isIDPattern(keys))
	changes, asked := bsoncore.NewDocumentBuilder(), 0
	for _, e := range elementsOf(spec) {
		switch asked++; e.Key() {
		case "name", "keyPattern":
			asked--
		case "hidden":
			if ofID {
				return nil, mongoerror.New(mongoerror.BadValue, "can't hide _id index")
			}
			changes.AppendValue(e.Key(), e.Value())
		case "expireAfterSeconds":
			n, ok := number.Truncated(e.Value())
			if !ok {
				return nil, wrongType("collMod.index.expireAfterSeconds", e.Value(), "a number")
			}
			if n < 0 {
				return nil, mongoerror.New(mongoerror.InvalidOptions, "TTL index 'expireAfterSeconds' option cannot be less than 0")
			}
			if c.settings.Load().capped {
				return nil, mongoerror.New(mongoerror.InvalidOptions, "TTL indexes are not supported for capped collections.")
			}
			changes.AppendValue(e.Key(), e.Value())
		case "unique", "prepareUnique":
			on := truthy(e.Value())
			switch {
			case e.Value().Type != bsoncore.TypeBoolean && !e.Value().IsNumber():
				return nil, wrongType("collMod.index."+e.Key(), e.Value(), "a bool")
			case ofID:
			case e.Key() == "prepareUnique":
				changes.AppendBoolean(e.Key(), on)
			case !on:
				return nil, mongoerror.New(mongoerror.BadValue, "Cannot make index non-unique")
			default:
				changes.AppendBoolean("unique", true).AppendBoolean("prepareUnique", false)
			}
		default:
			return nil, mongoerror.New(mongoerror.Code(40415), "BSON field 'collMod.index.%s' is an unknown field.", e.Key())
		}
	}
	if asked == 0 {
		return nil, mongoerror.New(mongoerror.InvalidOptions, "no expireAfterSeconds, hidden, unique, or prepareUnique field")
	}
	return changes.Build(), nil
}

// mayBeUnique refuses to make an index unique to which duplicates may come while that is done, or whose entries cannot be.
func (c *collection) mayBeUnique(ctx context.Context, x *secondary) error {
	if !x.def.Prepared {
		return mongoerror.New(mongoerror.InvalidOptions, "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.")
	}
	for _, part := range x.def.Components {
		if part.Kind != index.Ascending && part.Kind != index.Descending {
			return mongoerror.New(mongoerror.CommandNotSupported, "an index that is not of ascending and descending fields cannot become unique: make a unique one, and drop the other")
		}
	}
	return ctx.Err()
}

// entriesAtOnce is how many entries an index that becomes unique takes over in one commit.
const entriesAtOnce = 10000

// makeUnique makes for fresh the keyspace that a unique index has, whose keys do not end in those of the records, from the entries of x;
// with dry it only looks for duplicates. A process that is killed leaves a keyspace that nobody refers to, which is dropped at the next
// open. The caller holds c.schema: nothing is written to x meanwhile.
func (c *collection) makeUnique(ctx context.Context, x, fresh *secondary, dry bool) (err error) {
	read, err := c.store.db.Begin(false)
	if err != nil {
		return err
	}
	defer read.Rollback()
	if !dry {
		fresh.number = c.nextIndex.Add(1)
		if fresh.ks, err = c.store.makeKeyspace(indexName(c.number, fresh.number), c.indexOptionsOf(fresh.def)); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				fresh.since = c.store.db.LastSeq()
			} else {
				c.dropEntries([]*secondary{fresh})
			}
		}()
	}
	it := read.In(x.ks).Iter(&pando.IterOptions{Once: true})
	defer func() { err = errors.Join(err, it.Close()) }()
	found := &violations{c: c, tx: read}
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if more, err = c.takeOver(it, x, fresh, found, dry); err != nil {
			return err
		}
	}
	return found.err()
}

// takeOver gives fresh the next entries of x, if not dry, and tells of those that come twice. It reports whether there are more.
func (c *collection) takeOver(it *pando.Iterator, x, fresh *secondary, found *violations, dry bool) (more bool, err error) {
	tx, err := c.store.db.Begin(true)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	for range entriesAtOnce {
		if !it.Next() {
			return false, errors.Join(it.Err(), tx.Commit())
		}
		key := it.Key()
		record := key
		for _, part := range x.def.Components {
			if record, err = keyenc.Skip(record, part.Kind == index.Descending); err != nil {
				return false, fmt.Errorf("%s, index %s: %w", c.name.Load(), x.def.Name, err)
			}
		}
		entry := key[:len(key)-len(record)]
		if err := found.add(entry, record); err != nil {
			return false, err
		}
		if dry || found.any {
			continue
		}
		exact := len(it.Value()) == 0
		if err := tx.In(fresh.ks).Put(entry, fresh.entryValue(exact, record)); err != nil {
			return false, err
		}
	}
	return true, tx.Commit()
}

// maxViolations is of how many documents with duplicates an error tells.
const maxViolations = 1000

// violations gathers the documents that share entries of an index.
type violations struct {
	c      *collection
	tx     *pando.Tx
	entry  []byte
	first  []byte // the record of the entry
	any    bool
	ids    *bsoncore.ArrayBuilder // of the entry at hand; nil: it has been there once, or there are too many
	groups []document
	count  int // of the ids
}

// add takes in the next entry.
func (v *violations) add(entry, record []byte) error {
	if v.first == nil || !bytes.Equal(entry, v.entry) {
		v.endGroup()
		v.entry, v.first = append(v.entry[:0], entry...), append(v.first[:0], record...)
		return nil
	}
	v.any = true
	if v.ids == nil && v.count < maxViolations {
		v.ids = bsoncore.NewArrayBuilder()
		if err := v.addID(v.first); err != nil {
			return err
		}
	}
	if v.count >= maxViolations {
		return nil
	}
	return v.addID(record)
}

func (v *violations) addID(record []byte) error {
	v.count++
	value, err := v.tx.In(v.c.records).Get(record)
	if err != nil {
		return err
	}
	doc, err := v.c.codec.Decode(nil, value)
	if err == nil {
		v.ids.AppendValue(document(doc).Lookup("_id"))
	}
	return err
}

func (v *violations) endGroup() {
	if v.ids != nil {
		v.groups = append(v.groups, bsoncore.NewDocumentBuilder().AppendArray("ids", v.ids.Build()).Build())
	}
	v.ids = nil
}

// err is the error of an index with duplicates; nil where there are none.
func (v *violations) err() error {
	if !v.any {
		return nil
	}
	v.endGroup()
	list := bsoncore.NewArrayBuilder()
	for _, group := range v.groups {
		list.AppendDocument(group)
	}
	info := bsoncore.NewDocumentBuilder().AppendArray("violations", list.Build()).Build()
	return &Error{
		Code: mongoerror.CannotConvertIndexToUnique, Info: info,
		Message: "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.",
	}
}

// indexOptions returns the options of an index that a change names, as they are.
func indexOptions(spec, change document) document {
	b := bsoncore.NewDocumentBuilder()
	for _, name := range []string{"expireAfterSeconds", "hidden", "prepareUnique", "unique"} {
		if _, err := change.LookupErr(name); err != nil {
			continue
		}
		if v, err := spec.LookupErr(name); err == nil {
			b.AppendValue(name, v)
		} else if name != "expireAfterSeconds" {
			b.AppendBoolean(name, false)
		}
	}
	return b.Build()
}
