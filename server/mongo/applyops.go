package mongo

import (
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

// ruleApplyOps asks for the privilege of the command, of everything that the entries do, and of reading what the conditions are about: whether
// they hold tells what is there.
func ruleApplyOps(r *request, g *grants) bool {
	if !g.allowsCluster("applyOps") {
		return false
	}
	for _, condition := range r.statementsOf("preCondition") {
		ns, _ := condition.Lookup("ns").StringValueOK()
		if db, name, _ := strings.Cut(ns, "."); !g.allows(db, name, "find") {
			return false
		}
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
