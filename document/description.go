package document

import (
	"fmt"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
)

// description collects what an update did, as a change stream tells it: {updatedFields, removedFields, truncatedArrays}, and
// disambiguatedPaths where a path alone does not say whether its numbers are positions, or its dots parts of names.
type description struct {
	updated, removed, truncated []byte
	removals, truncations       int
	ambiguous                   []byte
}

// describeDiff makes the description of a diff. Only expanded ones have disambiguatedPaths.
func describeDiff(diff document, expanded bool) (document, error) {
	d := description{}
	if err := d.document(fieldPath{}, diff); err != nil {
		return nil, err
	}
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = appendNested(dst, "updatedFields", d.updated)
	dst = appendNestedAs(dst, bsoncore.TypeArray, "removedFields", d.removed)
	dst = appendNestedAs(dst, bsoncore.TypeArray, "truncatedArrays", d.truncated)
	if expanded && len(d.ambiguous) > 0 {
		dst = appendNested(dst, "disambiguatedPaths", d.ambiguous)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at) // which fails on a wrong place only
	return dst, nil
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
func (d *description) tell(p fieldPath) {
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
func (d *description) update(p fieldPath, v bsoncore.Value) {
	d.updated = bsoncore.AppendValueElement(d.updated, p.text, v)
	d.tell(p)
}

// remove notes that a field is gone.
func (d *description) remove(p fieldPath) {
	d.removed = bsoncore.AppendStringElement(d.removed, strconv.Itoa(d.removals), p.text)
	d.removals++
	d.tell(p)
}

// truncate notes the new length of an array.
func (d *description) truncate(p fieldPath, length int32) {
	e := bsoncore.NewDocumentBuilder().AppendString("field", p.text).AppendInt32("newSize", length).Build()
	d.truncated = bsoncore.AppendDocumentElement(d.truncated, strconv.Itoa(d.truncations), e)
	d.truncations++
}

// document takes the diff of a document apart.
func (d *description) document(prefix fieldPath, diff document) error {
	for _, e := range elementsOf(diff) {
		name, v := e.Key(), e.Value()
		part, isDocument := v.DocumentOK()
		if !isDocument || name == "" {
			return strangeDiff(name)
		}
		switch {
		case name[0] == diffWithin:
			if err := d.within(prefix.field(name[1:]), part); err != nil {
				return err
			}
		case name == diffRemoved:
			for _, gone := range elementsOf(part) {
				d.remove(prefix.field(gone.Key()))
			}
		case name == diffUpdated, name == diffInserted:
			for _, field := range elementsOf(part) {
				d.update(prefix.field(field.Key()), field.Value())
			}
		default:
			return strangeDiff(name)
		}
	}
	return nil
}

// within takes the diff of a value apart.
func (d *description) within(p fieldPath, diff document) error {
	if _, err := diff.LookupErr(diffArray); err != nil {
		return d.document(p, diff)
	}
	for _, e := range elementsOf(diff) {
		name, v := e.Key(), e.Value()
		switch name {
		case diffArray:
			continue
		case diffLength:
			length, ok := v.Int32OK()
			if !ok {
				return strangeDiff(name)
			}
			d.truncate(p, length)
			continue
		case "":
			return strangeDiff(name)
		}
		i, err := strconv.ParseUint(name[1:], 10, 31)
		part, isDocument := v.DocumentOK()
		switch {
		case err == nil && name[0] == diffElement:
			d.update(p.element(int(i)), v)
		case err == nil && name[0] == diffWithin && isDocument:
			if err := d.within(p.element(int(i)), part); err != nil {
				return err
			}
		default:
			return strangeDiff(name)
		}
	}
	return nil
}

func strangeDiff(name string) error {
	return fmt.Errorf("%w: a diff with the field %q", pando.ErrCorrupt, name)
}
