package document

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// eventMaker makes the events of a change stream of what was committed.
type eventMaker struct {
	stream *stream
}

// take makes the events of a commit.
func (r *eventMaker) take(ctx context.Context, c *committed) error {
	for i := range c.changes {
		l := &c.changes[i]
		if l.seq < r.stream.begin {
			continue
		}
		var err error
		switch l.op {
		case opNoop:
			continue
		case opCommand:
			err = r.command(ctx, l)
		default:
			err = r.change(ctx, c, l)
		}
		if err != nil {
			return err
		}
	}
	if c.seq >= r.stream.begin {
		r.stream.offer(event{at: token{seq: c.seq, newest: c.noted}}) // the stream has come this far
	}
	return nil
}

// wants reports whether the stream tells about a collection.
func (r *eventMaker) wants(l *logged, ns namespace) bool {
	st := r.stream
	switch {
	case l.time < st.after:
		return false
	case st.ns.collection != "":
		return ns == st.ns
	case strings.HasPrefix(ns.collection, "system."):
		return false
	case st.ns.database == "":
		return ns.database != "admin" && ns.database != "config" && ns.database != "local"
	}
	return ns.database == st.ns.database && !strings.HasPrefix(ns.collection, temporaryPrefix)
}

// change makes the event of a changed document.
func (r *eventMaker) change(ctx context.Context, c *committed, l *logged) error {
	if l.seq == r.stream.told || !r.wants(l, l.ns) {
		return nil
	}
	e, err := r.describe(ctx, c, l)
	if err != nil {
		return fmt.Errorf("change %d: %w", l.seq, err)
	}
	return r.stream.send(ctx, event{doc: e, at: l.token()})
}

// token is the place of the event of a change.
func (l *logged) token() token { return token{seq: l.seq, newest: l.noted} }

// start begins an event.
func (l *logged) start(at token, operationType string) *bsoncore.DocumentBuilder {
	return bsoncore.NewDocumentBuilder().AppendDocument("_id", at.document()).AppendString("operationType", operationType).
		AppendTimestamp("clusterTime", uint32(l.time>>32), uint32(l.time)).AppendDateTime("wallTime", int64(l.time>>32)*1000)
}

func namespaceDocument(ns namespace) document {
	b := bsoncore.NewDocumentBuilder().AppendString("db", ns.database)
	if ns.collection != "" {
		b.AppendString("coll", ns.collection)
	}
	return b.Build()
}

// describe makes the event itself.
func (r *eventMaker) describe(ctx context.Context, c *committed, l *logged) (document, error) {
	names := map[operation]string{opInsert: "insert", opUpdate: "update", opReplace: "replace", opDelete: "delete"}
	b := l.start(l.token(), names[l.op])
	o := r.stream.o
	if o.ShowExpandedEvents {
		b.AppendBinary("collectionUUID", l.c.uuid.Subtype, l.c.uuid.Data)
	}
	if lsid := sessionDocument(c.session); c.transaction && lsid != nil {
		b.AppendInt64("txnNumber", c.number).AppendDocument("lsid", lsid)
	}
	full, err := r.fullDocument(ctx, l)
	if err != nil {
		return nil, err
	}
	if full.Type != 0 {
		b.AppendValue("fullDocument", full)
	}
	b.AppendDocument("ns", namespaceDocument(l.ns))
	b.AppendDocument("documentKey", bsoncore.NewDocumentBuilder().AppendValue("_id", l.id).Build())
	if l.op == opUpdate {
		what, err := describeDiff(l.doc, o.ShowExpandedEvents)
		if err != nil {
			return nil, err
		}
		b.AppendDocument("updateDescription", what)
	}
	if l.op != opInsert && (o.FullDocumentBeforeChange == "whenAvailable" || o.FullDocumentBeforeChange == "required") {
		switch {
		case l.image != nil:
			b.AppendDocument("fullDocumentBeforeChange", l.image)
		case o.FullDocumentBeforeChange == "required":
			return nil, noImage("pre", l.ns)
		default:
			b.AppendNull("fullDocumentBeforeChange")
		}
	}
	return b.Build(), nil
}

func noImage(which string, ns namespace) error {
	return &Error{
		Code: mongoerror.NoMatchingDocument, Labels: []string{"NonResumableChangeStreamError"},
		Message: fmt.Sprintf("Change stream was configured to require a %s-image for all update, delete and replace events, but the %s-image was not found for an event of %s", which, which, ns),
	}
}

// fullDocument returns the document of an event, null when it should have one but it is not there, and a missing value when it has
// none.
func (r *eventMaker) fullDocument(ctx context.Context, l *logged) (bsoncore.Value, error) {
	none, null := bsoncore.Value{}, bsoncore.Value{Type: bsoncore.TypeNull}
	now := func() (bsoncore.Value, error) {
		doc, err := l.document()
		return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}, err
	}
	switch {
	case l.op == opInsert, l.op == opReplace:
		return now()
	case l.op == opDelete:
		return none, nil
	}
	switch r.stream.o.FullDocument {
	case "updateLookup":
		handle := &Collection{store: l.c.store, ns: l.ns}
		doc, err := handle.GetValueTo(ctx, nil, bson.RawValue{Type: bson.Type(l.id.Type), Value: l.id.Data})
		if err != nil {
			return null, nil
		}
		return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}, nil
	case "whenAvailable", "required":
		if l.c.settings.Load().images {
			return now()
		}
		if r.stream.o.FullDocument == "required" {
			return none, noImage("post", l.ns)
		}
		return null, nil
	}
	return none, nil
}

// loggedCommand is a change of the catalogue.
type loggedCommand struct {
	name string
	ns   namespace
	doc  document // the whole note
	what document // what only the oplog shows
}

// parse reads a change of the catalogue.
func (l *logged) parse() (*loggedCommand, error) {
	first, err := l.doc.IndexErr(0)
	if err != nil {
		return nil, fmt.Errorf("change %d: %w: a note that cannot be read", l.seq, pando.ErrCorrupt)
	}
	c := &loggedCommand{name: first.Key(), doc: l.doc}
	name, _ := first.Value().StringValueOK()
	db, _ := l.doc.Lookup("db").StringValueOK()
	if c.ns = (namespace{db, name}); db == "" {
		c.ns.database, c.ns.collection, _ = strings.Cut(name, ".")
	}
	c.what, _ = l.doc.Lookup(oplogField).DocumentOK()
	return c, nil
}

// uuid returns the UUID of the collection; nil if there is none.
func (c *loggedCommand) uuid() []byte {
	_, data, _ := c.what.Lookup("ui").BinaryOK()
	return data
}

// target returns the name that a collection is given.
func (c *loggedCommand) target() namespace {
	var to namespace
	name, _ := c.doc.Lookup("to").StringValueOK()
	to.database, to.collection, _ = strings.Cut(name, ".")
	return to
}

// command makes the events of a change of the catalogue.
func (r *eventMaker) command(ctx context.Context, l *logged) error {
	c, err := l.parse()
	if err != nil {
		return err
	}
	at := l.token()
	start := func(name string) *bsoncore.DocumentBuilder {
		b := l.start(at, name)
		if id := c.uuid(); id != nil && r.stream.o.ShowExpandedEvents {
			b.AppendBinary("collectionUUID", bson.TypeBinaryUUID, id)
		}
		return b.AppendDocument("ns", namespaceDocument(c.ns))
	}
	switch c.name {
	case "drop":
		if r.wants(l, c.ns) && (!c.ofView() || r.stream.o.ShowExpandedEvents) {
			return r.tell(ctx, l, start("drop").Build(), r.stream.ns.collection != "")
		}
	case "dropDatabase":
		if r.stream.ns.collection == "" && r.wants(l, c.ns) {
			return r.tell(ctx, l, start("dropDatabase").Build(), r.stream.ns.database != "")
		}
	case "renameCollection":
		to := c.target()
		if r.wants(l, c.ns) || r.wants(l, to) && (r.stream.ns.collection != "" || c.ns.database == to.database) { // as $out's does
			b := start("rename").AppendDocument("to", namespaceDocument(to))
			if r.stream.o.ShowExpandedEvents {
				b.AppendDocument("operationDescription", c.renamed(to))
			}
			return r.tell(ctx, l, b.Build(), r.stream.ns.collection != "")
		}
	default:
		names := map[string]string{"create": "create", "createIndexes": "createIndexes", "dropIndexes": "dropIndexes", "collMod": "modify"}
		if r.stream.o.ShowExpandedEvents && names[c.name] != "" && r.wants(l, c.ns) {
			return r.tell(ctx, l, c.describe(start(names[c.name])), false)
		}
	}
	return nil
}

// renamed is the description of a rename.
func (c *loggedCommand) renamed(to namespace) document {
	b := bsoncore.NewDocumentBuilder().AppendDocument("to", namespaceDocument(to))
	if _, target, ok := c.what.Lookup("dropTarget").BinaryOK(); ok {
		b.AppendBinary("dropTarget", bson.TypeBinaryUUID, target)
	}
	return b.Build()
}

// describe ends an event that a stream has only when it asks for it.
func (c *loggedCommand) describe(b *bsoncore.DocumentBuilder) document {
	d := bsoncore.NewDocumentBuilder()
	if c.name == "create" && len(c.what.Lookup("ui").Data) > 0 {
		d.AppendDocument("idIndex", idIndexSpec())
	}
	c.eachOption(func(e bsoncore.Element) { d.AppendValue(e.Key(), e.Value()) })
	b.AppendDocument("operationDescription", d.Build())
	if c.name == "collMod" {
		before := bsoncore.NewDocumentBuilder()
		for _, part := range [][2]string{{"collectionOptions_old", "collectionOptions"}, {"indexOptions_old", "indexOptions"}} {
			if v, err := c.what.LookupErr("o2", part[0]); err == nil {
				before.AppendValue(part[1], v)
			}
		}
		b.AppendDocument("stateBeforeChange", before.Build())
	}
	return b.Build()
}

// eachOption calls fn with what the command says about the collection.
func (c *loggedCommand) eachOption(fn func(e bsoncore.Element)) {
	for _, e := range elementsOf(c.doc)[1:] {
		switch e.Key() {
		case "db", oplogField, "to":
		case "options":
			options, _ := e.Value().DocumentOK()
			for _, o := range elementsOf(options) {
				fn(o)
			}
		default:
			fn(e)
		}
	}
}

// idIndexSpec is the index of _id, as listIndexes shows it.
func idIndexSpec() document {
	return bsoncore.NewDocumentBuilder().AppendInt32("v", 2).
		AppendDocument("key", bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).Build()).AppendString("name", "_id_").Build()
}

// tell sends an event, and the one that ends the stream behind it.
func (r *eventMaker) tell(ctx context.Context, l *logged, doc document, invalidates bool) error {
	st := r.stream
	if l.seq != st.told {
		if err := st.send(ctx, event{doc: doc, at: l.token()}); err != nil {
			return err
		}
	}
	if !invalidates {
		return nil
	}
	end := l.token()
	end.invalidate = true
	return errors.Join(st.send(ctx, event{doc: l.start(end, "invalidate").Build(), at: end, end: true}), errFeedEnded)
}
