package document_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// What is no document is refused in words that say what to do: nil was stored as an empty document.
func TestWhatIsNoDocument(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "a": 1}`))
	must(t, err)
	var missing *struct{ A int }
	for _, doc := range []any{nil, missing, bson.Raw(nil)} {
		_, one := c.Insert(ctx, doc)
		_, many := c.InsertMany(ctx, []any{doc}, nil)
		_, replaced := c.Replace(ctx, document.JSON(`{"_id": 1}`), doc, nil)
		for what, err := range map[string]error{"insert": one, "insert many": many, "replace": replaced} {
			if !errors.Is(err, document.BadValue) {
				t.Errorf("%s %T: %v", what, doc, err)
			}
		}
	}
	_, inserted := c.Insert(ctx, `{"a": 2}`)
	_, found := c.FindOne(ctx, `{"a": 1}`, nil)
	_, index := c.CreateIndex(ctx, document.Index{Keys: "a"})
	for what, err := range map[string]error{"insert": inserted, "find": found, "index": index} {
		if !errors.Is(err, document.TypeMismatch) || !strings.Contains(err.Error(), "document.JSON") {
			t.Errorf("%s with a string: %v", what, err)
		}
	}
	if n, err := c.Count(ctx, nil, nil); n != 1 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	if _, err := c.Insert(ctx, bson.M(nil)); err != nil {
		t.Errorf("an empty map is an empty document: %v", err)
	}
}
