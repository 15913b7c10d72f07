package document_test

import (
	"context"
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
	for _, doc := range []any{5, []any{}, document.JSON(""), document.JSON(" 5"), document.JSON("[]")} {
		_, inserted := c.Insert(ctx, doc)
		_, found := c.FindOne(ctx, doc, nil)
		for what, err := range map[string]error{"insert": inserted, "find": found} {
			if err == nil || !strings.Contains(err.Error(), "is no document") && !strings.Contains(err.Error(), "does not begin with {") {
				t.Errorf("%s %T %v: %v", what, doc, doc, err)
			}
		}
	}
	if _, err := c.OpenAggregate(ctx, document.JSON(" {}"), nil); err == nil || !strings.Contains(err.Error(), "does not begin with [") {
		t.Errorf("a pipeline that is no array: %v", err)
	}
	if n, err := c.Count(ctx, nil, nil); n != 1 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	if _, err := c.Insert(ctx, bson.M(nil)); err != nil {
		t.Errorf("an empty map is an empty document: %v", err)
	}
}

// What follows a document or pipeline of JSON is refused: a filter with a bracket too many would be one without its second half.
func TestWhatFollowsJSON(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	for _, end := range []string{"", " \r\n\t", "}", "]", " x", "{}", `, "b": 2}`, `"`, "\ufeff"} {
		for _, text := range []string{`{"a": 1}`, `{"a": ["}", "\\\"", "\\\\", {"b": []}]}`} {
			_, err := c.Insert(ctx, document.JSON(text+end))
			if wrong := strings.TrimSpace(end) != ""; errors.Is(err, document.FailedToParse) != wrong || !wrong && err != nil {
				t.Errorf("%s: %v", text+end, err)
			}
			stages := `[{"$match": ` + text + `}]` + end
			cursor, err := c.OpenAggregate(ctx, document.JSON(stages), nil)
			if wrong := strings.TrimSpace(end) != ""; errors.Is(err, document.FailedToParse) != wrong || !wrong && err != nil {
				t.Errorf("%s: %v", stages, err)
			}
			if err == nil {
				must(t, cursor.Close())
			}
		}
	}
	if n, err := c.Delete(ctx, document.JSON(`{}, "a": 5}`), &document.DeleteOptions{Many: true}); n != 0 || !errors.Is(err, document.FailedToParse) {
		t.Errorf("%d deleted, %v", n, err)
	}
}

// What is easily passed by mistake is refused: no update, and one document in place of a slice of them, whose fields are no documents.
func TestMistakenForOthers(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	_, updated := c.Update(ctx, nil, nil, nil)
	_, applied := c.Apply(ctx, nil, nil, nil)
	_, _, modified := c.FindAndModify(ctx, nil, nil, nil)
	for what, err := range map[string]error{"update": updated, "apply": applied, "find and modify": modified} {
		if !errors.Is(err, document.BadValue) {
			t.Errorf("%s with nil: %v", what, err)
		}
	}
	for _, docs := range []any{bson.D{{Key: "a", Value: 1}}, bson.Raw{5, 0, 0, 0, 0}, bson.M{"a": 1}, nil} {
		if n, err := c.InsertMany(ctx, docs, nil); n != 0 || !errors.Is(err, document.TypeMismatch) {
			t.Errorf("insert many of a %T: %d, %v", docs, n, err)
		}
	}
	cursor, err := c.OpenFind(ctx, nil, nil)
	must(t, err)
	if err := cursor.Decode(new(bson.M)); !errors.Is(err, document.BadValue) {
		t.Errorf("decode before the first document: %v", err)
	}
	must(t, cursor.Close())
}

// Names that are not UTF-8 are refused: lists and events with them would be no BSON.
func TestNamesThatAreNotUTF8(t *testing.T) {
	const name = "a\xff"
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, opened := s.Collection(ctx, name, nil)
	_, inserted := s.Database("test").Lookup(name).Insert(ctx, bson.D{})
	_, other := s.Database(name).Lookup("c").Insert(ctx, bson.D{})
	renamed, moved := c.Rename(ctx, "test", name, false), c.Rename(ctx, name, "c", false)
	_, out := c.OpenAggregate(ctx, bson.A{bson.D{{Key: "$out", Value: name}}}, nil)
	for what, err := range map[string]error{"open": opened, "insert": inserted, "database": other, "rename": renamed, "move": moved, "view": s.Database("test").Create(ctx, name, bson.D{{Key: "viewOn", Value: "c"}})} {
		if document.CodeOf(err) != 73 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if out == nil {
		t.Error("a pipeline writes to it")
	}
	if list, err := s.Databases(ctx); len(list) != 1 || err != nil {
		t.Errorf("databases: %q, %v", list, err)
	}
}

// A context that has ended writes nothing, and makes no collection.
func TestWritesInAContextThatHasEnded(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	ended, end := context.WithCancel(ctx)
	end()
	for name, c := range map[string]*document.Collection{"there": c, "not there": s.Database("test").Lookup("other")} {
		_, one := c.Insert(ended, document.JSON(`{"_id": 2}`))
		_, many := c.InsertMany(ended, []any{document.JSON(`{"_id": 3}`)}, nil)
		for what, err := range map[string]error{"insert": one, "insert many": many} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s into a collection that is %s: %v", what, name, err)
			}
		}
	}
	_, changed := c.Update(ended, nil, document.JSON(`{"$set": {"a": 1}}`), nil)
	_, deleted := c.Delete(ended, nil, nil)
	for what, err := range map[string]error{"update": changed, "delete": deleted} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if doc, err := c.FindOne(ctx, nil, nil); err != nil || doc.String() != `{"_id": {"$numberInt":"1"}}` {
		t.Errorf("the collection has %v, %v", doc, err)
	}
	if list, err := s.Database("test").Collections(ctx); len(list) != 1 || err != nil {
		t.Errorf("collections: %v, %v", list, err)
	}
}

// Names with a dollar in an _id are refused however deep they are, as in MongoDB, but for those of references.
func TestNamesWithADollarInAnID(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	reference := bson.D{{Key: "$ref", Value: "x"}, {Key: "$id", Value: 1}}
	dollar := bson.D{{Key: "$b", Value: 1}}
	for _, test := range []struct {
		id      any
		refused bool
	}{
		{dollar, true}, {bson.D{{Key: "a", Value: dollar}}, true}, {bson.D{{Key: "a", Value: bson.A{1, bson.A{dollar}}}}, true},
		{bson.D{{Key: "$ref", Value: "x"}}, true}, {bson.D{{Key: "$ref", Value: 1}, {Key: "$id", Value: 1}}, true},
		{append(reference[:2:2], dollar...), true}, {bson.D{{Key: "a", Value: 1}, reference[0], reference[1]}, true},
		{bson.D{{Key: "a", Value: bson.CodeWithScope{Code: "f()", Scope: dollar}}}, true},
		{reference, false}, {append(reference[:2:2], bson.E{Key: "$db", Value: "y"}, bson.E{Key: "z", Value: 1}), false},
		{bson.D{{Key: "a", Value: bson.A{reference, reference}}}, false}, {bson.D{{Key: "a", Value: bson.D{{Key: "b$", Value: 1}}}}, false},
	} {
		doc := bson.D{{Key: "_id", Value: test.id}}
		_, inserted := c.Insert(ctx, doc)
		_, replaced := c.Replace(ctx, document.JSON(`{"a": "none"}`), doc, &document.UpdateOptions{Upsert: true})
		for what, err := range map[string]error{"insert": inserted, "upsert": replaced} {
			if refused := document.CodeOf(err) == 52; refused != test.refused || err != nil && !refused && !errors.Is(err, document.DuplicateKey) {
				t.Errorf("%s of %v: %v", what, test.id, err)
			}
		}
	}
}
