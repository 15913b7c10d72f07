package document_test

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestAnOrderBetweenKeysIsThatOfWholeArrays: an array is sorted by its least element, or by its greatest, also where that is not among the
// keys of the index that the caller asks for.
func TestAnOrderBetweenKeysIsThatOfWholeArrays(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	for _, doc := range []string{`{"_id": 1, "a": 3}`, `{"_id": 2, "a": [1, 7]}`, `{"_id": 3, "a": 5}`, `{"_id": 4, "a": [6, 0, 9]}`} {
		_, err := c.Insert(ctx, document.JSON(doc))
		must(t, err)
	}
	_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"a": 1}`)})
	must(t, err)
	for _, test := range []struct {
		o    document.FindOptions
		want []int32
	}{
		{document.FindOptions{Min: document.JSON(`{"a": 2}`), Sort: document.JSON(`{"a": 1}`)}, []int32{4, 2, 1, 3}},
		{document.FindOptions{Max: document.JSON(`{"a": 7}`), Sort: document.JSON(`{"a": -1}`)}, []int32{4, 2, 3, 1}},
		{document.FindOptions{Min: document.JSON(`{"a": 2}`), Max: document.JSON(`{"a": 7}`), Sort: document.JSON(`{"a": 1}`), Limit: 2}, []int32{4, 1}},
	} {
		test.o.Hint = "a_1"
		var got []int32
		for doc, err := range c.Find(ctx, bson.D{}, &test.o) {
			must(t, err)
			got = append(got, doc.Lookup("_id").Int32())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v, want %v", test.o, got, test.want)
		}
	}
}
