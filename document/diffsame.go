package document

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/update"
)

// An update may count as a change and leave all as it was: $push does where $sort and $slice make of an array what it was before. As there
// is no difference, the diff then tells what was written, as MongoDB's does, which refuses an oplog's entry with an empty one.

// appendSame appends the values of a document's fields that an update has written again, and reports whether there are any.
func appendSame(dst []byte, doc document, t update.Targets) ([]byte, bool) {
	d := documentDiff{}
	for _, e := range elementsOf(doc) {
		diff, how := sameValue(e.Value(), t.Field(e.Key()))
		d.field(e.Key(), e.Value(), diff, how)
	}
	return d.appendTo(dst)
}

// sameValue tells what of a value was written again.
func sameValue(v bsoncore.Value, t update.Targets) (document, valueChange) {
	switch {
	case t.Rewrites():
		return nil, replaced
	case !t.Known() || t.Whole():
	case v.Type == bsoncore.TypeEmbeddedDocument:
		if diff, told := appendSame(nil, v.Document(), t); told {
			return diff, changed
		}
	case v.Type == bsoncore.TypeArray:
		return sameArray(elementsOf(document(v.Data)), t)
	}
	return nil, unchanged
}

// sameArray is sameValue for the elements of an array.
func sameArray(list []bsoncore.Element, t update.Targets) (document, valueChange) {
	b, told := bsoncore.NewDocumentBuilder().AppendBoolean(diffArray, true), 0
	for i, e := range list {
		element := t.Element(i)
		if t.Every() && !element.Known() {
			return nil, replaced // nobody knows which elements were written
		}
		diff, how := sameValue(e.Value(), element)
		if !tellElement(b, i, e.Value(), diff, how) {
			continue
		}
		if told++; told > 1 && t.Every() {
			return nil, replaced
		}
	}
	if told == 0 {
		return nil, unchanged
	}
	return b.Build(), changed
}
