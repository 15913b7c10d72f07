package update

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/test/wellformed"
)

// FuzzParse parses and applies whatever is a valid document: nothing may panic, and what comes out is a valid document that the
// same update can be applied to again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"u": {"$set": {"a.b": 1}, "$inc": {"n": 1}}, "d": {"_id": 1, "a": {"b": 2}}}`,
		`{"u": {"$push": {"a": {"$each": [1, 2], "$sort": -1, "$slice": 2, "$position": 0}}}, "d": {"_id": 1, "a": [3]}}`,
		`{"u": {"$pull": {"a": {"b": {"$gt": 1}}}, "$set": {"c.$[x].y": 1}}, "f": [{"x.z": 1}], "d": {"_id": 1, "a": [{"b": 2}], "c": [{"z": 1}]}}`,
		`{"u": {"$rename": {"a": "b.c"}, "$unset": {"x": ""}}, "d": {"_id": 1, "a": 5}}`,
		`{"u": {"a": 1}, "d": {"_id": 1}}`,
		`{"u": [{"$set": {"a": "$b"}}, {"$unset": "c"}], "d": {"_id": 1, "b": 2}}`,
		`{"u": {"$bit": {"a": {"and": 5}}, "$min": {"b": 1}, "$pop": {"c": -1}, "$addToSet": {"d": 1}, "$mul": {"e": 2}}, "d": {}}`,
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
		var o Options
		if filters, ok := doc.Lookup("f").ArrayOK(); ok {
			for _, v := range elementsOf(bsoncore.Value{Type: bsoncore.TypeArray, Data: filters}) {
				if v.Type == bsoncore.TypeEmbeddedDocument {
					o.ArrayFilters = append(o.ArrayFilters, bsoncore.Document(v.Data))
				}
			}
		}
		u, err := Parse(doc.Lookup("u"), &o)
		if err != nil {
			return
		}
		d, ok := doc.Lookup("d").DocumentOK()
		if !ok {
			return
		}
		out, changed, err := u.Apply(nil, d, false, 0)
		if err != nil {
			return
		}
		if !valid(out, 0) {
			t.Fatalf("%s makes %x of %s", doc.Lookup("u"), out, d)
		}
		if !changed && u.root != nil && string(out) != string(d) {
			t.Fatalf("%s makes %s of %s and says that nothing has changed", doc.Lookup("u"), bsoncore.Document(out), d)
		}
	})
}

// valid reports whether a document is what comes through the door: valid at every level, and not too deep.
func valid(doc bsoncore.Document, depth int) bool {
	if doc.Validate() != nil || depth > maxDepth {
		return false
	}
	elements, err := doc.Elements()
	if err != nil {
		return false
	}
	for _, e := range elements {
		if v := e.Value(); isComposite(v.Type) && !valid(v.Data, depth+1) {
			return false
		}
	}
	return true
}
