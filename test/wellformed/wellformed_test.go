package wellformed_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/test/wellformed"
)

func TestDocument(t *testing.T) {
	marshal := func(v any) []byte {
		raw, err := bson.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	deep := func(levels int) any {
		d := bson.D{}
		for range levels - 1 {
			d = bson.D{{Key: "a", Value: d}}
		}
		return d
	}
	inner := marshal(bson.D{{Key: "in", Value: bson.D{{Key: "s", Value: "text"}}}})
	broken := append([]byte(nil), inner...)
	broken[15] = 0 // a text without a byte, not even its end
	for _, x := range []struct {
		name string
		data []byte
		ok   bool
	}{
		{"a document", inner, true},
		{"a name that stands twice", marshal(bson.D{{Key: "a", Value: 1}, {Key: "a", Value: "b"}}), true},
		{"a text of no length inside", broken, false},
		{"text that is not UTF-8", marshal(bson.D{{Key: "a", Value: bson.A{"\xff"}}}), false},
		{"a regular expression that is not UTF-8", marshal(bson.D{{Key: "a", Value: bson.Regex{Pattern: "\xff"}}}), false},
		{"100 levels", marshal(deep(100)), true},
		{"101 levels", marshal(deep(101)), false},
		{"nothing", nil, false},
	} {
		if doc, ok := wellformed.Document(x.data); ok != x.ok || ok && string(doc) != string(x.data) {
			t.Errorf("%s: %v, %x of %x", x.name, ok, doc, x.data)
		}
	}
}
