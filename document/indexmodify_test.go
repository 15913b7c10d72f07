package document_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

func modify(t *testing.T, c *document.Collection, change string, want document.Code) error {
	t.Helper()
	err := c.Modify(ctx, document.JSON(change))
	if document.CodeOf(err) != want || want == 0 && err != nil {
		t.Errorf("%s: %v, want the code %d", change, err, want)
	}
	return err
}

func insertCodes(t *testing.T, c *document.Collection, docs ...any) (codes []document.Code) {
	t.Helper()
	for _, doc := range docs {
		_, err := c.Insert(ctx, doc)
		codes = append(codes, document.CodeOf(err))
	}
	return codes
}

// An index that is prepared takes no more duplicates, one by one or in a batch, and becomes unique once those that it has are gone.
func TestAnIndexBecomesUnique(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndexes(ctx, specs(t, `{"key": {"a": 1, "b": -1}, "name": "ab"}`), nil)
	must(t, err)
	_, err = c.InsertMany(ctx, []any{document.JSON(`{"_id": 1, "a": "x", "b": 1}`), document.JSON(`{"_id": 2, "a": "x", "b": 1}`), document.JSON(`{"_id": 3, "a": [1, 2]}`)}, nil)
	must(t, err)
	for _, spec := range []string{`{"key": {"z": 1}, "name": "z", "unique": true, "prepareUnique": true}`, `{"key": {"$**": 1}, "name": "w", "prepareUnique": true}`} {
		if _, err := c.CreateIndexes(ctx, specs(t, spec), nil); document.CodeOf(err) != 67 {
			t.Errorf("%s: %v", spec, err)
		}
	}
	modify(t, c, `{"index": {"name": "ab", "unique": true}}`, 72)
	modify(t, c, `{"index": {"name": "ab", "unique": true}, "dryRun": true}`, 72)
	modify(t, c, `{"index": {"name": "ab", "prepareUnique": true}}`, 0)
	twice := []any{document.JSON(`{"a": "x", "b": 1}`), document.JSON(`{"a": 2}`), document.JSON(`{"_id": 4, "a": "x", "b": 2}`)}
	if codes := insertCodes(t, c, twice...); fmt.Sprint(codes) != "[DuplicateKey DuplicateKey Location0]" {
		t.Errorf("inserts into a prepared index: %v", codes)
	}
	batch := []any{document.JSON(`{"a": 5}`), document.JSON(`{"a": [4, 5]}`), document.JSON(`{"a": 4}`), document.JSON(`{"a": "x", "b": 2}`)}
	if n, err := c.InsertMany(ctx, batch, &document.InsertOptions{Unordered: true}); n != 2 || document.CodeOf(err) != 11000 {
		t.Errorf("a batch into a prepared index: %d, %v", n, err)
	}
	if _, err := c.Update(ctx, document.JSON(`{"_id": 4}`), document.JSON(`{"$set": {"b": 1}}`), nil); document.CodeOf(err) != 11000 {
		t.Errorf("an update: %v", err)
	}
	_, err = c.Update(ctx, document.JSON(`{"_id": 2}`), document.JSON(`{"$set": {"other": 1}}`), nil)
	must(t, err) // what is there already may stay
	for _, ask := range []string{`{"index": {"name": "ab", "unique": true}, "dryRun": true}`, `{"index": {"name": "ab", "unique": true}}`} {
		var err *document.Error
		if !errors.As(modify(t, c, ask, 359), &err) {
			t.Fatalf("%s: the error says nothing", ask)
		}
		if text := bson.Raw(err.Info).String(); text != `{"violations": [{"ids": [{"$numberInt":"1"},{"$numberInt":"2"}]}]}` {
			t.Errorf("%s: %s", ask, text)
		}
	}
	_, err = c.Delete(ctx, document.JSON(`{"_id": 2}`), nil)
	must(t, err)
	modify(t, c, `{"index": {"name": "ab", "unique": true}, "dryRun": true}`, 0)
	modify(t, c, `{"index": {"keyPattern": {"a": 1, "b": -1}, "unique": true}}`, 0)
	modify(t, c, `{"index": {"name": "ab", "prepareUnique": true}}`, 0) // it is already
	must(t, s.Close())

	s = open(t, fs)
	c = s.Database(document.DefaultDatabase).Lookup("c")
	list, err := c.Indexes(ctx)
	must(t, err)
	want := `{"v": {"$numberInt":"2"},"key": {"a": {"$numberInt":"1"},"b": {"$numberInt":"-1"}},"name": "ab","unique": true}`
	if len(list) != 2 || bson.Raw(list[1].Spec).String() != want || !list[1].Multikey {
		t.Errorf("the index is %s of %d", list[len(list)-1].Spec, len(list))
	}
	if codes := insertCodes(t, c, twice...); fmt.Sprint(codes) != "[DuplicateKey DuplicateKey DuplicateKey]" {
		t.Errorf("inserts into a unique index: %v", codes)
	}
	for filter, want := range map[string]int64{`{"a": "x"}`: 2, `{"a": 1}`: 1, `{"a": {"$gte": 4}}`: 2} {
		n, err := c.Count(ctx, document.JSON(filter), &document.FindOptions{Hint: "ab"})
		if err != nil || n != want {
			t.Errorf("%s: %d by the index, %v", filter, n, err)
		}
	}
}

// Those who write while an index becomes unique are in it afterwards, or were refused.
func TestWritesWhileAnIndexBecomesUnique(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndexes(ctx, specs(t, `{"key": {"a": 1}, "name": "a_1"}`), nil)
	must(t, err)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for i := range 300 {
				if _, err := c.Insert(ctx, bson.D{{Key: "a", Value: bson.A{i / 2, -i - 1}}}); err != nil && document.CodeOf(err) != 11000 {
					t.Error(err)
				}
			}
		})
	}
	modify(t, c, `{"index": {"name": "a_1", "prepareUnique": true}}`, 0)
	done := false
	for !done {
		var kept []any
		err := c.Modify(ctx, document.JSON(`{"index": {"name": "a_1", "unique": true}}`))
		if done = err == nil; done {
			break
		}
		if document.CodeOf(err) != 359 {
			t.Fatal(err)
		}
		var found struct {
			Violations []struct {
				IDs []any `bson:"ids"`
			} `bson:"violations"`
		}
		var why *document.Error
		if !errors.As(err, &why) {
			t.Fatal(err)
		}
		must(t, bson.Unmarshal(why.Info, &found))
		for _, v := range found.Violations {
			kept = append(kept, v.IDs[1:]...)
		}
		_, err = c.Delete(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: kept}}}}, &document.DeleteOptions{Many: true})
		must(t, err)
	}
	writers.Wait()
	all, err := c.Count(ctx, bson.D{}, nil)
	must(t, err)
	by, err := c.Count(ctx, document.JSON(`{"a": {"$gte": 0}}`), &document.FindOptions{Hint: "a_1"})
	if err != nil || by != all {
		t.Errorf("of %d documents the index has %d, %v", all, by, err)
	}
	for doc, err := range c.Aggregate(ctx, document.JSON(`[{"$unwind": "$a"}, {"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$match": {"n": {"$gt": 1}}}]`), nil) {
		must(t, err)
		t.Errorf("a duplicate: %s", doc)
	}
}

// Of a collMod that is refused nothing is done: the index was changed, and then the options were refused.
func TestWhatIsRefusedChangesNoIndex(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"a": 1}`), Name: "a"})
	must(t, err)
	for _, wrong := range []string{`"validator": {"$unknown": 1}`, `"validationLevel": "some"`, `"cappedSize": 10`, `"unknown": 1`} {
		if err := c.Modify(ctx, document.JSON(`{"index": {"name": "a", "hidden": true}, `+wrong+`}`)); err == nil {
			t.Errorf("%s is taken", wrong)
		}
		list, err := c.Indexes(ctx)
		must(t, err)
		if _, err := list[1].Spec.LookupErr("hidden"); err == nil {
			t.Fatalf("%s is refused, and the index is hidden", wrong)
		}
	}
	must(t, c.Modify(ctx, document.JSON(`{"validationLevel": "moderate", "index": {"name": "a", "hidden": true}}`)))
}
