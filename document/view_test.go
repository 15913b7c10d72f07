package document_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestViewsThatReadThemselves are refused, by whatever way they do: reading one would not end.
func TestViewsThatReadThemselves(t *testing.T) {
	s := open(t, memfs.New())
	d := s.Database("test")
	must(t, d.Create(ctx, "one", document.JSON(`{"viewOn": "c", "pipeline": [{"$lookup": {"from": "later", "pipeline": [], "as": "r"}}]}`)))
	must(t, d.Create(ctx, "two", document.JSON(`{"viewOn": "one"}`)))
	const cycle = document.Code(5)
	for _, spec := range []document.JSON{
		`{"viewOn": "later"}`,
		`{"viewOn": "two"}`,
		`{"viewOn": "c", "pipeline": [{"$unionWith": "two"}]}`,
		`{"viewOn": "c", "pipeline": [{"$graphLookup": {"from": "one", "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "r"}}]}`,
		`{"viewOn": "c", "pipeline": [{"$facet": {"f": [{"$lookup": {"from": "c", "as": "r", "pipeline": [{"$unionWith": {"coll": "later"}}]}}]}}]}`,
	} {
		if err := d.Create(ctx, "later", spec); document.CodeOf(err) != cycle {
			t.Errorf("%s: %v", spec, err)
		}
	}
	for _, change := range []document.JSON{
		`{"viewOn": "two", "pipeline": []}`,
		`{"viewOn": "c", "pipeline": [{"$lookup": {"from": "two", "pipeline": [], "as": "r"}}]}`,
	} {
		if err := d.Lookup("one").Modify(ctx, change); document.CodeOf(err) != cycle {
			t.Errorf("one becomes %s: %v", change, err)
		}
	}
	must(t, d.Create(ctx, "later", document.JSON(`{"viewOn": "c", "pipeline": [{"$unionWith": "other"}]}`)))
}

// TestViewsThatStandTooHigh: as many views as MongoDB allows stand on each other, also where stages join them.
func TestViewsThatStandTooHigh(t *testing.T) {
	s := open(t, memfs.New())
	d := s.Database("test")
	const most = 20
	for i := range most + 1 {
		spec := document.JSON(fmt.Sprintf(`{"viewOn": "c", "pipeline": [{"$unionWith": "v%d"}]}`, i))
		err := d.Create(ctx, fmt.Sprintf("v%d", i+1), spec)
		if i < most {
			must(t, err)
		} else if document.CodeOf(err) != 165 {
			t.Errorf("the last one: %v", err)
		}
	}
}

// TestStoredViewsThatCannotBeRead: neither a view without stages, nor one that is not understood any more, nor views that earlier versions
// let read each other keep a store from being opened, and they can be dropped.
func TestStoredViewsThatCannotBeRead(t *testing.T) {
	fs := memfs.New()
	storage := pando.Options{FS: fs, MemoryBytes: 8 << 20}
	s, err := document.Open("db", &document.Options{Storage: storage, TTLInterval: -1})
	must(t, err)
	d := s.Database("test")
	_, err = d.Lookup("c").Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	must(t, d.Create(ctx, "bare", document.JSON(`{"viewOn": "c"}`)))
	must(t, d.Create(ctx, "one", document.JSON(`{"viewOn": "c", "pipeline": [{"$lookup": {"from": "two", "pipeline": [], "as": "r"}}]}`)))
	must(t, d.Create(ctx, "three", document.JSON(`{"viewOn": "one", "pipeline": []}`)))
	must(t, s.Close())

	db, err := pando.Open("db", &storage)
	must(t, err)
	meta, err := db.Keyspace("documents", nil)
	must(t, err)
	change := func(from, to string, old, replaced string) {
		t.Helper()
		for key, value := range meta.RangeReverse(nil, nil) {
			if at, ok := bytes.CutSuffix(key, []byte("test\x00"+from)); ok {
				key = append(bytes.Clone(at), "test\x00"+to...)
				must(t, meta.Put(key, bytes.ReplaceAll(value, []byte(old), []byte(replaced))))
				return
			}
		}
		t.Fatalf("there is no entry of %s", from)
	}
	change("three", "two", "", "")
	change("one", "unheard", "$lookup", "$lockup")
	must(t, db.Close())

	s = open(t, fs)
	d = s.Database("test")
	for name, want := range map[string]document.Code{"bare": 0, "one": 5, "two": 5, "three": 5, "unheard": 40324} {
		n, err := d.Lookup(name).Count(ctx, document.JSON(`{}`), nil)
		if document.CodeOf(err) != want || err == nil && n != 1 {
			t.Errorf("%s: %d documents, %v", name, n, err)
		}
	}
	for _, name := range []string{"bare", "one", "two", "three", "unheard"} {
		must(t, d.Lookup(name).Drop(ctx))
	}
	if c, err := d.Lookup("c").Count(ctx, document.JSON(`{}`), nil); c != 1 || err != nil {
		t.Errorf("%d documents are left: %v", c, err)
	}
}

// Who asks a view, or a time series, for a document by its _id hears of what a find of that _id does.
func TestGetLooksWhereFindDoes(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	stored := bson.D{{Key: "_id", Value: 1}, {Key: "shown", Value: true}}
	for _, doc := range []bson.D{stored, {{Key: "_id", Value: 2}, {Key: "shown", Value: false}}} {
		_, err := c.Insert(ctx, doc)
		must(t, err)
	}
	view := collection(t, s, "view", &document.CollectionOptions{
		ViewOn: "c", Pipeline: []bson.D{{{Key: "$match", Value: bson.D{{Key: "shown", Value: true}}}}},
	})
	must(t, s.Database("test").Create(ctx, "series", document.JSON(`{"timeseries": {"timeField": "t"}}`)))
	series := s.Database("test").Lookup("series")
	_, err := series.Insert(ctx, bson.D{{Key: "t", Value: bson.DateTime(0)}, {Key: "_id", Value: "text"}})
	must(t, err)

	for _, id := range []any{1, 2, 3, "text", bson.Regex{Pattern: "x"}, bson.D{{Key: "$gt", Value: 0}}} {
		for _, from := range []*document.Collection{view, series} {
			want, wantErr := from.FindOne(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}}, nil)
			got, err := from.Get(ctx, id)
			if !bytes.Equal(got, want) || errors.Is(err, document.ErrNotFound) != errors.Is(wantErr, document.ErrNotFound) {
				t.Errorf("%s of %v: %v, %v, want %v, %v", from.Name(), id, got, err, want, wantErr)
			}
		}
	}
	if got, err := view.Get(ctx, 1); err != nil {
		t.Errorf("a document that the view shows: %v, %v", got, err)
	}
}

// null is an _id as any other.
func TestGetOfNull(t *testing.T) {
	s := open(t, memfs.New())
	d := s.Database("test")
	for name, options := range map[string]string{
		"plain": `{}`, "capped": `{"capped": true, "size": 4096}`, "collated": `{"collation": {"locale": "en"}}`,
		"series": `{"timeseries": {"timeField": "t"}}`, "view": `{"viewOn": "plain"}`,
	} {
		must(t, d.Create(ctx, name, document.JSON(options)))
	}
	stored := bson.D{{Key: "_id", Value: nil}, {Key: "t", Value: bson.DateTime(0)}}
	for _, name := range []string{"plain", "capped", "collated", "series"} {
		_, err := d.Lookup(name).Insert(ctx, stored)
		must(t, err)
	}
	for _, name := range []string{"plain", "capped", "collated", "series", "view"} {
		if doc, err := d.Lookup(name).Get(ctx, nil); err != nil || doc.Lookup("_id").Type != bson.TypeNull {
			t.Errorf("%s: %v, %v", name, doc, err)
		}
	}
}
