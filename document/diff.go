package document

import (
	"bytes"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/update"
)

// The log tells of an update what it changed, in the shape that MongoDB's oplog has since version 5.0. The diff of a document has
//
//	d: {field: false}            fields that are gone
//	u: {field: value}            fields with another value
//	i: {field: value}            fields that are new; they are at the end of the document, in this order
//	s<field>: diff               what changed within a field
//
// and that of an array
//
//	a: true, l: length           l only if it became shorter
//	u<position>: value           elements that are new or other
//	s<position>: diff            what changed within an element
//
// What operators wrote as one is told as one, as MongoDB does: clients look for the fields that they named. Of other updates the diff
// is as deep as makes it small.

// Names in diffs.
const (
	diffRemoved  = "d"
	diffUpdated  = "u"
	diffInserted = "i"
	diffWithin   = 's' // begins a name
	diffElement  = 'u' // begins a name
	diffArray    = "a"
	diffLength   = "l"
)

// appendDiff appends what makes doc of old, an update of some targets.
func appendDiff(dst []byte, old, doc document, t update.Targets) []byte {
	start := len(dst)
	dst, differ := appendDocumentDiff(dst, old, doc, t)
	if !differ {
		dst, _ = appendSame(dst[:start], doc, t)
	}
	return dst
}

// appendDocumentDiff appends the diff of two documents, and reports whether they differ.
func appendDocumentDiff(dst []byte, old, doc document, t update.Targets) ([]byte, bool) {
	if sameFields(old, doc) {
		return appendSideBySide(dst, old, doc, t)
	}
	return appendAnyDiff(dst, old, doc, t)
}

// sameFields reports whether two documents have the same fields in the same order, as those before and after most updates have. It is
// asked before anything is compared, so that no part of a document is compared twice.
func sameFields(old, doc document) bool {
	was, now := path.ElementsOf(old), path.ElementsOf(doc)
	for {
		a, _, more := was.Next()
		b, _, both := now.Next()
		if more != both || !bytes.Equal(a, b) {
			return false
		}
		if !more {
			return true
		}
	}
}

// appendSideBySide is appendDocumentDiff for documents with the same fields in the same order: none has to be looked for.
func appendSideBySide(dst []byte, old, doc document, t update.Targets) (out []byte, differ bool) {
	was, now := path.ElementsOf(old), path.ElementsOf(doc)
	at, out := bsoncore.AppendDocumentStart(dst)
	updated, within := int32(-1), []byte(nil)
	for {
		name, from, more := was.Next()
		if !more {
			break
		}
		_, to, _ := now.Next()
		if from.Type == to.Type && bytes.Equal(from.Data, to.Data) {
			continue // before its name is looked up
		}
		switch diff, how := valueDiff(from, to, t.Field(string(name))); how {
		case replaced:
			if updated < 0 {
				out = bsoncore.AppendHeader(out, bsoncore.TypeEmbeddedDocument, diffUpdated)
				updated, out = bsoncore.AppendDocumentStart(out)
			}
			out = append(append(append(out, byte(to.Type)), name...), 0)
			out = append(out, to.Data...)
		case changed:
			within = bsoncore.AppendDocumentElement(within, string(diffWithin)+string(name), diff)
		}
	}
	if updated >= 0 {
		out, _ = bsoncore.AppendDocumentEnd(out, updated) // which fails on a wrong place only
	}
	out = append(out, within...)
	out, _ = bsoncore.AppendDocumentEnd(out, at)
	return out, updated >= 0 || within != nil
}

// documentDiff collects the elements of the parts of a diff.
type documentDiff struct{ removed, updated, inserted, within []byte }

// appendAnyDiff is appendDocumentDiff for documents of which nothing is known.
func appendAnyDiff(dst []byte, old, doc document, t update.Targets) ([]byte, bool) {
	d := documentDiff{}
	was, now := fieldsOf(old), fieldsOf(doc)
	for _, e := range was.list {
		if now.position(e.Key()) < 0 {
			d.removed = bsoncore.AppendBooleanElement(d.removed, e.Key(), false)
		}
	}
	last := -1 // position, in the old document, of the newest field that has kept its place
	for _, e := range now.list {
		at := was.position(e.Key())
		if at < 0 || at < last || d.inserted != nil {
			d.inserted = bsoncore.AppendValueElement(d.inserted, e.Key(), e.Value())
			continue
		}
		last = at
		d.value(e.Key(), was.list[at].Value(), e.Value(), t)
	}
	return d.appendTo(dst)
}

// appendTo appends the diff, and reports whether there is anything in it.
func (d *documentDiff) appendTo(dst []byte) ([]byte, bool) {
	at, dst := bsoncore.AppendDocumentStart(dst)
	for _, part := range []struct {
		name     string
		elements []byte
	}{{diffRemoved, d.removed}, {diffUpdated, d.updated}, {diffInserted, d.inserted}} {
		if part.elements != nil {
			dst = appendNested(dst, part.name, part.elements)
		}
	}
	dst = append(dst, d.within...)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at) // which fails on a wrong place only
	return dst, d.removed != nil || d.updated != nil || d.inserted != nil || d.within != nil
}

// value compares two values of a field of a document with targets.
func (d *documentDiff) value(name string, old, now bsoncore.Value, t update.Targets) {
	diff, how := valueDiff(old, now, t.Field(name))
	d.field(name, now, diff, how)
}

// field tells what became of a field.
func (d *documentDiff) field(name string, now bsoncore.Value, diff document, how valueChange) {
	switch how {
	case replaced:
		d.updated = bsoncore.AppendValueElement(d.updated, name, now)
	case changed:
		d.within = bsoncore.AppendDocumentElement(d.within, string(diffWithin)+name, diff)
	case unchanged:
	}
}

// What became of a value.
type valueChange uint8

const (
	unchanged valueChange = iota
	changed               // within
	replaced
)

// valueDiff compares two values. A diff that is no smaller than the new value is not worth it, unless it is what was asked for.
func valueDiff(old, now bsoncore.Value, t update.Targets) (document, valueChange) {
	switch {
	case old.Type == now.Type && bytes.Equal(old.Data, now.Data):
		return nil, unchanged
	case old.Type != now.Type, t.Whole() && !t.Appends():
	case old.Type == bsoncore.TypeEmbeddedDocument:
		if diff, differ := appendDocumentDiff(nil, old.Document(), now.Document(), t); differ && (t.Known() || len(diff) <= len(now.Data)) {
			return diff, changed
		}
	case old.Type == bsoncore.TypeArray:
		if diff := arrayDiff(elementsOf(document(old.Data)), elementsOf(document(now.Data)), t); diff != nil && (t.Known() || len(diff) <= len(now.Data)) {
			return diff, changed
		}
	}
	return nil, replaced
}

// arrayDiff compares element by element. An array that got shorter is cut off. nil: the array is told as a whole.
func arrayDiff(old, now []bsoncore.Element, t update.Targets) document {
	if (len(old) == 0 || len(now) == 0) && (!t.Known() || t.Whole()) || t.Appends() && len(now) <= len(old) {
		return nil
	}
	b := bsoncore.NewDocumentBuilder().AppendBoolean(diffArray, true)
	if len(now) < len(old) {
		b.AppendInt32(diffLength, int32(len(now)))
	}
	differ := 0
	for i, e := range now {
		element := t.Element(i)
		diff, how := document(nil), replaced
		if i < len(old) {
			diff, how = valueDiff(old[i].Value(), e.Value(), element)
		} else if t.Known() && !t.Whole() && !element.Known() && e.Value().Type == bsoncore.TypeNull {
			continue // it makes room for an element behind it, which says as much
		}
		if !tellElement(b, i, e.Value(), diff, how) {
			continue
		}
		if differ++; i < len(old) && t.Appends() || differ > 1 && t.Every() {
			return nil
		}
	}
	return b.Build()
}

// tellElement adds what became of an element to the diff of an array, and reports whether that is anything.
func tellElement(b *bsoncore.DocumentBuilder, i int, now bsoncore.Value, diff document, how valueChange) bool {
	switch how {
	case replaced:
		b.AppendValue(string(diffElement)+strconv.Itoa(i), now)
	case changed:
		b.AppendDocument(string(diffWithin)+strconv.Itoa(i), diff)
	case unchanged:
		return false
	}
	return true
}

// appendNested appends a document made of elements.
func appendNested(dst []byte, name string, elements []byte) []byte {
	return appendNestedAs(dst, bsoncore.TypeEmbeddedDocument, name, elements)
}

// appendNestedAs appends a document or array made of elements.
func appendNestedAs(dst []byte, t bsoncore.Type, name string, elements []byte) []byte {
	dst = bsoncore.AppendHeader(dst, t, name)
	at, dst := bsoncore.AppendDocumentStart(dst)
	dst = append(dst, elements...)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// elementsOf returns the elements of a document that is known to be well formed.
func elementsOf(doc document) []bsoncore.Element {
	elements, err := doc.Elements()
	if err != nil {
		return nil
	}
	return elements
}

// fields is the elements of a document, and where each name is first.
type fields struct {
	list   []bsoncore.Element
	places map[string]int // of names, when there are many
}

// fewFields is up to how many fields are looked at one by one.
const fewFields = 16

func fieldsOf(doc document) fields {
	f := fields{list: elementsOf(doc)}
	if len(f.list) > fewFields {
		f.places = make(map[string]int, len(f.list))
		for i, e := range slices.Backward(f.list) {
			f.places[e.Key()] = i
		}
	}
	return f
}

// position returns where a field is, or -1.
func (f *fields) position(name string) int {
	if f.places != nil {
		if i, ok := f.places[name]; ok {
			return i
		}
		return -1
	}
	for i, e := range f.list {
		if e.Key() == name {
			return i
		}
	}
	return -1
}
