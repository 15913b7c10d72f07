package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// writeConcern is what a client wants to be true of its write before it is acknowledged.
type writeConcern struct {
	given    bool
	none     bool // w: 0
	majority bool
	journal  bool
	members  int64 // w as a number
	spec     bsoncore.Document
}

// parseConcerns reads readConcern and writeConcern.
func (r *request) parseConcerns() error {
	if v, given := r.args["readConcern"]; given {
		var isDocument bool
		if r.readConcern, isDocument = v.DocumentOK(); !isDocument && r.command.name == "aggregate" && v.Type != bsoncore.TypeNull {
			return wrongType("aggregate.readConcern", v, "object")
		} else if !isDocument {
			return document.NewError(document.FailedToParse, "readConcern field should be an object")
		}
		if err := r.checkReadConcern(); err != nil {
			return err
		}
	}
	v, given := r.args["writeConcern"]
	if !given {
		return nil
	}
	spec, isDocument := v.DocumentOK()
	switch {
	case !isDocument:
		return wrongType(r.name+".writeConcern", v, "object")
	case !r.command.takesWriteConcern():
		return document.NewError(codeInvalidOptions, "Command does not support writeConcern")
	}
	return r.concern.parse(spec)
}

// takesWriteConcern reports whether a client may say what is to be true of what the command does: of what writes nothing, nothing is.
func (c *command) takesWriteConcern() bool {
	switch c.name {
	case "abortTransaction", "appendOplogNote", "setDefaultRWConcern", "setFeatureCompatibilityVersion", "setClusterParameter", "setUserWriteBlockMode":
		return true
	}
	return c.write
}

func (w *writeConcern) parse(spec bsoncore.Document) error {
	w.given, w.spec = true, spec
	for rest := spec[4 : len(spec)-1]; len(rest) > 0; {
		name, v, after, ok := cutElement(rest)
		if !ok {
			return document.NewError(document.FailedToParse, "a writeConcern that cannot be read")
		}
		rest = after
		switch string(name) {
		case "w":
			if tag, ok := v.StringValueOK(); ok {
				if w.majority = tag == "majority"; !w.majority {
					w.members = -1
				}
				continue
			}
			n, ok := asInt64(v)
			if !ok || n < 0 || n > 50 {
				return document.NewError(document.FailedToParse, "w has to be a non-negative number and not greater than 50; found: %s", v)
			}
			w.members, w.none = n, n == 0
		case "j", "fsync":
			on, err := asFlag("writeConcern."+string(name), v)
			if err != nil {
				return err
			}
			if w.journal && on {
				return document.NewError(document.FailedToParse, "fsync and j options cannot be used together")
			}
			w.journal = w.journal || on
		case "wtimeout", "provenance":
		default:
			return document.NewError(codeUnknownField, "BSON field 'writeConcern.%s' is an unknown field.", name)
		}
	}
	return nil
}

// awaitConcern waits until the write concern holds. In the durable profile everything that a write rests on has been synced by now: see
// awaitSeen. In the relaxed one "majority" and j: true wait for a sync.
func (r *request) awaitConcern() error {
	w := r.concernInForce()
	if w == nil {
		return nil
	}
	if (w.majority || w.journal) && !r.server.durable {
		if err := r.server.store.DB().Sync(); err != nil {
			return err
		}
	}
	r.missConcern()
	return nil
}

// syncOnce runs fn, which makes so many calls that may commit: their commits wait for one sync together. The command is acknowledged
// after that, and a client that sends it again is not told before of what it did.
func (r *request) syncOnce(calls int, fn func() error) error {
	own := r.ctx
	defer func() { r.ctx = own }()
	return r.server.store.SyncOnce(own, calls, func(ctx context.Context) error {
		r.ctx = ctx
		return fn()
	})
}

// awaitSeen waits until what the command has seen, and tells of, is durable: also what it did not write itself, but found done, by a
// command that may still be on its way to its one sync. Plain reads do not wait, as in MongoDB.
func (r *request) awaitSeen() error {
	switch {
	case r.synced, r.txn != nil && r.name != "commitTransaction": // the commit of a transaction waits for all that it has seen
		return nil
	case r.lasting, r.command.write && r.command.name != "aggregate", r.readsLasting():
		return r.server.store.SyncSeen()
	}
	return nil
}

// readsLasting reports whether the read concern promises that no power cut undoes what is read.
func (r *request) readsLasting() bool {
	spec := r.readConcern
	if spec == nil {
		spec = bsoncore.Document(r.server.defaults.current.Load().stored.Read)
	}
	if spec == nil { // of most: to look for something in vain costs an error
		return false
	}
	level, _ := spec.Lookup("level").StringValueOK()
	return level == "majority" || level == "linearizable" || level == "snapshot"
}

// concernInForce is the write concern of a write: its own, or the default that somebody has set; nil for none.
func (r *request) concernInForce() *writeConcern {
	switch {
	case !r.command.write || r.txn != nil && r.name != "commitTransaction", r.command.name == "aggregate" && !r.writesOut():
		return nil
	case r.concern.given:
		return &r.concern
	}
	return r.server.defaults.current.Load().write
}

// missConcern puts into the answer that a write concern cannot hold here, also when the command has failed, unless that was before
// it began.
func (r *request) missConcern() {
	w := r.concernInForce()
	switch {
	case w == nil:
	case w.members < 0:
		mode, _ := w.spec.Lookup("w").StringValueOK()
		r.concernErr = concernError(codeUnknownConcern, "No write concern mode named '"+mode+"' found in replica set configuration", w)
	case w.members > 1:
		r.concernErr = concernError(document.Code(100), "Not enough data-bearing nodes", w)
	}
}

// notBegun reports whether an error is of a command that says something wrong.
func notBegun(err error) bool {
	switch document.CodeOf(err) {
	case document.FailedToParse, document.TypeMismatch, codeMissingField, codeUnknownField:
		return true
	}
	return false
}

// concernError is the error of a write concern, with the concern as MongoDB shows it: drivers hand that on.
func concernError(code document.Code, text string, w *writeConcern) bsoncore.Document {
	shown, from := bsoncore.NewDocumentBuilder(), "clientSupplied"
	for _, e := range elementsOf(w.spec) {
		if e.Key() == "provenance" {
			from, _ = e.Value().StringValueOK()
			continue
		}
		shown.AppendValue(e.Key(), e.Value())
	}
	if w.spec.Lookup("wtimeout").Type == 0 {
		shown.AppendInt32("wtimeout", 0)
	}
	info := bsoncore.NewDocumentBuilder().AppendDocument("writeConcern", shown.AppendString("provenance", from).Build()).Build()
	return bsoncore.NewDocumentBuilder().AppendInt32("code", int32(code)).AppendString("codeName", code.String()).
		AppendString("errmsg", text).AppendDocument("errInfo", info).Build()
}
