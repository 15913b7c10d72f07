package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// TestTranscripts plays testdata/*.txt. The input of a command is a filter, and after it, where documents are asked for, one of them
// per line. An argument collation=strength compares strings as English does.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, name string) {
		datadriven.RunTest(t, name, func(t *testing.T, d *datadriven.TestData) string {
			lines := strings.Split(strings.TrimSpace(d.Input), "\n")
			f, err := Parse(document(t, lines[0]), transcriptOptions(t, d))
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return play(t, d, f, lines[1:])
		})
	})
}

func transcriptOptions(t *testing.T, d *datadriven.TestData) *Options {
	var strength int
	if !d.HasArg("collation") {
		return nil
	}
	d.ScanArgs(t, "collation", &strength)
	spec, err := bson.Marshal(bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: int32(strength)}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := collation.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &Options{Collation: c}
}

func play(t *testing.T, d *datadriven.TestData, f *Filter, docs []string) string {
	switch d.Cmd {
	case "parse":
		return f.String() + "\n"
	case "regex":
		r := f.Root.(*Regex)
		engine := "literal"
		if e, ok := r.engine.(patternEngine); ok {
			engine = "backtracking"
			if _, linear := e.Linear(); linear {
				engine = "linear"
			}
		}
		return fmt.Sprintf("%s prefix %q exact %v\n", engine, r.Prefix, r.Exact)
	case "fields":
		names, whole := f.Fields()
		return fmt.Sprintf("%q whole %v\n", names, whole)
	case "equalities", "identity":
		equalities := f.Equalities
		if d.Cmd == "identity" {
			equalities = f.Identity
		}
		doc, err := equalities()
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return doc.String() + "\n"
	case "match":
		var b strings.Builder
		for _, line := range docs {
			matched, position, err := f.MatchPosition(path.Document(document(t, line)))
			fmt.Fprintf(&b, "%v", matched)
			if position >= 0 {
				fmt.Fprintf(&b, " at %d", position)
			}
			if err != nil {
				fmt.Fprintf(&b, ", error: %v", err)
			}
			b.WriteString("\n")
		}
		return b.String()
	case "near":
		var b strings.Builder
		for _, line := range docs {
			distance, ok := f.Root.(*Near).Distance(path.Document(document(t, line)))
			fmt.Fprintf(&b, "%.6g %v\n", distance, ok)
		}
		return b.String()
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

// careless gives a value for every name, and tells that it is not there.
type careless struct{}

func (careless) Lookup(string) (bsoncore.Value, bool) {
	return bsoncore.Value{Type: bsoncore.TypeBoolean, Data: []byte{1}}, false
}

// fieldless has no fields.
type fieldless struct{}

func (fieldless) Lookup(string) (bsoncore.Value, bool) { return bsoncore.Value{}, false }

func TestMissingFields(t *testing.T) {
	for _, doc := range []path.Fields{careless{}, fieldless{}} {
		for filter, want := range map[string]bool{`{"a": true}`: false, `{"a": {"$exists": true}}`: false, `{"a": null}`: true, `{"a.b": null}`: true} {
			f, err := Parse(document(t, filter), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := f.Match(doc); got != want || err != nil {
				t.Errorf("%s on %T: %v, %v", filter, doc, got, err)
			}
		}
	}
}

// TestInnerVariablesHideOuterOnes: the let of a $lookup comes behind that of the command, and its variables count.
func TestInnerVariablesHideOuterOnes(t *testing.T) {
	text := func(s string) bsoncore.Value {
		return bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, s)}
	}
	doc := path.Document(document(t, `{"a": "inner"}`))
	for filter, want := range map[string]bool{
		`{"$expr": {"$eq": ["$a", "$$v"]}}`: true, `{"$expr": {"$in": ["$a", ["$$v", "x"]]}}`: true, `{"$expr": {"$ne": ["$a", "$$v"]}}`: false,
	} {
		f, err := Parse(document(t, filter), &Options{Let: []expression.Variable{{Name: "v", Value: text("outer")}, {Name: "v", Value: text("inner")}}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Match(doc); got != want || err != nil {
			t.Errorf("%s: %v, %v", filter, got, err)
		}
	}
}

// lookups counts the look-ups of fields.
type lookups struct {
	path.Document
	count map[string]int
}

func (l *lookups) Lookup(name string) (bsoncore.Value, bool) {
	l.count[name]++
	return l.Document.Lookup(name)
}

func TestFieldsAreLookedUpOnce(t *testing.T) {
	f, err := Parse(document(t, `{"a": {"$gt": 1, "$lt": 9}, "b": 2, "a.x": null, "c": 3}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &lookups{path.Document(document(t, `{"a": 5, "b": 2, "c": 3}`)), map[string]int{}}
	if matched, err := f.Match(l); !matched || err != nil {
		t.Fatal(matched, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if l.count[name] != 1 {
			t.Errorf("%s was looked up %d times", name, l.count[name])
		}
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	doc := path.Fields(path.Document(document(t, `{"a": 5, "s": "some text", "n": [1, 2, {"b": 3}], "d": {"e": 2.5}}`)))
	for _, filter := range []string{
		`{"a": 5}`, `{"a": {"$gt": 1, "$lt": 9}}`, `{"s": "some text"}`, `{"s": {"$gte": "some"}}`, `{"a": {"$in": [1, 5, 9]}}`, `{"n": 2}`,
		`{"n.b": 3}`, `{"d.e": {"$lt": 3}}`, `{"n": {"$elemMatch": {"b": 3}}}`, `{"s": {"$regex": "^some"}}`, `{"s": {"$regex": "t[e]xt"}}`,
		`{"$or": [{"a": 1}, {"d.e": 2.5}]}`, `{"a": {"$ne": 3}}`, `{"n": {"$size": 3}}`, `{"x": {"$exists": false}}`, `{"x": null}`,
	} {
		f, err := Parse(document(t, filter), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(100, func() {
			if ok, err := f.Match(doc); !ok || err != nil {
				t.Error(filter, ok, err)
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations", filter, got)
		}
	}
}

// TestNestingIsLimited has filters that nest far deeper than documents may: an error, whatever is nested.
func TestNestingIsLimited(t *testing.T) {
	nest := func(inner string, open, shut string) string {
		return strings.Repeat(open, 150) + inner + strings.Repeat(shut, 150)
	}
	for _, filter := range []string{
		nest(`{"a": 1}`, `{"$and": [`, `]}`),
		`{"a": ` + nest(`{"$gt": 1}`, `{"$not": `, `}`) + `}`,
		`{"a": ` + nest(`{"$gt": 1}`, `{"$elemMatch": `, `}`) + `}`,
		`{"$jsonSchema": ` + nest(`{}`, `{"not": `, `}`) + `}`,
	} {
		if _, err := Parse(document(t, filter), nil); mongoerror.CodeOf(err) != mongoerror.BadValue {
			t.Errorf("%.40s...: %v", filter, err)
		}
	}
}

// TestExplodingPattern has a pattern whose engine backtracks, on a string that makes it try everything.
func TestExplodingPattern(t *testing.T) {
	doc := path.Document(document(t, `{"a": "`+strings.Repeat("a", 3000)+`!"}`))
	for pattern, code := range map[string]mongoerror.Code{`^(a+)+$`: 0, `^(?=a)(a+)+$`: regexTakesLong, `^(a+)+\\1$`: regexTakesLong} {
		f, err := Parse(document(t, `{"a": {"$regex": "`+pattern+`"}}`), nil)
		if err != nil {
			t.Fatal(pattern, err)
		}
		if matched, err := f.Match(doc); matched || mongoerror.CodeOf(err) != code {
			t.Errorf("%s: %v, %v", pattern, matched, err)
		}
	}
}

// TestPositions holds the positions of a positional projection, and of an update, against those of a MongoDB server: conditions are looked at
// in the order in which they were given, and in that of the normalised tree; nothing below a negation leaves one.
func TestPositions(t *testing.T) {
	doc := path.Document(document(t, `{"l": [5, 0], "o": [1, 2, 3]}`))
	for _, test := range []struct {
		filter            string
		projected, update int
	}{
		{`{"l": {"$gte": 3, "$lt": 1}}`, 1, 0},
		{`{"l": {"$lt": 1, "$gte": 3}}`, 0, 0},
		{`{"l": {"$lt": 1, "$in": [5]}}`, 0, 1},
		{`{"l": {"$mod": [5, 0], "$gte": 3}}`, 0, 0},
		{`{"l": 5, "o": 2}`, 1, 1},
		{`{"o": 2, "l": 5}`, 0, 1},
		{`{"$and": [{"o": 2}, {"l": 5}], "o": 3}`, 0, 1},
		{`{"o": {"$exists": true}, "l": 0}`, 1, 0},
		{`{"l": {"$not": {"$not": {"$lt": 1}}}}`, -1, -1},
		{`{"l": {"$not": {"$exists": false}}}`, -1, -1},
		{`{"$or": [{"l": 0}, {"l": 5}]}`, 0, 0},
		{`{"$or": [{"l": {"$lt": 1}}, {"l": {"$gt": 3}}]}`, -1, -1},
		{`{"l": {"$all": [5, 0]}}`, 1, 1},
	} {
		f, err := Parse(document(t, test.filter), nil)
		if err != nil {
			t.Fatal(test.filter, err)
		}
		given, err := f.Positional()
		if err != nil {
			t.Fatal(test.filter, err)
		}
		if matched, at, err := given.MatchPosition(doc); !matched || at != test.projected || err != nil {
			t.Errorf("%s, projected: %v at %d, %v; want %d", test.filter, matched, at, err, test.projected)
		}
		if matched, at, err := f.MatchPosition(doc); !matched || at != test.update || err != nil {
			t.Errorf("%s, updated: %v at %d, %v; want %d", test.filter, matched, at, err, test.update)
		}
	}
}
