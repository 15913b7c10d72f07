package document

import (
	"bytes"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// appendDifference appends what an update did, as a change stream describes it: {updatedFields, removedFields, truncatedArrays}, and
// disambiguatedPaths where a path alone does not say whether its numbers are positions, or its dots parts of names.
func appendDifference(dst []byte, old, doc document) []byte {
	d := difference{}
	d.documents(fieldPath{}, old, doc)
	at, dst := bsoncore.AppendDocumentStart(dst)
	dst = appendNested(dst, "updatedFields", d.updated, false)
	dst = appendNested(dst, "removedFields", d.removed, true)
	dst = appendNested(dst, "truncatedArrays", d.truncated, true)
	if len(d.ambiguous) > 0 {
		dst = appendNested(dst, disambiguatedPaths, d.ambiguous, false)
	}
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

const disambiguatedPaths = "disambiguatedPaths"

// difference collects elements.
type difference struct {
	updated, removed, truncated []byte
	removals, truncations       int
	ambiguous                   []byte
}

// fieldPath is a path with what its components are.
type fieldPath struct {
	text      string
	parts     []any // names, and positions as int32
	ambiguous bool
}

// field returns the path of a field below.
func (p fieldPath) field(name string) fieldPath {
	out := fieldPath{text: name, parts: append(p.parts[:len(p.parts):len(p.parts)], name), ambiguous: p.ambiguous}
	if len(p.parts) > 0 {
		out.text = p.text + "." + name
	}
	_, err := strconv.ParseUint(name, 10, 32)
	out.ambiguous = out.ambiguous || err == nil || strings.Contains(name, ".")
	return out
}

// element returns the path of an element below.
func (p fieldPath) element(i int) fieldPath {
	return fieldPath{text: p.text + "." + strconv.Itoa(i), parts: append(p.parts[:len(p.parts):len(p.parts)], int32(i)), ambiguous: p.ambiguous}
}

// tell notes the parts of a path that is ambiguous.
func (d *difference) tell(p fieldPath) {
	if !p.ambiguous {
		return
	}
	list := bsoncore.NewArrayBuilder()
	for _, part := range p.parts {
		switch part := part.(type) {
		case string:
			list.AppendString(part)
		case int32:
			list.AppendInt32(part)
		}
	}
	d.ambiguous = bsoncore.AppendArrayElement(d.ambiguous, p.text, list.Build())
}

// update notes the new value at a path.
func (d *difference) update(p fieldPath, v bsoncore.Value) {
	d.updated = bsoncore.AppendValueElement(d.updated, p.text, v)
	d.tell(p)
}

// documents compares two documents at a path.
func (d *difference) documents(prefix fieldPath, old, doc document) {
	was := elementsOf(old)
	now := elementsOf(doc)
	for _, e := range was {
		if find(now, e.Key()) == nil {
			gone := prefix.field(e.Key())
			d.removed = bsoncore.AppendStringElement(d.removed, strconv.Itoa(d.removals), gone.text)
			d.removals++
			d.tell(gone)
		}
	}
	for _, e := range now {
		before := find(was, e.Key())
		if before == nil {
			d.update(prefix.field(e.Key()), e.Value())
			continue
		}
		d.values(prefix.field(e.Key()), before.Value(), e.Value())
	}
}

// values compares two values at a path.
func (d *difference) values(path fieldPath, old, now bsoncore.Value) {
	if old.Type == now.Type && bytes.Equal(old.Data, now.Data) {
		return
	}
	switch {
	case old.Type == bsoncore.TypeEmbeddedDocument && now.Type == bsoncore.TypeEmbeddedDocument:
		before := len(d.updated) + len(d.removed)
		d.documents(path, old.Document(), now.Document())
		if len(d.updated)+len(d.removed) == before { // only the order of the fields differs
			d.update(path, now)
		}
	case old.Type == bsoncore.TypeArray && now.Type == bsoncore.TypeArray:
		d.arrays(path, elementsOf(document(old.Data)), elementsOf(document(now.Data)), now)
	default:
		d.update(path, now)
	}
}

// arrays compares element by element. An array that got shorter is truncated.
func (d *difference) arrays(path fieldPath, old, now []bsoncore.Element, whole bsoncore.Value) {
	if len(now) == 0 || len(old) == 0 {
		d.update(path, whole)
		return
	}
	if len(now) < len(old) {
		e := bsoncore.NewDocumentBuilder().AppendString("field", path.text).AppendInt32("newSize", int32(len(now))).Build()
		d.truncated = bsoncore.AppendDocumentElement(d.truncated, strconv.Itoa(d.truncations), e)
		d.truncations++
	}
	for i, e := range now {
		at := path.element(i)
		if i >= len(old) {
			d.update(at, e.Value())
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
