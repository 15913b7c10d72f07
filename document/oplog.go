package document

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
)

// operation says to change streams what a change of the log was. The numbers are in the log: never change them.
type operation byte

const (
	opInsert  operation = 'i'
	opUpdate  operation = 'u'
	opReplace operation = 'r'
	opDelete  operation = 'd'
	opCommand operation = 'c' // of the catalogue: create, drop, rename, ...
	opImage   operation = 'p' // a piece of the document before the change that follows
)

// maxNote is the longest note of the storage.
const maxNote = pando.MaxKeyBytes

// noteChange tells change streams about a change, in the commit that makes it: a note of
//
//	operation (1), timestamp (8, big-endian), length of _id's value (uvarint), type of _id (1), value of _id, description
//
// in the keyspace of the records. The document afterwards is the record itself, which stands before the note in the log. The
// description of an update is the difference that it made. Where the collection keeps pre-images, notes with the pieces of the
// document before stand in front.
func (w *writer) noteChange(c *collection, op operation, id bsoncore.Value, old, doc document) error {
	if w.store.options.History < 0 {
		return nil
	}
	ks := w.tx.In(c.records)
	if old != nil && c.settings.Load().images {
		for rest := old; len(rest) > 0; {
			n := min(len(rest), maxNote-1)
			w.note = append(append(w.note[:0], byte(opImage)), rest[:n]...)
			if err := ks.Note(w.note); err != nil {
				return err
			}
			rest = rest[n:]
		}
	}
	w.note = append(w.note[:0], byte(op))
	w.note = binary.BigEndian.AppendUint64(w.note, w.store.timestamp())
	w.note = binary.AppendUvarint(w.note, uint64(len(id.Data)))
	w.note = append(w.note, byte(id.Type))
	w.note = append(w.note, id.Data...)
	if op == opUpdate {
		before := len(w.note)
		w.note = appendDifference(w.note, old, doc)
		if len(w.note) > maxNote { // then the stream compares the documents it has
			w.note = append(w.note[:before], emptyDocument()...)
			w.note[0] = byte(opReplace)
		}
	}
	return ks.Note(w.note)
}

// noteCommand tells change streams about a change of the catalogue: a note of the operation, the timestamp, and the command.
func (w *writer) noteCommand(command document) error {
	if w.store.options.History < 0 {
		return nil
	}
	w.note = append(w.note[:0], byte(opCommand))
	w.note = binary.BigEndian.AppendUint64(w.note, w.store.timestamp())
	w.note = append(w.note, command...)
	return w.tx.In(w.store.meta).Note(w.note)
}
