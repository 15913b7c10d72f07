package document

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Who follows references asks for documents by a list of _ids. That needs no plan either: bounds for each of them, and one search after
// the other, take longer than to read the records in the order of their keys, a few at a time.

const (
	// maxListed is how many _ids a list has that is answered so: their keys are kept until the end.
	maxListed = 4096
	// longList is how many of them take more than a batch, so that somebody may be slow to ask for the rest.
	longList = 128
)

// listedIDs returns the array of a query that is {_id: {$in: [...]}} and nothing else, in any order; nil: it is another one.
func listedIDs(spec document) bsoncore.Array {
	condition, ok := only(spec, "_id").DocumentOK()
	if !ok {
		return nil
	}
	list, _ := only(condition, "$in").ArrayOK()
	return list
}

// only returns the value of the one field that a document has, if that is its name; else the type is 0.
func only(doc document, field string) bsoncore.Value {
	if len(doc) <= len(emptyDocument()) {
		return bsoncore.Value{}
	}
	e, rest, ok := bsoncore.ReadElement(doc[4:])
	if !ok || len(rest) != 1 || string(e.KeyBytes()) != field {
		return bsoncore.Value{}
	}
	return e.Value()
}

// gather notes the keys of the records with the listed _ids, in their order and each once. It is not ok when there are many, or there
// is something among them that does not stand for itself.
func (d *direct) gather(list bsoncore.Array) (ok bool) {
	if len(list) <= len(emptyDocument()) {
		return false
	}
	sorted := true
	for rest := list[4:]; len(rest) > 1; {
		var e bsoncore.Element
		if e, rest, ok = bsoncore.ReadElement(rest); !ok || d.keys.Len() == maxListed || !isPlain(e.Value().Type) {
			return false
		}
		d.entry = d.x.key(d.entry[:0], e.Value())
		if n := d.keys.Len(); n > 0 && bytes.Compare(d.keys.At(n-1), d.entry) >= 0 {
			sorted = false
		}
		d.keys.Append(d.entry)
	}
	if !sorted {
		d.sort()
	}
	d.listed = true
	return true
}

// sort puts the keys in their order, each once.
func (d *direct) sort() {
	all := d.from(0)
	slices.SortFunc(all, bytes.Compare)
	d.keep(slices.CompactFunc(all, bytes.Equal))
}

// from returns the keys from one on, valid until the next call.
func (d *direct) from(first int) [][]byte {
	d.order = d.order[:0]
	for i := first; i < d.keys.Len(); i++ {
		d.order = append(d.order, d.keys.At(i))
	}
	return d.order
}

// keep makes keys, which are some of those that there are, the only ones.
func (d *direct) keep(keys [][]byte) {
	d.others.Reset()
	for _, key := range keys {
		d.others.Append(key)
	}
	d.keys, d.others = d.others, d.keys
}

// leaveOut forgets the keys from the next one on of which there is no record.
func (d *direct) leaveOut() error {
	all := d.from(d.at)
	absent := make([]bool, len(all))
	if err := d.reader.Absent(absent, d.x.records, all); err != nil {
		return err
	}
	there := all[:0]
	for i, key := range all {
		if !absent[i] {
			there = append(there, key)
		}
	}
	d.keep(there)
	d.at = 0
	return nil
}

// openListed opens the documents with the listed _ids; the cursor is nil when only a plan finds them.
func (d *direct) openListed(ctx context.Context, list bsoncore.Array) (*Cursor, error) {
	if !d.gather(list) {
		return nil, d.close()
	}
	err := d.reader.Open(d.x.store.db, d.x.records)
	if err == nil {
		err = d.fetch()
	}
	if err == nil && min(d.keys.Len(), d.left) > longList {
		d.hold()
	}
	return d.opened(ctx, err)
}
