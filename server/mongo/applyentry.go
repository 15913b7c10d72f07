package mongo

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// applyEntry carries out one entry, which has to be about a document in a transaction; tx may be nil.
func (r *request) applyEntry(e *oplogEntry, tx *document.Tx) error {
	switch {
	case !slices.Contains([]string{"i", "u", "d", "c"}, e.op):
		return document.NewError(document.BadValue, "Enumeration value '%s' for field 'OplogEntryBase.op' is not a valid value.", e.op)
	case e.collection == "" || e.db == "":
		return document.NewError(document.Code(73), "invalid ns: %s", e.ns)
	case isOplog(e.db, e.collection):
		return document.NewError(document.Code(73), "cannot write to %s", e.ns)
	}
	inner, err := r.entryCommand(e)
	if err != nil {
		return err
	}
	if inner == nil {
		return r.applyWrite(e, tx)
	}
	if err := inner.writesOplog(); err != nil {
		return err
	}
	return r.applyCommand(e, inner)
}

// applyCommand carries out an entry about the catalogue. What it is about may be gone already, or there.
func (r *request) applyCommand(e *oplogEntry, inner *request) error {
	target := inner.targetName()
	if e.op == "c" && target == viewsCollection {
		return r.applyToViews(inner)
	}
	if inner.name == "applyOps" {
		return inner.applyAll()
	}
	var has document.CollectionInfo // the collection of the entry
	if e.uuid != nil {
		var err error
		if has, err = r.located(e.db, e.has); err != nil {
			return err
		}
	}
	switch {
	case inner.name == "create" && e.op == "c":
		return r.applyCreate(e, inner, has.Name)
	case inner.name == "renameCollection":
		return r.applyRename(inner, e.uuid != nil && has.Name == "")
	case e.uuid != nil && has.Name == "":
		return nil
	case e.uuid != nil:
		inner.target = bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, has.Name)}
	}
	_, err := inner.command.run(inner)
	if errors.Is(err, document.NamespaceNotFound) || errors.Is(err, document.IndexNotFound) || e.op != "c" && errors.Is(err, document.NamespaceExists) {
		return nil
	}
	return err
}

// applyAll carries out the entries of a transaction.
func (r *request) applyAll() error {
	reply, err := r.applyOps()
	if err != nil {
		return err
	}
	if failed, _ := reply.Lookup("ok").DoubleOK(); failed == 0 {
		code, _ := reply.Lookup("code").Int32OK()
		text, _ := reply.Lookup("errmsg").StringValueOK()
		return document.NewError(document.Code(code), "%s", text)
	}
	return nil
}

// applyToViews carries out a command about the collection of views, which is not there: what drops it drops the views.
func (r *request) applyToViews(inner *request) error {
	if inner.name != "drop" {
		return nil
	}
	d := r.server.store.Database(inner.db)
	list, err := d.Collections(r.ctx)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.View {
			err = errors.Join(err, d.Lookup(c.Name).Drop(r.ctx))
		}
	}
	return err
}

// located returns the first collection of a database for which is is true; one without a name if there is none.
func (r *request) located(db string, is func(document.CollectionInfo) bool) (document.CollectionInfo, error) {
	list, err := r.server.store.Database(db).Collections(r.ctx)
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], err
	}
	return document.CollectionInfo{}, err
}

// applyCreate creates a collection, or gives the one that has its UUID already its name.
func (r *request) applyCreate(e *oplogEntry, inner *request, has string) error {
	d, name := r.server.store.Database(e.db), inner.targetName()
	there, err := r.located(e.db, func(c document.CollectionInfo) bool { return c.Name == name })
	if err != nil || there.Name != "" && (e.uuid == nil || has == name) {
		return err
	}
	if there.Name != "" {
		if err := d.Lookup(name).Rename(r.ctx, e.db, aside("create"), false); err != nil {
			return err
		}
	}
	if has != "" {
		return d.Lookup(has).Rename(r.ctx, e.db, name, false)
	}
	if e.uuid == nil {
		_, err := inner.create()
		return err
	}
	options, err := inner.createOptions()
	if err != nil {
		return err
	}
	return d.CreateAs(r.ctx, name, options, bson.Binary{Subtype: bson.TypeBinaryUUID, Data: e.uuid})
}

// aside is a name for a collection that is in the way of one that an entry is about, as MongoDB makes them.
func aside(why string) string { return "tmp" + rand.Text()[:5] + "." + why }

// applyRename renames a collection, if it is there still. Another one that has the name is moved aside.
func (r *request) applyRename(inner *request, gone bool) error {
	to, _ := inner.args["to"].StringValueOK()
	db, name, _ := strings.Cut(to, ".")
	fromDB, from, _ := strings.Cut(inner.targetName(), ".")
	source, err := r.located(fromDB, func(c document.CollectionInfo) bool { return c.Name == from })
	if err != nil || gone || source.Name == "" || to == inner.targetName() {
		return err
	}
	target, err := r.located(db, func(c document.CollectionInfo) bool { return c.Name == name })
	if err != nil {
		return err
	}
	if replace, _ := inner.args["dropTarget"].BooleanOK(); target.Name != "" && !replace {
		if err := r.server.store.Database(db).Lookup(name).Rename(r.ctx, db, aside("renameCollection"), false); err != nil {
			return err
		}
	}
	_, err = inner.renameCollection()
	return err
}

// applyWrite carries out an entry about a document; tx may be nil.
func (r *request) applyWrite(e *oplogEntry, tx *document.Tx) error {
	is := func(c document.CollectionInfo) bool { return c.Name == e.collection && !c.View }
	if e.uuid != nil {
		is = e.has
	}
	c, err := r.located(e.db, is)
	if err != nil {
		return err
	}
	switch {
	case c.Name == "" && e.uuid != nil:
		return document.NewError(document.NamespaceNotFound, "Failed to apply operation due to missing collection (%x): %s", e.uuid, e.o)
	case c.Name == "" && e.op == "d":
		return nil
	case c.Name == "":
		return document.NewError(document.NamespaceNotFound, "cannot apply insert or update operation on a non-existent namespace %s: %s", e.ns, e.o)
	}
	what, about := map[string]string{"i": "insert", "u": "update", "d": "delete"}[e.op], e.o
	if e.op == "u" {
		about = e.o2
	}
	id, err := about.LookupErr("_id")
	if err != nil {
		return document.NewError(document.Code(4), "Failed to apply %s due to missing _id: %s", what, about)
	}
	skip, err := r.flag("bypassDocumentValidation")
	if err != nil {
		return err
	}
	upsert := true
	if r.has("alwaysUpsert") {
		if upsert, err = r.flag("alwaysUpsert"); err != nil {
			return err
		}
	}
	x, filter := r.server.store.Database(e.db).Lookup(c.Name), byID(id)
	if tx != nil {
		x = tx.In(x)
	}
	switch e.op {
	case "d":
		_, err = x.Delete(r.ctx, filter, nil)
		return err
	case "i":
		_, err := x.InsertMany(r.ctx, []bson.Raw{bson.Raw(e.o)}, &document.InsertOptions{Ordered: true, SkipValidation: skip})
		if errors.Is(err, document.DuplicateKey) {
			_, err = x.Replace(r.ctx, filter, bson.Raw(e.o), &document.UpdateOptions{Upsert: true, SkipValidation: skip})
		}
		return err
	}
	result, err := applyUpdateEntry(r, x, filter, e, &document.UpdateOptions{Upsert: upsert && !e.noUpsert, SkipValidation: skip})
	if err == nil && result.Matched == 0 && result.UpsertedID.Type == 0 {
		return document.NewError(document.Code(218), "Update of non-mod failed: %s", e.o2)
	}
	return err
}

// byID is the filter for the document with an _id, whatever that is.
func byID(id bsoncore.Value) bson.Raw {
	equal := bsoncore.NewDocumentBuilder().AppendValue("$eq", id).Build()
	return bson.Raw(bsoncore.NewDocumentBuilder().AppendDocument("_id", equal).Build())
}

// applyUpdateEntry carries out an entry about an update: {$v: 2, diff}, {$v: 1, operators}, operators, or the whole document.
func applyUpdateEntry(r *request, c *document.Collection, filter bson.Raw, e *oplogEntry, o *document.UpdateOptions) (*document.UpdateResult, error) {
	version, err := e.o.LookupErr("$v")
	n, _ := version.AsInt64OK()
	switch {
	case err == nil && n == 2:
		diff, ok := e.o.Lookup("diff").DocumentOK()
		if !ok {
			return nil, document.NewError(codeMissingField, "an update of version 2 has no diff: %s", e.o)
		}
		return c.ApplyDiff(r.ctx, filter, bson.Raw(diff), o)
	case err == nil && n != 1:
		return nil, document.NewError(document.Code(4772600), "Expected _id field or $v field missing or $v:1/$v:2, but got: $v: %s", version)
	case strings.HasPrefix(e.name(), "$"):
		operators := bsoncore.NewDocumentBuilder()
		elements, err := e.o.Elements()
		if err != nil {
			return nil, document.NewError(document.FailedToParse, "update: %v", err)
		}
		for _, x := range elements {
			if x.Key() != "$v" {
				operators.AppendValue(x.Key(), x.Value())
			}
		}
		return c.Update(r.ctx, filter, bson.Raw(operators.Build()), o)
	}
	if _, err := e.o.LookupErr("_id"); err != nil {
		return nil, document.NewError(document.FailedToParse, "Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an array", e.name())
	}
	return c.Replace(r.ctx, filter, bson.Raw(e.o), o)
}
