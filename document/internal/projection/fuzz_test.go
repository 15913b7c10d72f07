package projection

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/test/wellformed"
)

// FuzzParse parses and applies whatever is a valid document: nothing may panic, and what comes out is a valid document.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"s": {"a.b": 1, "c": {"$slice": [1, 2]}, "d": {"$elemMatch": {"x": 1}}}, "d": {"a": [{"b": 2}], "c": [1, 2, 3], "d": [{"x": 1}]}}`,
		`{"s": {"a.b": 0, "c": 0}, "d": {"_id": 1, "a": [[{"b": 2}], 3], "c": 4}}`,
		`{"s": {"a.$": 1}, "q": {"a": 2}, "d": {"_id": 1, "a": [1, 2]}}`,
		`{"s": {"a": "$b", "e.f": {"$add": ["$b", 1]}}, "d": {"_id": 1, "b": 2, "e": [1, {"g": 2}]}}`,
		`{"s": ["a", "b.c"], "d": {"_id": 1, "b": [{"c": 2}]}}`,
	} {
		var raw bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(s), false, &raw); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, whole := wellformed.Document(data)
		if !whole || len(data) > 1<<12 {
			return
		}
		d, ok := doc.Lookup("d").DocumentOK()
		if !ok {
			return
		}
		spec := doc.Lookup("s")
		o := new(Options)
		if q, ok := doc.Lookup("q").DocumentOK(); ok {
			o.Filter, _ = query.Parse(q, nil)
		}
		var parsed []*Projection
		keep := func(p *Projection, err error) {
			if err == nil {
				parsed = append(parsed, p)
			}
		}
		keep(ParseUnset(spec))
		keep(ParseReplaceRoot(spec, o))
		if s, ok := spec.DocumentOK(); ok {
			keep(Parse(s, o))
			keep(ParseProject(s, o))
			keep(ParseAddFields(s, o))
		}
		for _, p := range parsed {
			p.Fields()
			p.Simple()
			out, err := p.Apply(nil, d)
			if err == nil && !valid(out, 0) {
				t.Fatalf("%s makes %x of %s", spec, out, d)
			}
		}
	})
}

// valid reports whether a document is what comes through the door: valid at every level, and not too deep.
func valid(doc bsoncore.Document, depth int) bool {
	if doc.Validate() != nil || depth > 2*maxDepth {
		return false
	}
	elements, err := doc.Elements()
	if err != nil {
		return false
	}
	for _, e := range elements {
		v := e.Value()
		if (v.Type == bsoncore.TypeEmbeddedDocument || v.Type == bsoncore.TypeArray) && !valid(v.Data, depth+1) {
			return false
		}
	}
	return true
}
