package query

import (
	"testing"

	"github.com/pandodb/pando/document/internal/path"
)

func BenchmarkMatch(b *testing.B) {
	doc := path.Fields(path.Document(document(b, `{"a": 5, "s": "some text", "d": {"e": 2.5}, "n": [1, 2, {"b": 3}]}`)))
	for _, c := range []struct{ name, filter string }{
		{"lookup", ""}, {"int", `{"a": 5}`}, {"range", `{"a": {"$gt": 1, "$lt": 9}}`}, {"string", `{"s": "some text"}`},
		{"in", `{"a": {"$in": [1, 5, 9]}}`}, {"dotted", `{"d.e": {"$lt": 3}}`}, {"array", `{"n": 2}`}, {"regex", `{"s": {"$regex": "t[e]xt"}}`},
		{"prefix", `{"s": {"$regex": "^some"}}`}, {"and", `{"a": 5, "s": "some text"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.filter == "" {
				for b.Loop() {
					if _, ok := doc.Lookup("a"); !ok {
						b.Fatal()
					}
				}
				return
			}
			f, err := Parse(document(b, c.filter), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := f.Match(doc); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	doc := document(b, `{"a": 5, "b": {"$gt": 1, "$lt": 9}, "$or": [{"c": 1}, {"d": {"$in": [1, 2, 3]}}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(doc, nil); err != nil {
			b.Fatal(err)
		}
	}
}
