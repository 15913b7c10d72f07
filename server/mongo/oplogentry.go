package mongo

import (
	"bytes"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

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

// ofDocument reports whether an entry is about a document, or about nothing.
func (e *oplogEntry) ofDocument() bool {
	return e.op == "n" || slices.Contains([]string{"i", "u", "d"}, e.op) && e.collection != viewsCollection && !isOplog(e.db, e.collection)
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

// has reports whether a collection is that of the entry.
func (e *oplogEntry) has(c document.CollectionInfo) bool { return bytes.Equal(c.UUID.Data, e.uuid) }
