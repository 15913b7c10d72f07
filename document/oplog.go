package document

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
)

// operation says to those who read the log what a change of it was. The numbers are in the log: never change them.
type operation byte

const (
	opInsert      operation = 'i'
	opUpdate      operation = 'v' // with its diff
	opReplace     operation = 'r'
	opDelete      operation = 'd'
	opCommand     operation = 'c' // of the catalogue: create, drop, rename, ...
	opNoop        operation = 'n'
	opImage       operation = 'p' // a piece of the document before the change that follows
	opDiff        operation = 'q' // a piece of the diff of the change that follows
	opTransaction operation = 't' // the commit, of which this is the first note, is a transaction
	opCommit      operation = 'e' // the moment of a transaction's commit
)

// maxNote is the longest note of the storage.
const maxNote = pando.MaxKeyBytes

// noteChange tells change streams and the oplog about a change, in the commit that makes it: a note of
//
//	operation (1), timestamp (8, big-endian), number of the collection (uvarint),
//	length of _id's value (uvarint), type of _id (1), value of _id, diff
//
// in the keyspace of the catalogue, which is never dropped. The document afterwards is the record itself, which stands before the
// note in the log. An update has the difference that it made; one that is too long for a note is in pieces in front, as is the
// document before, where the collection keeps pre-images.
func (w *writer) noteChange(c *collection, op operation, id bsoncore.Value, old, doc document) error {
	if !w.keepsHistory() || c.settings.Load().series != nil { // as MongoDB, which tells of buckets only
		return nil
	}
	if old != nil && c.settings.Load().images {
		if err := w.notePieces(opImage, old); err != nil {
			return err
		}
	}
	if op == opUpdate {
		if w.diff = appendDiff(w.diff[:0], old, doc, w.targets); !w.targets.Known() && len(w.diff) > len(doc) {
			op = opReplace // which says the same in less
		}
	}
	w.startNote(op)
	if op != opUpdate {
		return w.endNote(c, id)
	}
	w.appendTarget(c, id)
	return w.noteLong(w.diff)
}

// endNote ends the note of a document of which the log has all that there is to be told, and adds it to the commit.
func (w *writer) endNote(c *collection, id bsoncore.Value) error {
	w.appendTarget(c, id)
	return w.tx.In(w.store.meta).Note(w.note)
}

// appendTarget appends to a note which document it is about.
func (w *writer) appendTarget(c *collection, id bsoncore.Value) {
	w.note = binary.AppendUvarint(w.note, uint64(c.number))
	w.note = binary.AppendUvarint(w.note, uint64(len(id.Data)))
	w.note = append(w.note, byte(id.Type))
	w.note = append(w.note, id.Data...)
}

// keepsHistory reports whether changes are noted at all.
func (w *writer) keepsHistory() bool { return w.store.options.History >= 0 }

// notePieces adds notes with the pieces of something that belongs to the note that follows.
func (w *writer) notePieces(op operation, data []byte) error {
	for len(data) > 0 {
		n := min(len(data), maxNote-1)
		w.note = append(append(w.note[:0], byte(op)), data[:n]...)
		if err := w.tx.In(w.store.meta).Note(w.note); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// startNote begins a note with its operation and the time.
func (w *writer) startNote(op operation) { w.startNoteAt(op, w.store.timestamp()) }

// startNoteAt is startNote with a timestamp that was taken before.
func (w *writer) startNoteAt(op operation, time uint64) {
	w.note = append(w.note[:0], byte(op))
	w.note = binary.BigEndian.AppendUint64(w.note, time)
}

// noteCommand tells change streams and the oplog about a change of the catalogue: a note of the operation, the timestamp, and the
// command. what, if any, goes to the oplog besides: {ui, o2, ...}.
func (w *writer) noteCommand(command, what document) error {
	if w.store.options.History < 0 {
		return nil
	}
	if what != nil {
		command = append(document(nil), command[:len(command)-1]...)
		command = bsoncore.AppendDocumentElement(command, oplogField, what)
		command = append(command, 0)
		binary.LittleEndian.PutUint32(command, uint32(len(command)))
	}
	w.startNote(opCommand)
	return w.noteLong(command)
}

// noteCreate is noteCommand for a new collection.
func (w *writer) noteCreate(c *collection) error {
	ns := c.name.Load()
	command := bsoncore.NewDocumentBuilder().AppendString("create", ns.collection).AppendString("db", ns.database).
		AppendDocument("options", c.settings.Load().spec).Build()
	return w.noteCommand(command, c.aboutSelf().Build())
}

// oplogField is the field of a command's note that only the oplog shows.
const oplogField = "oplog"

// noteLong ends a note with a document that may be too long for it.
func (w *writer) noteLong(doc document) error {
	if len(w.note)+len(doc) > maxNote {
		head := append([]byte(nil), w.note...)
		if err := w.notePieces(opDiff, doc); err != nil {
			return err
		}
		w.note, doc = append(w.note[:0], head...), nil
	}
	w.note = append(w.note, doc...)
	return w.tx.In(w.store.meta).Note(w.note)
}

// noteTransaction says that the commit is a transaction, and whose.
func (w *writer) noteTransaction(s *statements) error {
	w.startNote(opTransaction)
	if s != nil {
		w.note = binary.AppendVarint(w.note, s.number)
		w.note = append(w.note, s.session...)
	}
	return w.tx.In(w.store.meta).Note(w.note)
}

// noteCommit says when a transaction commits.
func (w *writer) noteCommit() error {
	w.startNote(opCommit)
	return w.tx.In(w.store.meta).Note(w.note)
}

// aboutSelf is what the oplog shows of a command besides: the collection, and what o2 is.
func (c *collection) aboutSelf() *bsoncore.DocumentBuilder {
	return bsoncore.NewDocumentBuilder().AppendBinary("ui", c.uuid.Subtype, c.uuid.Data)
}

// aboutDrop is aboutSelf for a drop.
func (c *collection) aboutDrop() (document, error) {
	n, err := c.records.Count(nil, nil)
	return c.aboutSelf().AppendDocument("o2", numRecords(n)).Build(), err
}

// aboutRename is aboutSelf for a rename, in the place of another collection if there is one.
func (c *collection) aboutRename(other *collection) (document, error) {
	b := c.aboutSelf()
	if other == nil {
		return b.Build(), nil
	}
	n, err := other.records.Count(nil, nil)
	b.AppendDocument("o2", numRecords(n))
	return b.AppendBinary("dropTarget", other.uuid.Subtype, other.uuid.Data).Build(), err
}

// numRecords says how many records are dropped.
func numRecords(n int64) document {
	b := bsoncore.NewDocumentBuilder()
	if n == int64(int32(n)) {
		return b.AppendInt32("numRecords", int32(n)).Build()
	}
	return b.AppendInt64("numRecords", n).Build()
}

// aboutView is aboutSelf for a view.
func aboutView() document { return bsoncore.NewDocumentBuilder().AppendBoolean("view", true).Build() }

// aboutModify is aboutSelf for collMod: what was before.
func (c *collection) aboutModify(before document, index document) document {
	options := bsoncore.NewDocumentBuilder().AppendBinary("uuid", c.uuid.Subtype, c.uuid.Data)
	for _, e := range elementsOf(before) {
		options.AppendValue(e.Key(), e.Value())
	}
	o2 := bsoncore.NewDocumentBuilder().AppendDocument("collectionOptions_old", options.Build())
	if index != nil {
		o2.AppendDocument("indexOptions_old", index)
	}
	return c.aboutSelf().AppendDocument("o2", o2.Build()).Build()
}
