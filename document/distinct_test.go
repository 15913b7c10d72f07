package document_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestDistinctWithinItsBound: values beyond what they may take are refused, of a collection and of a view; the same value counts once.
func TestDistinctWithinItsBound(t *testing.T) {
	d := open(t, memfs.New()).Database("db")
	must(t, d.Create(ctx, "c", document.JSON(`{}`)))
	_, err := d.Lookup("c").InsertMany(ctx, []any{document.JSON(`{"a": "0123456789"}`), document.JSON(`{"a": "0123456789"}`), document.JSON(`{"a": "abcdefghij"}`)}, nil)
	must(t, err)
	must(t, d.Create(ctx, "v", document.JSON(`{"viewOn": "c", "pipeline": []}`)))
	for _, name := range []string{"c", "v"} {
		for most, want := range map[int]document.Code{0: 0, 36: 0, 35: 17217, 1: 17217} {
			if _, err := d.Lookup(name).Distinct(ctx, "a", nil, &document.FindOptions{MaxBytes: most}); document.CodeOf(err) != want {
				t.Errorf("%s, at most %d bytes: %v", name, most, err)
			}
		}
	}
}

// TestDistinctByPosition: digits after an array name one of its elements, and never fields of its elements, as in MongoDB.
func TestDistinctByPosition(t *testing.T) {
	d := open(t, memfs.New()).Database("db")
	must(t, d.Create(ctx, "c", document.JSON(`{}`)))
	_, err := d.Lookup("c").InsertMany(ctx, []any{document.JSON(`{"a": [{"0": "field", "b": 1}, 2]}`), document.JSON(`{"a": {"0": "of a document"}}`)}, nil)
	must(t, err)
	for field, want := range map[string]string{
		"a.0":   `"of a document" {"0": "field","b": {"$numberInt":"1"}}`,
		"a.0.0": `"field"`,
		"a.1":   `{"$numberInt":"2"}`,
		"a.b":   `{"$numberInt":"1"}`,
		"a.x":   ``,
	} {
		values, err := d.Lookup("c").Distinct(ctx, field, nil, nil)
		must(t, err)
		var got []string
		for _, v := range values {
			got = append(got, v.String())
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s", field, strings.Join(got, " "))
		}
	}
}
