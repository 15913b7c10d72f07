package mongo

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// applyOps carries out entries of an oplog, one after the other, as mongorestore sends them: what is done already is done again, or
// passed over, so that a dump and the oplog of the time that it took make one moment. Entries that are all about documents are carried
// out as one transaction: all of them, or none. Where there are others, or a collection that cannot be written to in a transaction or is
// not there, the first that fails ends it, and those in front stay. Indexes are not made, as on MongoDB: mongorestore makes them itself.

// oplogEntry is one entry on its way.
type oplogEntry struct {
	op             string
	db, collection string
	ns             string
	uuid           []byte // of the collection; nil: it goes by its name
	o, o2          bsoncore.Document
	noUpsert       bool // b: false
}

// appliedCommands are the commands of an oplog, and what becomes of them: the name of the command here, or "" of those that are not
// for applyOps.
func appliedCommands() map[string]string {
	return map[string]string{
		"create": "create", "drop": "drop", "dropDatabase": "dropDatabase", "renameCollection": "renameCollection", "collMod": "collMod",
		"dropIndex": "dropIndexes", "dropIndexes": "dropIndexes", "deleteIndex": "dropIndexes", "deleteIndexes": "dropIndexes",
		"applyOps": "applyOps", "createIndexes": "", "startIndexBuild": "", "commitIndexBuild": "", "abortIndexBuild": "",
	}
}

// codeNotInTransaction is of what cannot be done in a transaction.
const codeNotInTransaction = document.Code(263)

// viewsCollection is where MongoDB keeps views: the oplog tells of views as changes of it.
const viewsCollection = "system.views"

func (r *request) applyOps() (bsoncore.Document, error) {
	list, err := r.documents("applyOps")
	if err != nil {
		return nil, err
	}
	entries, err := parseEntries(list)
	if err != nil {
		return nil, err
	}
	if err := r.checkCondition(); err != nil {
		return nil, err
	}
	if atomic := !slices.ContainsFunc(entries, func(e *oplogEntry) bool { return !e.ofDocument() }); atomic {
		applied, err := r.applyAtomically(entries)
		switch code := document.CodeOf(err); {
		case err == nil:
			return appliedReply(applied, applied, nil), nil
		case code == document.NamespaceNotFound, code == codeNotInTransaction: // one by one, then
		case code == 0:
			return nil, err
		default:
			return appliedReply(applied, 0, r.explainError(err)), nil
		}
	}
	return r.applyEach(entries)
}

// applyEach carries entries out one by one, and waits for one sync.
func (r *request) applyEach(entries []*oplogEntry) (bsoncore.Document, error) {
	applied := 0
	var failed error
	err := r.syncOnce(len(entries), func() error {
		for _, e := range entries {
			if e.op == "n" {
				continue
			}
			applied++
			if failed = r.applyEntry(e, nil); failed != nil {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return appliedReply(applied, applied-1, r.explainError(failed)), nil
	}
	return appliedReply(applied, applied, nil), nil
}

// appliedReply is the answer: how many entries were carried out, the one that failed with err included, and whether each one stays. It
// is the same when it fails, but for the error.
func appliedReply(applied, stay int, err error) bsoncore.Document {
	results := bsoncore.NewArrayBuilder()
	for i := range applied {
		results.AppendBoolean(i < stay)
	}
	b := bsoncore.NewDocumentBuilder().AppendInt32("applied", int32(applied))
	if err == nil {
		return done(b.AppendArray("results", results.Build()))
	}
	appendError(b, err)
	return b.AppendArray("results", results.Build()).AppendDouble("ok", 0).Build()
}

// ofDocument reports whether an entry is about a document, or about nothing.
func (e *oplogEntry) ofDocument() bool {
	return e.op == "n" || slices.Contains([]string{"i", "u", "d"}, e.op) && e.collection != viewsCollection && !isOplog(e.db, e.collection)
}

// applyAtomically carries out entries about documents as one transaction, again when another commit overtakes it, and returns how many
// it was, the one that failed included.
func (r *request) applyAtomically(entries []*oplogEntry) (applied int, err error) {
	once := func() error {
		applied = 0
		tx, err := r.server.store.Begin(r.ctx)
		if err != nil {
			return err
		}
		defer tx.Abort()
		for _, e := range entries {
			if e.op == "n" {
				continue
			}
			applied++
			if err := r.applyEntry(e, tx); err != nil {
				return err
			}
		}
		return tx.Commit(r.ctx)
	}
	for attempt := time.Duration(0); ; attempt++ {
		if err = once(); !errors.Is(err, document.WriteConflict) && !errors.Is(err, pando.ErrConflict) {
			return applied, err
		}
		if err := r.server.clock.Sleep(r.ctx, min(attempt*attempt, 100)*time.Millisecond); err != nil {
			return applied, err
		}
	}
}

// checkCondition asks for what the command's preCondition demands: documents as they have to be before anything is done.
func (r *request) checkCondition() error {
	if !r.has("preCondition") {
		return nil
	}
	list, err := r.documents("preCondition")
	if err != nil {
		return err
	}
	for _, doc := range list {
		ns, isText := doc.Lookup("ns").StringValueOK()
		q, isQuery := doc.Lookup("q").DocumentOK()
		want, isFilter := doc.Lookup("res").DocumentOK()
		if !isText || !isQuery || !isFilter {
			return document.NewError(document.BadValue, "a preCondition has ns, q and res")
		}
		db, name, _ := strings.Cut(ns, ".")
		got, err := r.server.store.Database(db).Lookup(name).FindOne(r.ctx, bson.Raw(q), nil)
		if err != nil && !errors.Is(err, document.ErrNotFound) {
			return err
		}
		f, err := document.ParseFilter(bson.Raw(want))
		if err != nil {
			return err
		}
		if got == nil {
			got = bson.Raw{5, 0, 0, 0, 0}
		}
		if match, err := f.Match(got); err != nil || !match {
			return errors.Join(err, document.NewError(document.BadValue, "preCondition failed"))
		}
	}
	return nil
}

// parseEntries checks all entries before any is carried out.
func parseEntries(list []bsoncore.Document) ([]*oplogEntry, error) {
	entries, known := make([]*oplogEntry, len(list)), appliedCommands()
	for i, doc := range list {
		e := &oplogEntry{}
		op, ns, b := doc.Lookup("op"), doc.Lookup("ns"), doc.Lookup("b")
		var isText bool
		if e.op, isText = op.StringValueOK(); !isText {
			return nil, document.NewError(document.Code(4), "entry %d has no 'op' that is a string", i)
		}
		if e.ns, isText = ns.StringValueOK(); !isText && e.op != "n" {
			return nil, document.NewError(codeIllegalOperation, "op does not contain required \"ns\" field: %d", i)
		}
		e.db, e.collection, _ = strings.Cut(e.ns, ".")
		e.o, _ = doc.Lookup("o").DocumentOK()
		e.o2, _ = doc.Lookup("o2").DocumentOK()
		_, e.uuid, _ = doc.Lookup("ui").BinaryOK()
		e.noUpsert = b.Type == bsoncore.TypeBoolean && !b.Boolean()
		if _, is := known[e.name()]; e.op == "c" && !is {
			return nil, document.NewError(document.BadValue, "Unknown oplog entry command type: %s Object field: %s", e.name(), e.o)
		}
		entries[i] = e
	}
	return entries, nil
}

// name returns the first field of what the entry says.
func (e *oplogEntry) name() string {
	first, err := e.o.IndexErr(0)
	if err != nil {
		return ""
	}
	return first.Key()
}

// entryCommand returns the command that does what an entry says of the catalogue; nil for one that is about documents.
func (r *request) entryCommand(e *oplogEntry) (*request, error) {
	body := e.o
	switch {
	case e.op == "c":
	case e.collection != viewsCollection:
		return nil, nil
	default:
		body = e.viewCommand()
	}
	first, err := body.IndexErr(0)
	if err != nil {
		return nil, document.NewError(document.FailedToParse, "an entry without a command")
	}
	name, target := appliedCommands()[first.Key()], first.Value()
	if name == "" {
		return nil, document.NewError(codeNotSupported, "The %s operation is not supported in applyOps mode", first.Key())
	}
	db := e.db
	b := bsoncore.NewDocumentBuilder().AppendValue(name, target)
	if name == "renameCollection" {
		db = adminDB
		_, _, drops := body.Lookup("dropTarget").BinaryOK()
		flag, _ := body.Lookup("dropTarget").BooleanOK()
		b.AppendValue("to", body.Lookup("to")).AppendBoolean("dropTarget", drops || flag)
	} else {
		elements, err := body.Elements()
		if err != nil {
			return nil, document.NewError(document.FailedToParse, "%s: %v", name, err)
		}
		for _, x := range elements[1:] {
			if x.Key() != "$db" {
				b.AppendValue(x.Key(), x.Value())
			}
		}
	}
	inner := &request{server: r.server, conn: r.conn, ctx: r.ctx, cancel: r.cancel, start: r.start, op: r.op, name: name, target: target,
		body: b.AppendString("$db", db).Build()}
	return inner, inner.parse()
}

// viewCommand is the command for a change of system.views, whose documents are {_id: namespace, viewOn, pipeline, ...}.
func (e *oplogEntry) viewCommand() bsoncore.Document {
	command := map[string]string{"i": "create", "u": "collMod", "d": "drop"}[e.op]
	id, _ := e.o.Lookup("_id").StringValueOK()
	if e.op == "u" {
		id, _ = e.o2.Lookup("_id").StringValueOK()
	}
	b := bsoncore.NewDocumentBuilder().AppendString(command, strings.TrimPrefix(id, e.db+"."))
	for _, name := range []string{"viewOn", "pipeline", "collation"} {
		if v := e.o.Lookup(name); v.Type != 0 && (name != "collation" || command == "create") {
			b.AppendValue(name, v)
		}
	}
	return b.Build()
}

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

// has reports whether a collection is that of the entry.
func (e *oplogEntry) has(c document.CollectionInfo) bool { return bytes.Equal(c.UUID.Data, e.uuid) }

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

// ruleApplyOps asks for the privilege of the command, and of everything that the entries do.
func ruleApplyOps(r *request, g *grants) bool {
	if !g.allowsCluster("applyOps") {
		return false
	}
	entries, err := parseEntries(r.statementsOf("applyOps"))
	return err == nil && r.bypasses(g) && !slices.ContainsFunc(entries, func(e *oplogEntry) bool { return !r.mayApply(e, g) })
}

func (r *request) mayApply(e *oplogEntry, g *grants) bool {
	name := e.collection // which a UUID may say otherwise
	if e.uuid != nil {
		c, err := r.located(e.db, e.has)
		if err != nil || !g.allowsCluster("useUUID") || !g.allowsCluster("forceUUID") {
			return false
		}
		if c.Name != "" {
			name = c.Name
		}
	}
	switch inner, err := r.entryCommand(e); {
	case err != nil:
		return true // which is refused with a reason
	case inner != nil && e.uuid != nil && name != e.collection && inner.name != "renameCollection":
		renamed := *inner
		renamed.target = bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, name)}
		return inner.allowed(g) && renamed.allowed(g)
	case inner != nil:
		return inner.allowed(g)
	case e.op == "d":
		return g.allowAll(e.db, name, "remove")
	case e.op == "i", e.op == "u":
		return g.allowAll(e.db, name, "insert", "update")
	}
	return true
}
