package mongo

import (
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

func catalogueCommands() []*command {
	return []*command{
		{name: "create", run: (*request).create, fields: createFields(), write: true, inTxn: true, stable: true, help: "creates a collection or view"},
		{name: "drop", run: (*request).drop, write: true, stable: true, help: "drops a collection or view"},
		{name: "dropDatabase", run: (*request).dropDatabase, write: true, stable: true, help: "drops a database"},
		{name: "renameCollection", run: (*request).renameCollection, fields: []string{"to", "dropTarget", "stayTemp"}, admin: true, write: true, help: "renames a collection"},
		{name: "collMod", run: (*request).collMod, fields: collModFields(), write: true, stable: true, help: "changes the options of a collection"},
		{name: "createIndexes", run: (*request).createIndexes, fields: []string{"indexes", "commitQuorum", "ignoreUnknownIndexOptions"}, write: true, inTxn: true, stable: true, help: "makes indexes"},
		{name: "dropIndexes", aliases: []string{"deleteIndexes"}, run: (*request).dropIndexes, fields: []string{"index"}, write: true, stable: true, help: "drops indexes"},
		{name: "listIndexes", run: (*request).listIndexes, fields: []string{"cursor", "includeBuildUUIDs", "includeIndexBuildInfo"}, stable: true, help: "lists indexes"},
		{name: "listCollections", run: (*request).listCollections, fields: []string{"filter", "nameOnly", "cursor", "authorizedCollections"}, stable: true, help: "lists collections"},
		{name: "listDatabases", run: (*request).listDatabases, fields: []string{"filter", "nameOnly", "authorizedDatabases"}, admin: true, stable: true, help: "lists databases"},
		{name: "convertToCapped", run: (*request).convertToCapped, anyField: true, write: true, help: "makes a collection capped"},
		{name: "applyOps", run: (*request).applyOps, anyField: true, write: true, help: "carries out entries of an oplog, as mongorestore sends them"},
		{name: "cloneCollectionAsCapped", run: (*request).cloneCollectionAsCapped, anyField: true, write: true, help: "copies a collection into a capped one"},
	}
}

func createFields() []string {
	return []string{"capped", "autoIndexId", "idIndex", "size", "max", "storageEngine", "validator", "validationLevel", "validationAction",
		"indexOptionDefaults", "viewOn", "pipeline", "collation", "changeStreamPreAndPostImages", "timeseries", "clusteredIndex",
		"expireAfterSeconds", "encryptedFields", "temp", "flags"}
}

func collModFields() []string {
	return []string{"index", "validator", "validationLevel", "validationAction", "viewOn", "pipeline", "expireAfterSeconds",
		"timeseries", "changeStreamPreAndPostImages", "cappedSize", "cappedMax", "dryRun"}
}

func (r *request) notSupported() (bsoncore.Document, error) {
	return nil, document.NewError(codeNotSupported, "%s is not supported by this server", r.name)
}

func (r *request) create() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	options, err := r.createOptions()
	if err != nil {
		return nil, err
	}
	if temp, err := r.flag("temp"); err != nil || temp {
		return nil, document.NewError(codeInvalidOptions, "the 'temp' field is an invalid option")
	}
	if on, isText := r.args["viewOn"].StringValueOK(); isText && on == "" {
		return nil, document.NewError(document.BadValue, "'viewOn' cannot be empty")
	}
	if err := r.checkImages(); err != nil {
		return nil, err
	}
	if c.Name() == "system.views" {
		return nil, document.NewError(document.NamespaceExists, "Collection %s.system.views already exists.", r.db)
	}
	d := r.server.store.Database(r.db)
	if r.txn != nil {
		err = r.txn.tx.Create(r.ctx, d, c.Name(), options)
	} else {
		err = d.Create(r.ctx, c.Name(), options)
	}
	if err != nil {
		return nil, err
	}
	return ok(), nil
}

// createOptions returns what the create command says of a collection.
func (r *request) createOptions() (bson.Raw, error) {
	options := bsoncore.NewDocumentBuilder()
	elements, err := r.body.Elements()
	if err != nil {
		return nil, document.NewError(document.FailedToParse, "create: %v", err)
	}
	for _, e := range elements[1:] {
		switch key := e.Key(); {
		case key == "autoIndexId" && r.db != "local" && !truth(e.Value()) && e.Value().Type != bsoncore.TypeNull:
			return nil, document.NewError(document.Code(50001), "autoIndexId:false is not allowed for collection %s because it can be replicated", r.namespace())
		case generic(key), e.Value().Type == bsoncore.TypeNull, key == "flags", key == "temp", key == "autoIndexId", key == "encryptedFields":
		default:
			options.AppendValue(key, e.Value())
		}
	}
	return bson.Raw(options.Build()), nil
}

func (r *request) drop() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	ns := r.db + "." + c.Name()
	b := bsoncore.NewDocumentBuilder()
	if list, err := c.Indexes(r.ctx); err == nil { // else it is a view
		b.AppendInt32("nIndexesWas", int32(len(list)))
	}
	if err := c.Drop(r.ctx); errors.Is(err, document.NamespaceNotFound) {
		return ok(), nil // as of 7.0 dropping what is not there is no error
	} else if err != nil {
		return nil, err
	}
	r.server.cursors.endDropped(r.db, c.Name())
	return done(b.AppendString("ns", ns)), nil
}

func (r *request) dropDatabase() (bsoncore.Document, error) {
	one, isNumber := asInt64(r.target)
	switch {
	case r.target.Type == bsoncore.TypeNull:
		return nil, missingField("dropDatabase.dropDatabase")
	case !isNumber:
		return nil, wrongType("dropDatabase.dropDatabase", r.target, "int")
	case one != 1:
		return nil, document.NewError(document.Code(5255100), "Have to pass 1 as 'drop' parameter")
	case r.db == adminDB:
		return nil, document.NewError(codeIllegalOperation, "Dropping the '%s' database is prohibited.", r.db)
	}
	profiled := r.server.profile.switchOff(r.db) // first, or what ends meanwhile would bring the database back
	if err := r.server.store.Database(r.db).Drop(r.ctx); err != nil {
		if profiled.level > 0 {
			r.server.profile.set(r.db, profiled)
		}
		return nil, err
	}
	r.server.cursors.endDropped(r.db, "")
	return done(bsoncore.NewDocumentBuilder().AppendString("dropped", r.db)), nil
}

func (r *request) renameCollection() (bsoncore.Document, error) {
	from, isText := r.target.StringValueOK()
	if !isText {
		return nil, r.nameless()
	}
	to, err := r.text("to")
	if err != nil {
		return nil, err
	}
	if from == to {
		return nil, document.NewError(codeIllegalOperation, "Can't rename a collection to itself")
	}
	replace, err := r.flag("dropTarget")
	if err != nil {
		return nil, err
	}
	db, name, _ := strings.Cut(from, ".")
	newDB, newName, _ := strings.Cut(to, ".")
	if db == "" || name == "" {
		return nil, document.NewError(codeInvalidNamespace, "Invalid namespace specified '%s'", from)
	}
	if err := r.server.store.Database(db).Lookup(name).Rename(r.ctx, newDB, newName, replace); err != nil {
		return nil, err
	}
	if replace {
		r.server.cursors.endDropped(newDB, newName)
	}
	return ok(), nil
}

func (r *request) collMod() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	if err := r.checkImages(); err != nil {
		return nil, err
	}
	if r.server.o.Auth && r.has("viewOn") != r.has("pipeline") { // who asks for the privileges looks at both
		return nil, document.NewError(codeInvalidOptions, "Must specify both 'viewOn' and 'pipeline' when modifying a view and auth is enabled")
	}
	changes := bsoncore.NewDocumentBuilder()
	elements, err := r.body.Elements()
	if err != nil {
		return nil, document.NewError(document.FailedToParse, "collMod: %v", err)
	}
	for _, e := range elements[1:] {
		if !generic(e.Key()) && e.Value().Type != bsoncore.TypeNull {
			changes.AppendValue(e.Key(), e.Value())
		}
	}
	before, err := c.Indexes(r.ctx)
	if err != nil && !errors.Is(err, document.NamespaceNotFound) {
		return nil, err
	}
	if err := c.Modify(r.ctx, bson.Raw(changes.Build())); err != nil {
		return nil, err
	}
	after, err := c.Indexes(r.ctx)
	if err != nil && !errors.Is(err, document.NamespaceNotFound) {
		return nil, err
	}
	return done(changedIndex(before, after)), nil
}

// checkImages refuses options of pre- and post-images that do not say whether they are on.
func (r *request) checkImages() error {
	const name = "changeStreamPreAndPostImages"
	spec, err := r.document(name)
	if spec == nil || err != nil {
		return err
	}
	for field := range argsOf(spec) {
		if field != "enabled" {
			return document.NewError(codeUnknownField, "BSON field '%s.%s.%s' is an unknown field.", r.name, name, field)
		}
	}
	switch v := spec.Lookup("enabled"); v.Type {
	case bsoncore.TypeBoolean:
		return nil
	case 0:
		return missingField(r.name + "." + name + ".enabled")
	default:
		return wrongType(r.name+"."+name+".enabled", v, "bool")
	}
}

// onView is the error of a command that views and time series do not have; nil for a collection, and for nothing.
func (r *request) onView(c *document.Collection) error {
	if c.IsTimeSeries() {
		return document.NewError(codeNotOnView, "Namespace %s.%s is a timeseries collection", r.db, c.Name())
	}
	found, err := r.located(r.db, func(x document.CollectionInfo) bool { return x.Name == c.Name() })
	if err == nil && found.View {
		return document.NewError(codeNotOnView, "Namespace %s.%s is a view, not a collection", r.db, c.Name())
	}
	return nil
}

// changedIndex says what collMod has changed in an index.
func changedIndex(before, after []document.IndexInfo) *bsoncore.DocumentBuilder {
	b := bsoncore.NewDocumentBuilder()
	for i, is := range after {
		if i >= len(before) || before[i].Name != is.Name || string(before[i].Spec) == string(is.Spec) {
			continue
		}
		was, now := bsoncore.Document(before[i].Spec), bsoncore.Document(is.Spec)
		if hid, hides := was.Lookup("hidden").Type != 0, now.Lookup("hidden").Type != 0; hid != hides {
			b.AppendBoolean("hidden_old", hid).AppendBoolean("hidden_new", hides)
		}
		const seconds = "expireAfterSeconds"
		if x, y := was.Lookup(seconds), now.Lookup(seconds); !x.Equal(y) {
			if n, ok := x.AsInt64OK(); ok {
				b.AppendInt64(seconds+"_old", n)
			}
			b.AppendInt64(seconds+"_new", y.AsInt64())
		}
		const unique, prepare = "unique", "prepareUnique"
		if now.Lookup(unique).Type != was.Lookup(unique).Type {
			b.AppendBoolean(unique+"_new", true)
		} else if now, was := now.Lookup(prepare).Type != 0, was.Lookup(prepare).Type != 0; now != was {
			b.AppendBoolean(prepare+"_old", was).AppendBoolean(prepare+"_new", now)
		}
	}
	return b
}

func (r *request) createIndexes() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	list, err := r.documents("indexes")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, document.NewError(document.BadValue, "Must specify at least one index to create")
	}
	lenient, err := r.flag("ignoreUnknownIndexOptions")
	if err != nil {
		return nil, err
	}
	specs := make([]bson.Raw, len(list))
	for i, spec := range list {
		if _, err := spec.LookupErr("name"); err != nil {
			return nil, document.NewError(document.FailedToParse, "Error in specification %s :: caused by :: The 'name' field is a required property of an index specification", spec)
		}
		if specs[i] = bson.Raw(spec); lenient {
			if specs[i], err = document.KnownIndexFields(specs[i]); err != nil {
				return nil, err
			}
		}
	}
	quorum, err := r.commitQuorum()
	if err != nil {
		return nil, err
	}
	before, created := 1, false
	if existing, err := c.Indexes(r.ctx); err == nil {
		before = len(existing)
	} else if errors.Is(err, document.NamespaceNotFound) {
		created = true
	}
	if _, err := c.CreateIndexes(r.ctx, specs, nil); err != nil {
		return nil, err
	}
	after, err := c.Indexes(r.ctx)
	if err != nil {
		return nil, err
	}
	b := bsoncore.NewDocumentBuilder().AppendInt32("numIndexesBefore", int32(before)).AppendInt32("numIndexesAfter", int32(len(after)))
	if len(after) == before {
		b.AppendString("note", "all indexes already exist")
	} else {
		b.AppendBoolean("createdCollectionAutomatically", created)
	}
	if len(after) != before && quorum.Type != 0 {
		b.AppendValue("commitQuorum", quorum)
	}
	if len(after) != before && len(after) != before+len(specs) {
		b.AppendString("note", "index already exists")
	}
	return done(b), nil
}

func (r *request) dropIndexes() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	if err := r.onView(c); err != nil && !c.IsTimeSeries() {
		return nil, err
	}
	list, err := c.Indexes(r.ctx)
	if err != nil {
		return nil, err
	}
	which, given := r.args["index"]
	if !given {
		return nil, missingField("dropIndexes.index")
	}
	if err := c.DropIndex(r.ctx, bson.RawValue{Type: bson.Type(which.Type), Value: which.Data}); err != nil {
		return nil, err
	}
	b := bsoncore.NewDocumentBuilder().AppendInt32("nIndexesWas", int32(len(list)))
	if names, isList := which.ArrayOK(); isList {
		which, _ = names.IndexErr(0) // "*" may be the only one of a list
	}
	if name, _ := which.StringValueOK(); name == "*" {
		b.AppendString("msg", "non-_id indexes dropped for collection")
	}
	return done(b), nil
}

// listed answers with a cursor over documents that are there already.
func (r *request) listed(ns string, docs []bsoncore.Document) (bsoncore.Document, error) {
	size := int64(-1)
	spec, err := r.document("cursor")
	if err != nil {
		return nil, err
	}
	if spec != nil {
		if size, err = r.cursorSize(spec); err != nil {
			return nil, err
		}
	}
	if size < 0 {
		size = int64(len(docs)) + 1
	}
	return r.firstBatch(ns, size, false, listCursor(docs), nil)
}

func (r *request) listIndexes() (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	list, err := c.Indexes(r.ctx)
	if errors.Is(err, document.NamespaceNotFound) {
		if found, err := r.located(r.db, func(x document.CollectionInfo) bool { return x.Name == c.Name() }); err != nil || found.View {
			return nil, errors.Join(err, document.NewError(codeNotOnView, "Namespace %s.%s is a view, not a collection", r.db, c.Name()))
		}
		return nil, document.NewError(document.NamespaceNotFound, "ns does not exist: %s.%s", r.db, c.Name())
	}
	if err != nil {
		return nil, err
	}
	docs := make([]bsoncore.Document, len(list))
	for i, x := range list {
		docs[i] = bsoncore.Document(x.Spec)
	}
	return r.listed(r.db+"."+c.Name(), docs)
}

func (r *request) listCollections() (bsoncore.Document, error) {
	names, err := r.flag("nameOnly")
	if err != nil {
		return nil, err
	}
	list, err := r.server.store.Database(r.db).Collections(r.ctx)
	if err != nil {
		return nil, err
	}
	match, err := r.filter("filter")
	if err != nil {
		return nil, err
	}
	var docs []bsoncore.Document
	for _, c := range list {
		if strings.HasPrefix(c.Name, "tmp.agg_out.") || !r.seesCollection(c.Name) {
			continue
		}
		told := describe(c)
		if names { // and the filter sees no more either: who asks so may have no privilege to see options
			told = bsoncore.NewDocumentBuilder().AppendString("name", c.Name).AppendValue("type", told.Lookup("type")).Build()
		}
		if fits, err := match(told); err != nil || !fits {
			if err != nil {
				return nil, err
			}
			continue
		}
		docs = append(docs, told)
	}
	return r.listed(r.db+".$cmd.listCollections", docs)
}

// describe makes the document of a collection that listCollections gives.
func describe(c document.CollectionInfo) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder().AppendString("name", c.Name)
	info := bsoncore.NewDocumentBuilder().AppendBoolean("readOnly", c.View)
	if c.View {
		return b.AppendString("type", "view").AppendDocument("options", bsoncore.Document(c.Options)).AppendDocument("info", info.Build()).Build()
	}
	if c.Series {
		return b.AppendString("type", "timeseries").AppendDocument("options", bsoncore.Document(c.Options)).AppendDocument("info", info.Build()).Build()
	}
	info.AppendBinary("uuid", c.UUID.Subtype, c.UUID.Data)
	b.AppendString("type", "collection").AppendDocument("options", bsoncore.Document(c.Options)).AppendDocument("info", info.Build())
	if _, err := c.Options.LookupErr("clusteredIndex"); err != nil {
		b.AppendDocument("idIndex", bsoncore.Document(document.IDIndex(c.Options)))
	}
	return b.Build()
}

// filter returns a function that matches documents against a filter of the command.
func (r *request) filter(field string) (func(bsoncore.Document) (bool, error), error) {
	spec, err := r.document(field)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return func(bsoncore.Document) (bool, error) { return true, nil }, nil
	}
	f, err := document.ParseFilter(bson.Raw(spec))
	if err != nil {
		return nil, err
	}
	return func(d bsoncore.Document) (bool, error) { return f.Match(bson.Raw(d)) }, nil
}

func (r *request) listDatabases() (bsoncore.Document, error) {
	nameOnly, err := r.flag("nameOnly")
	if err != nil {
		return nil, err
	}
	match, err := r.filter("filter")
	if err != nil {
		return nil, err
	}
	names, err := r.server.store.Databases(r.ctx)
	if err != nil {
		return nil, err
	}
	var sizes map[string]int64 // of which a list of names knows nothing
	if !nameOnly {
		if sizes, err = r.databaseSizes(); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(names, "admin") { // it is always there: commands are sent to it
		names = append(names, "admin")
	}
	if !slices.Contains(names, oplogDatabase) && r.server.hasOplog(r.ctx) {
		names = append(names, oplogDatabase)
	}
	slices.Sort(names)
	list, total := bsoncore.NewArrayBuilder(), int64(0)
	for _, name := range names {
		size := sizes[name]
		if len(sizes) > 0 {
			size = max(size, 1)
		}
		info := bsoncore.NewDocumentBuilder().AppendString("name", name)
		if !nameOnly {
			info.AppendInt64("sizeOnDisk", size).AppendBoolean("empty", size == 0)
		}
		full := info.Build()
		fits, err := match(full)
		if err != nil {
			return nil, err
		}
		if !fits || !r.seesDatabase(name) {
			continue
		}
		total += size
		list.AppendDocument(full)
	}
	b := bsoncore.NewDocumentBuilder().AppendArray("databases", list.Build())
	if !nameOnly {
		b.AppendInt64("totalSize", total).AppendInt64("totalSizeMb", total>>20)
	}
	return done(b), nil
}
