package index

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

// TestManyElements: the keys of the documents in an array are made in time by their number. By its square it would be minutes.
func TestManyElements(t *testing.T) {
	const many = 90_000
	d := parse(t, `{"key": {"d.a": 1, "d.b": 1, "d.c": 1, "d.e": 1, "d.f": 1, "d.g": 1, "d.89999.x": 1}}`)
	array := bsoncore.NewArrayBuilder()
	for i := range int32(many) {
		array.AppendDocument(bsoncore.NewDocumentBuilder().AppendInt32("a", i).Build())
	}
	var e Entries
	if err := d.Append(&e, path.Document(bsoncore.NewDocumentBuilder().AppendArray("d", array.Build()).Build())); err != nil || len(e.Keys) != many {
		t.Errorf("%d keys, %v", len(e.Keys), err)
	}
}
