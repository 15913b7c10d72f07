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

// TestBoundsAreRefusedWhateverTheFilterAsks: bounds that an index cannot have are told also where no document can match.
func TestBoundsAreRefusedWhateverTheFilterAsks(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"a": 1}`)})
	must(t, err)
	for _, filter := range []any{bson.D{}, document.JSON(`{"$nor": [{}]}`), document.JSON(`{"a": {"$in": []}}`)} {
		for code, o := range map[document.Code]document.FindOptions{
			51175: {Min: document.JSON(`{"a": 5}`), Max: document.JSON(`{"a": 2}`)},
			51174: {Min: document.JSON(`{"b": 5}`)},
		} {
			o.Hint = "a_1"
			if _, err := inWords(c.Find(ctx, filter, &o)); document.CodeOf(err) != code {
				t.Errorf("%v: %v, want %d", filter, err, code)
			}
		}
	}
}

// TestBoundsAtTheEndsOfAllKeysAreRefused: where one bound is not given, the end of all keys stands for it, and nothing is between it and itself.
func TestBoundsAtTheEndsOfAllKeysAreRefused(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	ends := func(end string) document.JSON { return document.JSON(`{"a": {"$` + end + `": 1}}`) }
	for _, test := range []struct {
		keys        string
		first, last string
	}{{`{"a": 1}`, "minKey", "maxKey"}, {`{"a": -1}`, "maxKey", "minKey"}} {
		name, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(test.keys)})
		must(t, err)
		for _, o := range []document.FindOptions{{Max: ends(test.first)}, {Min: ends(test.last)}} {
			o.Hint = name
			if _, err := inWords(c.Find(ctx, bson.D{}, &o)); document.CodeOf(err) != 51175 {
				t.Errorf("%s, min %v, max %v: %v, want 51175", name, o.Min, o.Max, err)
			}
		}
	}
}

// TestTheLastKeyOfAllIsBehindEachBound: without an upper bound MongoDB ends before the last key that there can be, and begins with the first
// one without a lower bound.
func TestTheLastKeyOfAllIsBehindEachBound(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	for id, a := range []any{bson.MinKey{}, 1, bson.MaxKey{}} {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: a}})
		must(t, err)
	}
	for _, direction := range []int{1, -1} {
		name, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a", Value: direction}}})
		must(t, err)
		for i, o := range []document.FindOptions{{Min: document.JSON(`{"a": 1}`)}, {Max: document.JSON(`{"a": 2}`)}} {
			if o.Hint = name; direction < 0 && i == 1 {
				o.Max = document.JSON(`{"a": 0}`)
			}
			list, err := inWords(c.Find(ctx, bson.D{}, &o))
			if must(t, err); len(list) != i+1 {
				t.Errorf("%s, min %v, max %v: %v, want %d", name, o.Min, o.Max, list, i+1)
			}
		}
	}
}
