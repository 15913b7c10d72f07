package update

import (
	"bytes"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// codeDiffSection is MongoDB's code for a part of a diff that it does not know.
const codeDiffSection mongoerror.Code = 4770503

// ParseDiff parses what an entry of the oplog, of version 2, says that an update did: {u: {field: value}, i: {field: value},
// d: {field: false}, s<field>: diff}; and {a: true, l: length, u<position>: value, s<position>: diff} of an array. The update keeps
// referring to the bytes of the diff, which are well formed.
//
// Applied to a document that has the change already it changes nothing, so that an oplog can be replayed over a later state. What
// it says of the inside of something that is gone is passed over; where something else is there now, that becomes null.
func ParseDiff(diff bsoncore.Document) (*Update, error) {
	if err := checkDiff(diff); err != nil {
		return nil, err
	}
	return &Update{diff: diff}, nil
}

// checkDiff refuses what no diff has, at any depth.
func checkDiff(diff bsoncore.Document) error {
	if isArrayDiff(diff) {
		return checkArrayDiff(diff)
	}
	for s := path.PlacesOf(diff); ; {
		e, ok := s.Next()
		if !ok {
			return nil
		}
		name := string(e.Name)
		switch {
		case e.Value.Type != bsoncore.TypeEmbeddedDocument:
			return mongoerror.New(codeDiffSection, "Unexpected value of section: %s in document diff", name)
		case name == "u", name == "i", name == "d":
		case len(name) > 0 && name[0] == 's':
			if err := checkDiff(bsoncore.Document(e.Value.Data)); err != nil {
				return err
			}
		default:
			return mongoerror.New(codeDiffSection, "Unexpected section: %s in document diff", name)
		}
	}
}

func checkArrayDiff(diff bsoncore.Document) error {
	for s := path.PlacesOf(diff); ; {
		e, ok := s.Next()
		if !ok {
			return nil
		}
		name := string(e.Name)
		if name == "a" {
			continue
		}
		if n, isNumber := e.Value.AsInt64OK(); name == "l" && isNumber && n >= 0 {
			continue
		}
		kind, _, known := arrayPart(e.Name)
		if !known || kind == 's' && e.Value.Type != bsoncore.TypeEmbeddedDocument {
			return mongoerror.New(codeDiffSection, "Unexpected section: %s in array diff", name)
		}
		if kind == 's' {
			if err := checkDiff(bsoncore.Document(e.Value.Data)); err != nil {
				return err
			}
		}
	}
}

// isArrayDiff reports whether a diff is one of an array.
func isArrayDiff(diff bsoncore.Document) bool {
	e, ok := first(diff)
	return ok && string(e.Name) == "a"
}

// arrayPart takes the name of a part of an array's diff apart: what it is, and the position.
func arrayPart(name []byte) (kind byte, index int, ok bool) {
	if len(name) < 2 || name[0] != 'u' && name[0] != 's' || !canonicalIndex(string(name[1:])) {
		return 0, 0, false
	}
	index, err := strconv.Atoi(string(name[1:]))
	return name[0], index, err == nil
}

// differ appends the document with the diff applied. _id stays.
func (u *Update) applyDiff(dst []byte, doc bsoncore.Document) ([]byte, bool, error) {
	start := len(dst)
	dst, err := new(differ).document(dst, doc, u.diff)
	if err != nil {
		return dst[:start], false, err
	}
	out := bsoncore.Document(dst[start:])
	old, now := doc.Lookup("_id"), out.Lookup("_id")
	if old.Type != now.Type || !bytes.Equal(old.Data, now.Data) {
		return dst[:start], false, mongoerror.New(mongoerror.ImmutableField, "a diff would change the field '_id'")
	}
	if depthOf(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: out}) > maxDepth {
		return dst[:start], false, tooDeep()
	}
	return dst, !bytes.Equal(doc, out), nil
}

// differ applies one diff.
type differ struct {
	padded int // bytes of the nulls that it has put into arrays
}

// diffed is what a diff says of the fields of a document.
type diffed struct {
	removed map[string]bool
	updated map[string]bsoncore.Value
	within  map[string]bsoncore.Document
	fresh   []path.Placed // updated and inserted fields, in their order
}

func diffedFields(diff bsoncore.Document) *diffed {
	d := &diffed{removed: map[string]bool{}, updated: map[string]bsoncore.Value{}, within: map[string]bsoncore.Document{}}
	for s := path.PlacesOf(diff); ; {
		section, ok := s.Next()
		if !ok {
			return d
		}
		if section.Name[0] == 's' {
			d.within[string(section.Name[1:])] = section.Value.Data
			continue
		}
		for fields := path.PlacesOf(section.Value.Data); ; {
			e, ok := fields.Next()
			if !ok {
				break
			}
			switch section.Name[0] {
			case 'u':
				d.updated[string(e.Name)] = e.Value
				d.fresh = append(d.fresh, e)
			case 'i': // goes to the end, wherever it was
				d.removed[string(e.Name)] = true
				d.fresh = append(d.fresh, e)
			default:
				d.removed[string(e.Name)] = true
			}
		}
	}
}

// document appends a document with a diff applied.
func (r *differ) document(dst []byte, doc, diff bsoncore.Document) ([]byte, error) {
	d := diffedFields(diff)
	start, err := len(dst), error(nil)
	dst = append(dst, 0, 0, 0, 0)
	for s := path.PlacesOf(doc); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		name := string(e.Name)
		if d.removed[name] {
			continue
		}
		if v, ok := d.updated[name]; ok {
			dst = bsoncore.AppendValueElement(dst, name, v)
			delete(d.updated, name)
			continue
		}
		inner, ok := d.within[name]
		if !ok {
			dst = append(dst, doc[e.Start:e.End]...)
			continue
		}
		if dst, err = r.field(dst, name, e.Value, inner); err != nil {
			return dst, err
		}
	}
	for _, e := range d.fresh {
		if _, left := d.updated[string(e.Name)]; left || d.removed[string(e.Name)] {
			dst = bsoncore.AppendValueElement(dst, string(e.Name), e.Value)
		}
	}
	return finish(dst, start), nil
}

// field appends a field whose value a diff changes within.
func (r *differ) field(dst []byte, name string, old bsoncore.Value, diff bsoncore.Document) ([]byte, error) {
	want := bsoncore.TypeEmbeddedDocument
	if isArrayDiff(diff) {
		want = bsoncore.TypeArray
	}
	if old.Type != want {
		return bsoncore.AppendNullElement(dst, name), nil
	}
	dst = bsoncore.AppendHeader(dst, want, name)
	if want == bsoncore.TypeArray {
		return r.array(dst, old, diff)
	}
	return r.document(dst, old.Data, diff)
}

// array appends an array with a diff applied.
func (r *differ) array(dst []byte, old bsoncore.Value, diff bsoncore.Document) ([]byte, error) {
	values := elementsOf(old)
	for s := path.PlacesOf(diff); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		if string(e.Name) == "l" {
			values = values[:min(int64(len(values)), e.Value.AsInt64())]
			continue
		}
		kind, i, ok := arrayPart(e.Name)
		if !ok {
			continue
		}
		v := e.Value
		if kind == 's' {
			if i >= len(values) {
				continue
			}
			field, err := r.field(nil, "", values[i], bsoncore.Document(v.Data))
			if err != nil {
				return dst, err
			}
			v = bsoncore.Value{Type: bsoncore.Type(field[0]), Data: field[2:]}
		}
		if i-len(values) > maxPadding {
			return dst, mongoerror.New(mongoerror.CannotBackfillArray, "can't backfill more than %d elements", maxPadding)
		}
		if r.padded += nullsSize(len(values), i); r.padded > maxDocumentSize {
			return dst, mongoerror.New(mongoerror.BSONObjectTooLarge, "Resulting document after update is larger than %d", maxDocumentSize)
		}
		for i >= len(values) {
			values = append(values, bsoncore.Value{Type: bsoncore.TypeNull})
		}
		values[i] = v
	}
	return appendArray(dst, values), nil
}
