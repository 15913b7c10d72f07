package index

import (
	"testing"

	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/test/wellformed"
)

// FuzzIndex parses any valid document as a specification, and makes the keys of another: errors have codes, keys are encodings, and what
// listIndexes shows means the same again.
func FuzzIndex(f *testing.F) {
	for _, s := range [][2]string{
		{`{"key": {"a.b": 1, "c": -1}, "name": "x", "unique": true, "sparse": true}`, `{"a": [{"b": 1}, {"b": [2, 3]}], "c": "x"}`},
		{`{"key": {"$**": 1}, "wildcardProjection": {"a.b": 1, "_id": 1}}`, `{"a": [{"b": {}}, []]}`},
		{`{"key": {"g": "2dsphere", "a": 1}}`, `{"g": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}, "a": []}`},
		{`{"key": {"a": "hashed"}, "partialFilterExpression": {"a": {"$gt": 1}}, "collation": {"locale": "en", "strength": 1}}`, `{"a": 5}`},
		{`{"key": {"a.0.b": 1}, "expireAfterSeconds": 5}`, `{"a": [[{"b": 1}], {"b": 2}]}`},
	} {
		f.Add([]byte(document(f, s[0])), []byte(document(f, s[1])))
	}
	f.Fuzz(func(t *testing.T, specData, data []byte) {
		spec, ok := wellformed.Document(specData)
		doc, ok2 := wellformed.Document(data)
		if !ok || !ok2 {
			return
		}
		d, err := Parse(spec, nil)
		if err != nil {
			if mongoerror.CodeOf(err) == 0 {
				t.Fatalf("%v has no code", err)
			}
			return
		}
		if again, err := Parse(d.Spec, nil); err != nil || string(again.Spec) != string(d.Spec) {
			t.Fatalf("%v is shown as %v: %v", spec, d.Spec, err)
		}
		var e Entries
		if err := d.Append(&e, path.Document(doc)); err != nil {
			if mongoerror.CodeOf(err) == 0 {
				t.Fatalf("%v has no code", err)
			}
			return
		}
		for _, key := range e.Keys {
			checkKey(t, d, key)
		}
	})
}

// checkKey steps over the values of a key.
func checkKey(t *testing.T, d *Definition, key []byte) {
	rest, err := key, error(nil)
	for i := range d.Components {
		if d.Components[i].Wildcard && err == nil {
			rest, err = keyenc.Skip(rest, false)
		}
		if err == nil {
			rest, err = keyenc.Skip(rest, d.Components[i].Kind == Descending)
		}
	}
	if err != nil || len(rest) != 0 {
		t.Fatalf("%x is no key: %d bytes are left, %v", key, len(rest), err)
	}
}
