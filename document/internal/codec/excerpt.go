package codec

import (
	"cmp"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Excerpt makes documents of a few fields of records: those of the documents, in their order there.
type Excerpt struct {
	names    []string
	template *template // of the last record
	there    []string  // the names that it has, in its order
}

// NewExcerpt returns an excerpt of the top-level fields with these names.
func NewExcerpt(names []string) *Excerpt { return &Excerpt{names: names} }

// Append appends a document of the fields that the record of a view has. It is not ok, and nothing is appended, when all of the record has
// to be decoded to tell.
func (e *Excerpt) Append(dst []byte, v *View) (out []byte, ok bool, err error) {
	t := v.record.template
	if t == nil {
		out, ok = e.pick(dst, v)
		return out, ok, nil
	}
	if !t.sound {
		return dst, false, nil
	}
	if e.template != t {
		e.arrange(t)
	}
	at, out := bsoncore.AppendDocumentStart(dst)
	for _, name := range e.there {
		if value, ok := v.Lookup(name); ok {
			out = bsoncore.AppendValueElement(out, name, value)
		}
	}
	if err := v.Err(); err != nil {
		return dst, false, err
	}
	out, err = bsoncore.AppendDocumentEnd(out, at)
	return out, err == nil, err
}

// pick is Append for a record that holds BSON, or has been made BSON. It is not ok when that makes no sense.
func (e *Excerpt) pick(dst []byte, v *View) (out []byte, ok bool) {
	at, out := bsoncore.AppendDocumentStart(dst)
	for pos := 0; pos < len(v.elements); {
		field, whole := readElement(v.elements, pos)
		if !whole {
			return dst, false
		}
		if e.has(v.elements[pos+1 : field.value-1]) {
			if !isSoundValue(field.kind, v.elements[field.value:field.next], 0) {
				return dst, false
			}
			out = append(out, v.elements[pos:field.next]...)
		}
		pos = field.next
	}
	out, err := bsoncore.AppendDocumentEnd(out, at)
	return out, err == nil
}

func (e *Excerpt) has(name []byte) bool {
	for _, n := range e.names {
		if string(name) == n {
			return true
		}
	}
	return false
}

// arrange finds the names in a template.
func (e *Excerpt) arrange(t *template) {
	e.template, e.there = t, e.there[:0]
	for _, name := range e.names {
		if t.fieldOf(name) >= 0 {
			e.there = append(e.there, name)
		}
	}
	slices.SortFunc(e.there, func(a, b string) int { return cmp.Compare(t.fields[t.fieldOf(a)].first, t.fields[t.fieldOf(b)].first) })
}
