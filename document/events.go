package document

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// logReader makes the events of a change stream of the changes in the storage's log.
type logReader struct {
	stream *stream
	ctx    context.Context
	stored []byte // the record that was stored last: a note about it follows
	image  []byte // the pieces of the document before, so far
	time   uint64 // of the newest event: they do not go back, whatever concurrent commits say
	done   bool   // the stream is invalid
}

// take looks at one change.
func (r *logReader) take(c pando.Change) error {
	rest, ours := strings.CutPrefix(c.Keyspace, metaKeyspace)
	if !ours || c.Kind != pando.ChangePut && c.Kind != pando.ChangeNote {
		return r.pass(c)
	}
	if c.Kind == pando.ChangePut {
		if strings.Count(rest, "/") == 1 {
			r.stored = append(r.stored[:0], c.Value...)
		}
		return r.pass(c)
	}
	if len(c.Value) == 0 {
		return fmt.Errorf("change %d: %w: an empty note", c.Seq, pando.ErrCorrupt)
	}
	op, note := operation(c.Value[0]), c.Value[1:]
	switch {
	case op == opImage:
		r.image = append(r.image, note...)
		return nil
	case len(note) < 8:
		return fmt.Errorf("change %d: %w: a note of %d bytes", c.Seq, pando.ErrCorrupt, len(note))
	}
	r.time = max(r.time, binary.BigEndian.Uint64(note))
	var err error
	if op == opCommand {
		err = r.command(c.Seq, document(note[8:]))
	} else {
		err = r.change(c.Seq, rest, op, note[8:])
	}
	r.image = r.image[:0]
	return err
}

// pass notes that the stream has come this far, when that costs no waiting.
func (r *logReader) pass(c pando.Change) error {
	if c.Last {
		select {
		case r.stream.events <- event{at: token{seq: c.Seq}}:
		default:
		}
	}
	return nil
}

// wants reports whether the stream tells about a collection.
func (r *logReader) wants(ns namespace) bool {
	st := r.stream
	switch {
	case r.time < st.after:
		return false
	case st.ns.database == "":
		return ns.database != "admin" && ns.database != "config" && ns.database != "local"
	case st.ns.collection == "":
		return ns.database == st.ns.database && !strings.HasPrefix(ns.collection, "tmp.agg_out.")
	}
	return ns == st.ns
}

// change makes the event of a changed document.
func (r *logReader) change(seq uint64, keyspace string, op operation, note []byte) error {
	number, err := strconv.ParseUint(strings.TrimPrefix(keyspace, "/"), 10, 32)
	length, n := binary.Uvarint(note)
	if err != nil || n <= 0 || length > uint64(len(note)-n-1) {
		return fmt.Errorf("change %d: %w: a note that cannot be read", seq, pando.ErrCorrupt)
	}
	c := r.stream.store.current.Load().byNumber[uint32(number)]
	if c == nil {
		return fmt.Errorf("change %d is of a collection that was dropped: %w", seq, pando.ErrChangesGone)
	}
	ns := *c.name.Load()
	if !r.wants(ns) || seq == r.stream.told {
		return nil
	}
	id := bsoncore.Value{Type: bsoncore.Type(note[n]), Data: note[n+1 : n+1+int(length)]}
	e, err := r.describe(seq, c, ns, op, id, note[n+1+int(length):])
	if err != nil {
		return err
	}
	r.stream.send(r.ctx, event{doc: e, at: token{seq: seq}})
	return nil
}

// start begins an event.
func (r *logReader) start(at token, operationType string) *bsoncore.DocumentBuilder {
	return bsoncore.NewDocumentBuilder().AppendDocument("_id", at.document()).AppendString("operationType", operationType).
		AppendTimestamp("clusterTime", uint32(r.time>>32), uint32(r.time)).AppendDateTime("wallTime", int64(r.time>>32)*1000)
}

func namespaceDocument(ns namespace) document {
	b := bsoncore.NewDocumentBuilder().AppendString("db", ns.database)
	if ns.collection != "" {
		b.AppendString("coll", ns.collection)
	}
	return b.Build()
}

// describe makes the event itself.
func (r *logReader) describe(seq uint64, c *collection, ns namespace, op operation, id bsoncore.Value, rest []byte) (document, error) {
	names := map[operation]string{opInsert: "insert", opUpdate: "update", opReplace: "replace", opDelete: "delete"}
	if names[op] == "" {
		return nil, fmt.Errorf("change %d: %w: a note of unknown kind %q", seq, pando.ErrCorrupt, byte(op))
	}
	b := r.start(token{seq: seq}, names[op])
	o := r.stream.o
	if o.ShowExpandedEvents {
		b.AppendBinary("collectionUUID", c.uuid.Subtype, c.uuid.Data)
	}
	full, err := r.fullDocument(c, ns, op, id)
	if err != nil {
		return nil, err
	}
	if full.Type != 0 {
		b.AppendValue("fullDocument", full)
	}
	b.AppendDocument("ns", namespaceDocument(ns))
	b.AppendDocument("documentKey", bsoncore.NewDocumentBuilder().AppendValue("_id", id).Build())
	if op == opUpdate {
		b.AppendDocument("updateDescription", described(rest, o.ShowExpandedEvents))
	}
	if op != opInsert && (o.FullDocumentBeforeChange == "whenAvailable" || o.FullDocumentBeforeChange == "required") {
		switch {
		case len(r.image) > 0:
			b.AppendDocument("fullDocumentBeforeChange", r.image)
		case o.FullDocumentBeforeChange == "required":
			return nil, noImage("pre", ns)
		default:
			b.AppendNull("fullDocumentBeforeChange")
		}
	}
	return b.Build(), nil
}

// described is the description of an update as a stream tells it: with disambiguatedPaths only when it asks for more.
func described(difference document, expanded bool) document {
	if expanded {
		return difference
	}
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(difference) {
		if e.Key() != disambiguatedPaths {
			b.AppendValue(e.Key(), e.Value())
		}
	}
	return b.Build()
}

func noImage(which string, ns namespace) error {
	return &Error{
		Code: mongoerror.NoMatchingDocument, Labels: []string{"NonResumableChangeStreamError"},
		Message: fmt.Sprintf("Change stream was configured to require a %s-image for all update, delete and replace events, but the %s-image was not found for an event of %s", which, which, ns),
	}
}

// fullDocument returns the document of an event, null when it should have one but it is not there, and a missing value when it has
// none.
func (r *logReader) fullDocument(c *collection, ns namespace, op operation, id bsoncore.Value) (bsoncore.Value, error) {
	none, null := bsoncore.Value{}, bsoncore.Value{Type: bsoncore.TypeNull}
	now := func() (bsoncore.Value, error) {
		doc, err := c.codec.Decode(nil, r.stored)
		return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}, err
	}
	switch {
	case op == opInsert, op == opReplace:
		return now()
	case op == opDelete:
		return none, nil
	}
	switch r.stream.o.FullDocument {
	case "updateLookup":
		handle := &Collection{store: c.store, ns: ns}
		doc, err := handle.GetValueTo(r.ctx, nil, bson.RawValue{Type: bson.Type(id.Type), Value: id.Data})
		if err != nil {
			return null, nil
		}
		return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}, nil
	case "whenAvailable", "required":
		if c.settings.Load().images {
			return now()
		}
		if r.stream.o.FullDocument == "required" {
			return none, noImage("post", ns)
		}
		return null, nil
	}
	return none, nil
}

// command makes the events of a change of the catalogue.
func (r *logReader) command(seq uint64, c document) error {
	first, err := c.IndexErr(0)
	if err != nil {
		return fmt.Errorf("change %d: %w: a note that cannot be read", seq, pando.ErrCorrupt)
	}
	name, _ := first.Value().StringValueOK()
	db, _ := c.Lookup("db").StringValueOK()
	ns := namespace{db, name}
	if ns.database == "" {
		ns.database, ns.collection, _ = strings.Cut(name, ".")
	}
	at := token{seq: seq}
	switch first.Key() {
	case "drop":
		if r.wants(ns) {
			r.tell(at, r.start(at, "drop").AppendDocument("ns", namespaceDocument(ns)).Build(), r.stream.ns.collection != "")
		}
	case "dropDatabase":
		ns = namespace{database: name}
		if r.stream.ns.collection == "" && r.wants(ns) {
			r.tell(at, r.start(at, "dropDatabase").AppendDocument("ns", namespaceDocument(ns)).Build(), r.stream.ns.database != "")
		}
	case "renameCollection":
		to := namespace{}
		target, _ := c.Lookup("to").StringValueOK()
		to.database, to.collection, _ = strings.Cut(target, ".")
		if r.wants(ns) || r.wants(to) && r.stream.ns.collection != "" {
			b := r.start(at, "rename").AppendDocument("ns", namespaceDocument(ns)).AppendDocument("to", namespaceDocument(to))
			if r.stream.o.ShowExpandedEvents {
				b.AppendDocument("operationDescription", bsoncore.NewDocumentBuilder().AppendDocument("to", namespaceDocument(to)).Build())
			}
			r.tell(at, b.Build(), r.stream.ns.collection != "")
		}
	default:
		r.expanded(at, first.Key(), ns, c)
	}
	return nil
}

// expanded tells the events that a stream has only when it asks for them.
func (r *logReader) expanded(at token, command string, ns namespace, c document) {
	names := map[string]string{"create": "create", "createIndexes": "createIndexes", "dropIndexes": "dropIndexes", "collMod": "modify"}
	if !r.stream.o.ShowExpandedEvents || names[command] == "" || !r.wants(ns) {
		return
	}
	description := bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(c)[1:] {
		if e.Key() != "db" {
			description.AppendValue(e.Key(), e.Value())
		}
	}
	b := r.start(at, names[command]).AppendDocument("ns", namespaceDocument(ns)).AppendDocument("operationDescription", description.Build())
	r.tell(at, b.Build(), false)
}

// tell sends an event, and the one that ends the stream behind it.
func (r *logReader) tell(at token, doc document, invalidates bool) {
	st := r.stream
	st.send(r.ctx, event{doc: doc, at: at})
	if invalidates {
		end := token{seq: at.seq, invalidate: true}
		st.send(r.ctx, event{doc: r.start(end, "invalidate").Build(), at: end, end: true})
		r.done = true
	}
}
