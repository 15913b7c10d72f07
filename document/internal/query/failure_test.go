package query

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/test/recorded"
)

// TestFailure holds the details of failed validations against those that a MongoDB server gave.
func TestFailure(t *testing.T) {
	type failure struct{ Validator, Document, Details bson.Raw }
	recorded.Lines(t, "testdata/failures.jsonl", func(n int, c *failure) {
		got, err := Failure(bsoncore.Document(c.Validator), nil, bsoncore.Document(c.Document))
		if err != nil || bson.Raw(got).String() != c.Details.String() {
			t.Errorf("line %d: %s of %s: %v\n got %s\nwant %s", n, c.Validator, c.Document, err, bson.Raw(got), c.Details)
		}
		filter, err := Parse(bsoncore.Document(c.Validator), nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := filter.Match(path.Document(c.Document)); ok || err != nil {
			t.Errorf("line %d: %s matches %s: %v", n, c.Validator, c.Document, err)
		}
	})
}
