package document

import (
	"bytes"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// appendDifference appends what an update did, as a change stream describes it: {updatedFields, removedFields, truncatedArrays}.
func appendDifference(dst []byte, old, doc document) []byte {
	d := difference{}
	d.documents("", old, doc)
	at, dst := bsoncore.AppendDocumentStart(dst)
	dst = appendNested(dst, "updatedFields", d.updated, false)
	dst = appendNested(dst, "removedFields", d.removed, true)
	dst = appendNested(dst, "truncatedArrays", d.truncated, true)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at) // which fails on a wrong place only
	return dst
}

// appendNested appends a document or array made of elements.
func appendNested(dst []byte, name string, elements []byte, array bool) []byte {
	t := bsoncore.TypeEmbeddedDocument
	if array {
		t = bsoncore.TypeArray
	}
	dst = bsoncore.AppendHeader(dst, t, name)
	at, dst := bsoncore.AppendDocumentStart(dst)
	dst = append(dst, elements...)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// difference collects elements.
type difference struct {
	updated, removed, truncated []byte
	removals, truncations       int
}

// documents compares two documents at a path.
func (d *difference) documents(prefix string, old, doc document) {
	was := elementsOf(old)
	now := elementsOf(doc)
	for _, e := range was {
		if find(now, e.Key()) == nil {
			d.removed = bsoncore.AppendStringElement(d.removed, strconv.Itoa(d.removals), prefix+e.Key())
			d.removals++
		}
	}
	for _, e := range now {
		before := find(was, e.Key())
		if before == nil {
			d.updated = bsoncore.AppendValueElement(d.updated, prefix+e.Key(), e.Value())
			continue
		}
		d.values(prefix+e.Key(), before.Value(), e.Value())
	}
}

// values compares two values at a path.
func (d *difference) values(path string, old, now bsoncore.Value) {
	if old.Type == now.Type && bytes.Equal(old.Data, now.Data) {
		return
	}
	switch {
	case old.Type == bsoncore.TypeEmbeddedDocument && now.Type == bsoncore.TypeEmbeddedDocument:
		before := len(d.updated) + len(d.removed)
		d.documents(path+".", old.Document(), now.Document())
		if len(d.updated)+len(d.removed) == before { // only the order of the fields differs
			d.updated = bsoncore.AppendValueElement(d.updated, path, now)
		}
	case old.Type == bsoncore.TypeArray && now.Type == bsoncore.TypeArray:
		d.arrays(path, elementsOf(document(old.Data)), elementsOf(document(now.Data)), now)
	default:
		d.updated = bsoncore.AppendValueElement(d.updated, path, now)
	}
}

// arrays compares element by element. An array that got shorter is truncated.
func (d *difference) arrays(path string, old, now []bsoncore.Element, whole bsoncore.Value) {
	if len(now) == 0 || len(old) == 0 {
		d.updated = bsoncore.AppendValueElement(d.updated, path, whole)
		return
	}
	if len(now) < len(old) {
		e := bsoncore.NewDocumentBuilder().AppendString("field", path).AppendInt32("newSize", int32(len(now))).Build()
		d.truncated = bsoncore.AppendDocumentElement(d.truncated, strconv.Itoa(d.truncations), e)
		d.truncations++
	}
	for i, e := range now {
		at := path + "." + strconv.Itoa(i)
		if i >= len(old) {
			d.updated = bsoncore.AppendValueElement(d.updated, at, e.Value())
			continue
		}
		d.values(at, old[i].Value(), e.Value())
	}
}

// elementsOf returns the elements of a document that is known to be well formed.
func elementsOf(doc document) []bsoncore.Element {
	elements, err := doc.Elements()
	if err != nil {
		return nil
	}
	return elements
}

func find(elements []bsoncore.Element, name string) bsoncore.Element {
	for _, e := range elements {
		if e.Key() == name {
			return e
		}
	}
	return nil
}
