package document

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/update"
	"github.com/pandodb/pando/vfs/memfs"
)

// anyValue draws a value of few names and numbers, so that two of them have much in common.
func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 4).Draw(t, "kind")
		switch {
		case kind == 0 && depth > 0:
			return anyDocument(depth-1).Draw(t, "document")
		case kind == 1 && depth > 0:
			return bson.A(rapid.SliceOfN(anyValue(depth-1), 0, 4).Draw(t, "array"))
		case kind == 2:
			return nil
		}
		return rapid.Int32Range(0, 2).Draw(t, "number")
	})
}

func anyDocument(depth int) *rapid.Generator[bson.D] {
	return rapid.Custom(func(t *rapid.T) bson.D {
		doc := bson.D{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "u", "s", "", "1"}), 0, 5, rapid.ID).Draw(t, "names") {
			doc = append(doc, bson.E{Key: name, Value: anyValue(depth).Draw(t, name)})
		}
		return doc
	})
}

// Two documents with the same fields in the same order are compared side by side; looking for each field says the same of them.
func TestTheDiffSideBySideIsTheDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := anyDocument(2).Draw(t, "old")
		other := bson.D{}
		for _, e := range doc {
			if rapid.Bool().Draw(t, "changed") {
				e.Value = anyValue(2).Draw(t, e.Key)
			}
			other = append(other, e)
		}
		old, err := bson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		now, err := bson.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		if !sameFields(old, now) || sameFields(old, emptyDocument()) && len(doc) > 0 {
			t.Fatalf("%s and %s have the same fields, and an empty document has others", document(old), document(now))
		}
		got, differ := appendSideBySide(nil, old, now, update.Targets{})
		want, differs := appendAnyDiff(nil, old, now, update.Targets{})
		if string(got) != string(want) || differ != differs {
			t.Fatalf("%s, %v, want %s, %v", document(got), differ, document(want), differs)
		}
	})
}

// What the oplog says of an update makes the document that the update made, also where it was made already.
func TestTheDiffInTheOplogMakesTheDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := func(name string) document {
			doc, err := bson.Marshal(append(bson.D{{Key: "_id", Value: 1}}, anyDocument(3).Draw(t, name)...))
			if err != nil {
				t.Fatal(err)
			}
			return doc
		}
		old, now := raw("old"), raw("new")
		diff := document(appendDiff(nil, old, now, update.Targets{}))
		u, err := update.ParseDiff(diff)
		if err != nil {
			t.Fatalf("%s: %v", diff, err)
		}
		for _, from := range []document{old, now} {
			got, _, err := u.Apply(nil, from, false, -1)
			if err != nil || string(got) != string(now) {
				t.Fatalf("%s makes %s of %s, not %s: %v", diff, document(got), from, now, err)
			}
		}
	})
}

func TestACollectionKeepsTheUUIDThatItHadElsewhere(t *testing.T) {
	s, err := Open("db", &Options{Storage: pando.Options{FS: memfs.New()}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, d := t.Context(), s.Database("db")
	id := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")}
	for range 2 {
		if err := d.CreateAs(ctx, "c", JSON(`{}`), id); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := d.Collections(ctx); err != nil || len(list) != 1 || string(list[0].UUID.Data) != string(id.Data) {
		t.Fatalf("%v, %v", list, err)
	}
	other := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("another UUID !!!")}
	for name, err := range map[string]error{
		"the same UUID elsewhere": s.Database("e").CreateAs(ctx, "c", JSON(`{}`), id),
		"another UUID":            d.CreateAs(ctx, "c", JSON(`{}`), other),
	} {
		if !errors.Is(err, NamespaceExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := d.CreateAs(ctx, "x", JSON(`{}`), bson.Binary{}); err == nil {
		t.Error("no UUID is taken for one")
	}
}
