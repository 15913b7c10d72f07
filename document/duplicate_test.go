package document_test

import (
	"errors"
	"testing"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestDuplicateKeysAreThoseOfTheDocument: the error of a unique index tells the values of the document that was refused, with their types
// and, where strings are equal by a collation, as they are; whichever way the document came.
func TestDuplicateKeysAreThoseOfTheDocument(t *testing.T) {
	insensitive := document.JSON(`{"locale": "en", "strength": 1}`)
	for _, test := range []struct {
		index      document.Index
		first, doc string
		want       string
	}{
		{document.Index{Keys: document.JSON(`{"a": 1}`)}, `{"a": 1}`, `{"a": {"$numberDouble": "1.0"}}`, `{"a":{"$numberDouble":"1.0"}}`},
		{document.Index{Keys: document.JSON(`{"a": -1}`)}, `{"a": 1}`, `{"a": {"$numberLong": "1"}}`, `{"a":{"$numberLong":"1"}}`},
		{document.Index{Keys: document.JSON(`{"a": 1}`)}, `{"a": [1, 2]}`, `{"a": [7, {"$numberDecimal": "2.0"}]}`, `{"a":{"$numberDecimal":"2.0"}}`},
		{document.Index{Keys: document.JSON(`{"a": 1}`)}, `{"b": 1}`, `{"b": 2}`, `{"a":null}`},
		{document.Index{Keys: document.JSON(`{"a.b": 1, "c": -1}`)}, `{"a": {"b": 1}, "c": "x"}`, `{"a": [{"b": 3}, {"b": {"$numberDouble": "1.0"}}], "c": "x"}`,
			`{"a.b":{"$numberDouble":"1.0"},"c":"x"}`},
		{document.Index{Keys: document.JSON(`{"a": 1}`), Collation: insensitive}, `{"a": "stra\u00dfe"}`, `{"a": "STRASSE"}`, `{"a":"STRASSE"}`},
		{document.Index{Keys: document.JSON(`{"a": 1}`), Collation: insensitive}, `{"a": {"b": "x"}}`, `{"a": ["y", {"b": "X"}]}`, `{"a":{"b":"X"}}`},
		{document.Index{Keys: document.JSON(`{"a": 1, "g": "2dsphere"}`)}, `{"a": 1, "g": [1, 2]}`, `{"a": 1, "g": {"type": "Point", "coordinates": [1, 2]}}`,
			`{"a":{"$numberInt":"1"},"g":{"$numberLong":"1153886977999749120"}}`},
	} {
		test.index.Unique = true
		ways := map[string]func(c *document.Collection) error{
			"insert": func(c *document.Collection) error {
				_, err := c.Insert(ctx, document.JSON(test.doc))
				return err
			},
			"a batch": func(c *document.Collection) error {
				_, err := c.InsertMany(ctx, []any{document.JSON(`{"a": 77}`), document.JSON(test.doc)}, nil)
				return err
			},
			"replace": func(c *document.Collection) error {
				_, err := c.Insert(ctx, document.JSON(`{"_id": 5, "a": "other"}`))
				must(t, err)
				_, err = c.Apply(ctx, document.JSON(`{"_id": 5}`), document.JSON(test.doc), nil)
				return err
			},
		}
		for way, run := range ways {
			c := collection(t, open(t, memfs.New()), "c", nil)
			_, err := c.CreateIndex(ctx, test.index)
			must(t, err)
			_, err = c.Insert(ctx, document.JSON(test.first))
			must(t, err)
			checkDuplicate(t, way, run(c), test.want)
		}
		c := collection(t, open(t, memfs.New()), "c", nil)
		_, err := c.InsertMany(ctx, []any{document.JSON(test.first), document.JSON(test.doc)}, nil)
		must(t, err)
		_, err = c.CreateIndex(ctx, test.index)
		var e *document.Error
		if !errors.As(err, &e) || e.Code != document.DuplicateKey || !utf8.ValidString(e.Message) {
			t.Errorf("building over %s and %s: %v", test.first, test.doc, err)
		}
	}
}

func checkDuplicate(t *testing.T, way string, err error, want string) {
	t.Helper()
	var e *document.Error
	var many document.WriteErrors
	if errors.As(err, &many) {
		err = many[0].Err
	}
	if !errors.As(err, &e) || e.Code != document.DuplicateKey {
		t.Fatalf("%s: %v", way, err)
	}
	got, err := bson.MarshalExtJSON(bson.Raw(e.KeyValue), true, false)
	must(t, err)
	short, err := bson.MarshalExtJSON(bson.Raw(e.KeyValue), false, false)
	must(t, err)
	if string(got) != want && string(short) != want {
		t.Errorf("%s: %s, want %s", way, got, want)
	}
}

// TestDuplicateKeysTellTheirCollation: also those of _id, whose strings compare as the collection's do.
func TestDuplicateKeysTellTheirCollation(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", &document.CollectionOptions{Collation: document.JSON(`{"locale": "en", "strength": 1}`)})
	_, err := c.InsertMany(ctx, []any{document.JSON(`{"_id": "a"}`), document.JSON(`{"_id": "A"}`)}, nil)
	var e *document.Error
	if !errors.As(err, &e) || e.Code != document.DuplicateKey || e.Collation.Lookup("locale").StringValue() != "en" || e.Collation.Lookup("strength").Int32() != 1 {
		t.Fatalf("%v, of collation %v", err, e)
	}
}
