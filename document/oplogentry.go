package document

import (
	"context"
	"crypto/sha256"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// The entries of local.oplog.rs are those of MongoDB 7.0 as far as a store without a second member has them: op is i, u, d, c or n;
// o says what was done, and o2 to which document, or what was before; a transaction is one entry, {applyOps: [...]}, and a chain
// of them when it is large. There is one term, and no need of images for retries, as the store keeps what a retry answers.

// oplogTerm is the only term.
const oplogTerm = 1

// entryMaker makes entries of the oplog of what was committed.
type entryMaker struct {
	add      func(ctx context.Context, time uint64, entry document) error
	previous uint64 // the time of the entry before, of the same commit; 0: none
}

// take makes the entries of a commit.
func (m *entryMaker) take(ctx context.Context, c *committed) error {
	if c.first {
		m.previous = 0
	}
	if c.transaction {
		return m.transaction(ctx, c)
	}
	missing := len(c.changes) - len(c.statements)
	for i := range c.changes {
		l := &c.changes[i]
		op, err := l.entry()
		if err != nil {
			return err
		}
		if op == nil {
			continue
		}
		statement := int64(-1)
		if i >= missing {
			statement = c.statements[i-missing]
		}
		if err := m.finish(ctx, c, l, op, statement); err != nil {
			return err
		}
	}
	return nil
}

// finish adds to an operation what an entry has besides.
func (m *entryMaker) finish(ctx context.Context, c *committed, l *logged, op []byte, statement int64) error {
	at, dst := bsoncore.AppendDocumentStart(nil)
	lsid := sessionDocument(c.session)
	if lsid != nil {
		dst = bsoncore.AppendDocumentElement(dst, "lsid", lsid)
		dst = bsoncore.AppendInt64Element(dst, "txnNumber", c.number)
	}
	dst = append(dst, op...)
	if lsid != nil && statement >= 0 {
		dst = bsoncore.AppendInt32Element(dst, "stmtId", int32(statement))
	}
	dst = bsoncore.AppendTimestampElement(dst, "ts", uint32(l.time>>32), uint32(l.time))
	dst = bsoncore.AppendInt64Element(dst, "t", oplogTerm)
	dst = bsoncore.AppendInt64Element(dst, "v", 2)
	dst = bsoncore.AppendDateTimeElement(dst, "wall", int64(l.time>>32)*1000)
	if lsid != nil {
		term := int64(oplogTerm)
		if m.previous == 0 {
			term = -1
		}
		previous := bsoncore.NewDocumentBuilder().AppendTimestamp("ts", uint32(m.previous>>32), uint32(m.previous)).AppendInt64("t", term)
		dst = bsoncore.AppendDocumentElement(dst, "prevOpTime", previous.Build())
	}
	dst, err := bsoncore.AppendDocumentEnd(dst, at)
	if err != nil {
		return err
	}
	m.previous = l.time
	return m.add(ctx, l.time, dst)
}

// transaction makes the entry of a transaction, or of a part of it.
func (m *entryMaker) transaction(ctx context.Context, c *committed) error {
	list := bsoncore.NewArrayBuilder()
	n := 0
	for i := range c.changes {
		op, err := c.changes[i].entry()
		if err != nil {
			return err
		}
		if op != nil {
			at, doc := bsoncore.AppendDocumentStart(nil)
			doc, _ = bsoncore.AppendDocumentEnd(append(doc, op...), at) // which fails on a wrong place only
			list.AppendDocument(doc)
			n++
		}
	}
	if n == 0 && (c.first || !c.last) {
		return nil
	}
	o := bsoncore.NewDocumentBuilder().AppendArray("applyOps", list.Build())
	switch {
	case !c.last:
		o.AppendBoolean("partialTxn", true)
	case !c.first:
		o.AppendInt64("count", int64(c.count))
	}
	op := bsoncore.AppendStringElement(nil, "op", "c")
	op = bsoncore.AppendStringElement(op, "ns", "admin.$cmd")
	op = bsoncore.AppendDocumentElement(op, "o", o.Build())
	return m.finish(ctx, c, &logged{seq: c.seq, time: c.time}, op, -1)
}

// entry returns the elements of an entry that say what was done; nil when the oplog does not tell of it.
func (l *logged) entry() ([]byte, error) {
	switch l.op {
	case opNoop:
		dst := bsoncore.AppendStringElement(nil, "op", "n")
		dst = bsoncore.AppendStringElement(dst, "ns", "")
		return bsoncore.AppendDocumentElement(dst, "o", l.doc), nil
	case opCommand:
		return l.commandEntry()
	}
	if !logsWrites(l.ns) {
		return nil, nil
	}
	key := bsoncore.NewDocumentBuilder().AppendValue("_id", l.id).Build()
	var o document
	op := string(rune(l.op))
	switch l.op {
	case opDelete:
		return appendOperation(op, l.ns.String(), l.c.uuid.Data, key, nil), nil
	case opUpdate:
		op, o = "u", bsoncore.NewDocumentBuilder().AppendInt32("$v", 2).AppendDocument("diff", l.doc).Build()
	default:
		if l.op == opReplace {
			op = "u"
		}
		var err error
		if o, err = l.document(); err != nil {
			return nil, err
		}
	}
	return appendOperation(op, l.ns.String(), l.c.uuid.Data, o, key), nil
}

// logsWrites reports whether writes to a collection are in the oplog.
func logsWrites(ns namespace) bool {
	return ns.database != "local" && ns.collection != "system.profile"
}

// appendOperation makes the elements of an entry; uuid and o2 may be nil.
func appendOperation(op, ns string, uuid []byte, o, o2 document) []byte {
	dst := bsoncore.AppendStringElement(nil, "op", op)
	dst = bsoncore.AppendStringElement(dst, "ns", ns)
	if uuid != nil {
		dst = bsoncore.AppendBinaryElement(dst, "ui", bson.TypeBinaryUUID, uuid)
	}
	dst = bsoncore.AppendDocumentElement(dst, "o", o)
	if o2 != nil {
		dst = bsoncore.AppendDocumentElement(dst, "o2", o2)
	}
	return dst
}

// commandEntry is entry for a change of the catalogue.
func (l *logged) commandEntry() ([]byte, error) {
	c, err := l.parse()
	if err != nil || !logsWrites(c.ns) {
		return nil, err
	}
	if c.ofView() {
		return c.viewEntry(), nil
	}
	o := bsoncore.NewDocumentBuilder()
	switch c.name {
	case "dropDatabase":
		o.AppendInt32("dropDatabase", 1)
	case "renameCollection":
		o.AppendString("renameCollection", c.ns.String()).AppendString("to", c.target().String()).AppendBoolean("stayTemp", false)
		if _, target, ok := c.what.Lookup("dropTarget").BinaryOK(); ok {
			o.AppendBinary("dropTarget", bson.TypeBinaryUUID, target)
		}
	default:
		o.AppendString(c.name, c.ns.collection)
		l.options(c, o)
	}
	o2, _ := c.what.Lookup("o2").DocumentOK()
	if c.name == "dropIndexes" {
		o2, _ = c.doc.Lookup("indexes", "0").DocumentOK()
	}
	return appendOperation("c", c.ns.database+".$cmd", c.uuid(), o.Build(), o2), nil
}

// options adds to a command what it says about the collection.
func (l *logged) options(c *loggedCommand, o *bsoncore.DocumentBuilder) {
	spec, _ := c.doc.Lookup("indexes", "0").DocumentOK()
	switch c.name {
	case "createIndexes":
		for _, e := range elementsOf(spec) {
			o.AppendValue(e.Key(), e.Value())
		}
	case "dropIndexes":
		o.AppendValue("index", spec.Lookup("name"))
	default:
		c.eachOption(func(e bsoncore.Element) { o.AppendValue(e.Key(), e.Value()) })
		if c.name == "create" {
			o.AppendDocument("idIndex", idIndexSpec())
		}
	}
}

// ofView reports whether the command is about a view.
func (c *loggedCommand) ofView() bool {
	_, err := c.what.LookupErr("view")
	return err == nil
}

// viewEntry is the entry of a change of a view: of a document in system.views.
func (c *loggedCommand) viewEntry() []byte {
	id := bsoncore.NewDocumentBuilder().AppendString("_id", c.ns.String())
	key := id.Build()
	ns := c.ns.database + ".system.views"
	if c.name == "drop" {
		return appendOperation("d", ns, nil, key, nil)
	}
	doc := bsoncore.NewDocumentBuilder().AppendString("_id", c.ns.String())
	c.eachOption(func(e bsoncore.Element) { doc.AppendValue(e.Key(), e.Value()) })
	if c.name == "create" {
		return appendOperation("i", ns, nil, doc.Build(), key)
	}
	return appendOperation("u", ns, nil, doc.Build(), key)
}

// sessionDocument is a session as clients have it: {id: UUID, uid: digest of the user}. It is nil when the name of the session is
// not one of theirs.
func sessionDocument(session string) document {
	if len(session) < 16 {
		return nil
	}
	user := []byte(session[16:])
	if len(user) != sha256.Size {
		digest := sha256.Sum256(user)
		user = digest[:]
	}
	return bsoncore.NewDocumentBuilder().AppendBinary("id", bson.TypeBinaryUUID, []byte(session[:16])).
		AppendBinary("uid", bson.TypeBinaryGeneric, user).Build()
}
