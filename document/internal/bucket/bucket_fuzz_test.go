package bucket

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// FuzzUnpack unpacks any document as a bucket: it fails, or gives measurements that are BSON.
func FuzzUnpack(f *testing.F) {
	for _, doc := range compressed(f) {
		f.Add([]byte(doc.Lookup("bucket").Document()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc := bsoncore.Document(data)
		if doc.Validate() != nil {
			t.Skip()
		}
		list, err := Fields{"at", "m"}.Unpack(doc)
		if err != nil {
			return
		}
		for _, m := range list {
			if err := m.Validate(); err != nil {
				t.Fatalf("%x: %v", []byte(m), err)
			}
		}
	})
}

// FuzzColumn reads any bytes as a compressed column.
func FuzzColumn(f *testing.F) {
	for _, doc := range compressed(f) {
		elements, err := doc.Lookup("bucket", "data").Document().Elements()
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range elements {
			_, data := e.Value().Binary()
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		values, err := decodeColumn(data, newBudget())
		if err != nil {
			return
		}
		for _, v := range values {
			if v.Type != 0 && v.Validate() != nil {
				t.Fatalf("a value of type %s is no BSON: %x", v.Type, v.Data)
			}
		}
	})
}
