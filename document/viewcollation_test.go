package document_test

import (
	"slices"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestViewsKeepTheirCollation: no call, no stage and no other view brings another collation than that of a view, as in MongoDB.
func TestViewsKeepTheirCollation(t *testing.T) {
	s := open(t, memfs.New())
	d := s.Database("test")
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "a": "x"}`))
	must(t, err)
	must(t, d.Create(ctx, "plain", document.JSON(`{"viewOn": "c"}`)))
	must(t, d.Create(ctx, "english", document.JSON(`{"viewOn": "c", "collation": {"locale": "en"}}`)))
	must(t, d.Create(ctx, "upper", document.JSON(`{"viewOn": "plain", "collation": {"locale": "simple"}}`)))

	const refused = document.Code(167)
	for _, spec := range []document.JSON{
		`{"viewOn": "english"}`, `{"viewOn": "c", "pipeline": [{"$unionWith": "english"}]}`,
		`{"viewOn": "plain", "collation": {"locale": "fr"}}`,
	} {
		if err := d.Create(ctx, "more", spec); document.CodeOf(err) != refused {
			t.Errorf("%s: %v", spec, err)
		}
	}
	english := document.JSON(`{"locale": "en"}`)
	if _, err := d.Lookup("plain").Count(ctx, document.JSON(`{}`), &document.FindOptions{Collation: english}); document.CodeOf(err) != refused {
		t.Errorf("a count by another collation: %v", err)
	}
	// The query of a find and of a distinct is read before, that of a count behind.
	plain, other := d.Lookup("plain"), &document.FindOptions{Collation: english}
	for filter, code := range map[document.JSON]document.Code{`{}`: refused, `{"$and": 1}`: document.BadValue} {
		if _, err := inWords(plain.Find(ctx, filter, other)); document.CodeOf(err) != code {
			t.Errorf("documents of %s by another collation: %v", filter, err)
		}
		if _, err := plain.Distinct(ctx, "a", filter, other); document.CodeOf(err) != code {
			t.Errorf("distinct values of %s by another collation: %v", filter, err)
		}
		if _, err := plain.Count(ctx, filter, other); document.CodeOf(err) != refused {
			t.Errorf("a count of %s by another collation: %v", filter, err)
		}
	}
	for text, o := range map[string]*document.AggregateOptions{
		`[{"$unionWith": "english"}]`: nil,
		`[{"$facet": {"f": [{"$lookup": {"from": "c", "as": "r", "pipeline": [{"$unionWith": "english"}]}}]}}]`: nil,
		`[{"$lookup": {"from": "plain", "as": "r", "pipeline": []}}]`:                                           {Collation: english},
	} {
		if cursor, err := c.OpenAggregate(ctx, pipeline(t, text), o); document.CodeOf(err) != refused {
			t.Errorf("%s: %v", text, err)
			if err == nil {
				must(t, cursor.Close())
			}
		}
	}
	for doc, err := range c.Aggregate(ctx, pipeline(t, `[{"$unionWith": "english"}, {"$count": "n"}]`), &document.AggregateOptions{Collation: english}) {
		must(t, err)
		expect(t, "a union", relaxed(t, doc), `{"n":2}`)
	}
}

// TestViewsWithoutStagesAreJoined: a view that changes nothing is what it stands on, for other pipelines too.
func TestViewsWithoutStagesAreJoined(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	must(t, s.Database("test").Create(ctx, "v", document.JSON(`{"viewOn": "c", "pipeline": []}`)))
	for text, want := range map[string][]string{
		`[{"$unionWith": "v"}]`: {`{"_id":1}`, `{"_id":1}`},
		`[{"$lookup": {"from": "v", "localField": "_id", "foreignField": "_id", "as": "r"}}]`: {`{"_id":1,"r":[{"_id":1}]}`},
	} {
		if got := sorted(t, c, text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
