package document

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FuzzCheckBSON looks for documents that the door lets in and that others then cannot read.
func FuzzCheckBSON(f *testing.F) {
	for _, d := range []bson.D{
		{}, {{Key: "a", Value: 1}}, {{Key: "a", Value: bson.A{1.5, "x", nil, true}}, {Key: "b", Value: bson.D{{Key: "c", Value: bson.NewObjectID()}}}},
		{{Key: "r", Value: bson.Regex{Pattern: "a", Options: "i"}}, {Key: "b", Value: bson.Binary{Subtype: 2, Data: []byte{1, 2}}}},
		{{Key: "s", Value: bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "x", Value: 1}}}}, {Key: "d", Value: bson.NewDecimal128(1, 2)}},
	} {
		raw, err := bson.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkBSON(b) != nil {
			return
		}
		if err := bson.Raw(b).Validate(); err != nil {
			t.Fatalf("%x: %v", b, err)
		}
		var d bson.D
		if err := bson.Unmarshal(b, &d); err != nil {
			t.Fatalf("%x: %v", b, err)
		}
	})
}
