package document_test

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestMergeNeedsUniqueFields: what $merge is told to match by must be unique, and by the collation of the pipeline.
func TestMergeNeedsUniqueFields(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	insensitive := document.JSON(`{"locale": "en", "strength": 2}`)
	into := collection(t, s, "into", nil)
	collection(t, s, "insensitive", &document.CollectionOptions{Collation: insensitive})
	_, err := c.Insert(ctx, document.JSON(`{"_id": "a", "k": "x", "l": 2}`))
	must(t, err)
	for _, index := range []document.Index{
		{Keys: document.JSON(`{"k": 1}`), Unique: true}, {Keys: document.JSON(`{"l": 1}`)}, {Keys: document.JSON(`{"k.x": 1}`), Unique: true},
		{Keys: document.JSON(`{"k": 1, "l": -1}`), Unique: true, Collation: insensitive},
		{Keys: document.JSON(`{"m": 1}`), Unique: true, Partial: document.JSON(`{"m": {"$gt": 1}}`)},
	} {
		_, err := into.CreateIndex(ctx, index)
		must(t, err)
	}
	for _, test := range []struct {
		stage    string
		collated bool
		fails    bool
	}{
		{`{"into": "into"}`, true, false},
		{`{"into": "into", "on": "_id"}`, false, false},
		{`{"into": "into", "on": "_id"}`, true, true},
		{`{"into": "insensitive", "on": "_id"}`, false, true},
		{`{"into": "insensitive", "on": "_id"}`, true, false},
		{`{"into": "none", "on": "_id"}`, true, false},
		{`{"into": "none2", "on": "k"}`, false, true},
		{`{"into": "into", "on": "k"}`, false, false},
		{`{"into": "into", "on": "k"}`, true, true},
		{`{"into": "into", "on": "l"}`, false, true},
		{`{"into": "into", "on": ["l", "k"]}`, false, true},
		{`{"into": "into", "on": ["l", "k"]}`, true, false},
		{`{"into": "into", "on": "m"}`, false, true},
	} {
		o := &document.AggregateOptions{}
		if test.collated {
			o.Collation = insensitive
		}
		var failed error
		for _, err := range c.Aggregate(ctx, document.JSON(fmt.Sprintf(`[{"$match": {}}, {"$merge": %s}]`, test.stage)), o) {
			failed = err
		}
		if is := document.CodeOf(failed) == 51183; is != test.fails || failed != nil && !is {
			t.Errorf("%s, collated %t: %v", test.stage, test.collated, failed)
		}
	}
}
