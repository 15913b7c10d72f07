package document_test

import (
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestAnElementThatASparseIndexLacks: a hinted sparse index finds a document by any of its entries, although it has none for the very
// element that matches, which lacks all the fields.
func TestAnElementThatASparseIndexLacks(t *testing.T) {
	d := open(t, memfs.New()).Database("db")
	must(t, d.Create(ctx, "c", document.JSON(`{}`)))
	c := d.Lookup("c")
	_, err := c.CreateIndexes(ctx, specs(t, `{"key": {"a.b": 1, "a.c": -1}, "name": "bc", "sparse": true}`), nil)
	must(t, err)
	_, err = c.InsertMany(ctx, []any{
		document.JSON(`{"_id": 1, "a": [{}, {"b": 1, "c": 1}]}`), document.JSON(`{"_id": 2, "a": [{}]}`), document.JSON(`{"_id": 3, "a": {"b": 1}}`),
	}, nil)
	must(t, err)
	for _, want := range []struct {
		filter, hint string
		found        int64
	}{
		{`{"a.c": null}`, "bc", 2},
		{`{"a.c": null}`, "_id_", 3},
		{`{"a.c": {"$in": [null, 5]}}`, "bc", 2},
		{`{"a": {"$elemMatch": {"c": null}}}`, "bc", 1},
		{`{"a": {"$elemMatch": {"c": null}}}`, "_id_", 2},
	} {
		n, err := c.Count(ctx, document.JSON(want.filter), &document.FindOptions{Hint: want.hint})
		if must(t, err); n != want.found {
			t.Errorf("%s with %s finds %d, not %d", want.filter, want.hint, n, want.found)
		}
	}
}
