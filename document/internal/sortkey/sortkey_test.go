package sortkey

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

func document(t testing.TB, s string) bsoncore.Document {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(s), false, &d); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestOrder sorts documents, given in the order in which a MongoDB server returns them.
func TestOrder(t *testing.T) {
	for _, c := range []struct{ sort, docs string }{
		{`{"a": 1}`, `{"a": []} {"a": null} {"b": 1} {"a": [1, 9]} {"a": [3]} {"a": 5} {"a": 7} {"a": "s"} {"a": {"x": 1}} {"a": [[2]]}`},
		{`{"a": -1}`, `{"a": [[2]]} {"a": {"x": 1}} {"a": "s"} {"a": [1, 9]} {"a": 7} {"a": 5} {"a": [3]} {"a": null} {"b": 1} {"a": []}`},
		{`{"a.b": 1, "c": -1}`, `{"a": [], "c": 1} {"a": 4, "c": 0} {"a": [{"b": 2}, {"b": 1}], "c": 5} {"a": {"b": 1}, "c": 3}`},
		{`{"_id": 1}`, `{"_id": null} {"_id": 7} {"_id": {"x": 1}} {"_id": []} {"_id": [1]} {"_id": [3, 0]}`},
		{`{"_id": 1, "a": 1}`, `{"_id": []} {"_id": [3, 0]} {"_id": 1} {"_id": {"x": 1}}`},
		{`{"a.0": 1}`, `{"a": [1, 9]} {"a": [2, 0]} {"a": {"0": 3}} {"a": [[4]]}`},
		{`{"a.0": 1}`, `{"a": [[], 2]} {"a": [null]} {"a": {"0": [1, 2]}} {"a": [{"x": 1}]} {"a": [[null]]} {"a": [[1, 7], [2, 3]]} {"a": [[[]]]}`},
		{`{"a.0.0": 1}`, `{"a": [[[]]]} {"a": [{"x": 1}]} {"a": [[1, 7], [2, 3]]} {"a": {"0": [2, 2]}} {"a": [[[8, 9]]]}`},
		{`{"a.0": 1, "a": -1}`, `{"a": [1, 3]} {"a": [1, 2]} {"a": [2, 9]}`},
		{`{"a.b": 1, "a.0": 1}`, `{"a": [3]} {"a": [[1, 9], 0]} {"a": [[7, 2], 0]}`},
		{`{"a.0.b": 1, "a": 1}`, `{"a": [{"b": []}]} {"a": [[[{"b": 1}], 3], 2]} {"a": [[{"b": 1}], 2]} {"a": [{"b": 1}]} {"a": [{"b": 5}]}`},
		{`{"a.0.b": -1, "a": 1}`, `{"a": [{"b": 5}]} {"a": [[{"b": 1}], 2]} {"a": [{"b": 1}]} {"a": [{"b": []}]}`},
		{`{"a.b": 1, "a.0.b": 1}`, `{"a": [[{"b": 1}], {"c": 1}]} {"a": [[{"b": 2}], {"b": 1}]} {"a": [{"b": 3}, [5]]}`},
		{`{"a.b": 1, "a.c": 1}`, `{"a": [{"b": 1, "c": 5}, {"b": 2, "c": 0}]} {"a": [{"b": 1, "c": 6}, {"b": 1, "c": 7}]} {"a": {"b": 2, "c": 0}}`},
	} {
		p, err := Parse(document(t, c.sort), nil)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		keys := map[string][]byte{}
		for _, s := range strings.SplitAfter(c.docs, "} {") {
			s = strings.TrimSuffix(s, " {")
			if !strings.HasPrefix(s, "{") {
				s = "{" + s
			}
			want = append(want, s)
			if keys[s], err = p.Append(nil, path.Document(document(t, s))); err != nil {
				t.Fatalf("%s: %s: %v", c.sort, s, err)
			}
		}
		got := slices.Clone(want)
		slices.SortStableFunc(got, func(a, b string) int { return bytes.Compare(keys[a], keys[b]) })
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", c.sort, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for spec, want := range map[string]mongoerror.Code{
		`{}`: 15976, `{"a": 2}`: 15975, `{"a": "x"}`: 15974, `{"": 1}`: 40352, `{"a.": 1}`: 40353, `{"$a": 1}`: 16410,
		`{"a": {"x": 1}}`: 17312, `{"a": 1, "b": {"$meta": "nothing"}}`: 31138,
	} {
		if _, err := Parse(document(t, spec), nil); mongoerror.CodeOf(err) != want {
			t.Errorf("%s: %v, want %d", spec, err, want)
		}
	}
	p, err := Parse(document(t, `{"a": 1, "b": 1}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Append(nil, path.Document(document(t, `{"a": [1], "b": [2]}`))); mongoerror.CodeOf(err) != mongoerror.BadValue {
		t.Errorf("parallel arrays: %v", err)
	}
}

// once is Fields whose values do not outlive the next Lookup, as those of a stored record.
type once struct {
	doc bsoncore.Document
	buf []byte
}

func (o *once) Lookup(name string) (bsoncore.Value, bool) {
	for i := range o.buf {
		o.buf[i] = 0xee
	}
	v, ok := path.Lookup(o.doc, name)
	o.buf = append(o.buf[:0], v.Data...)
	v.Data = o.buf
	return v, ok
}

func TestValuesOfStoredRecords(t *testing.T) {
	p, err := Parse(document(t, `{"a.b": 1, "c": -1, "a.d": 1}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{`{"a": [{"b": 3}, {"b": 2, "d": 4}], "c": "text"}`, `{"c": 1, "a": {"b": [1, 2], "d": 3}}`} {
		doc := document(t, s)
		a, err := p.Append(nil, path.Document(doc))
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.Append(nil, &once{doc: doc})
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %x %x %v", s, a, b, err)
		}
	}
}

func TestCollation(t *testing.T) {
	c, err := collation.Parse(document(t, `{"locale": "en", "strength": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(document(t, `{"a": 1}`), c)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := p.Append(nil, path.Document(document(t, `{"a": "Word"}`)))
	b, errB := p.Append(nil, path.Document(document(t, `{"a": "word"}`)))
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Error(a, b, errA, errB)
	}
}

func BenchmarkAppend(b *testing.B) {
	p, err := Parse(document(b, `{"a": 1, "c": -1}`), nil)
	if err != nil {
		b.Fatal(err)
	}
	doc := path.Fields(path.Document(document(b, `{"x": 1, "a": 5, "s": "some text", "c": 2.5}`)))
	var key []byte
	b.ReportAllocs()
	for b.Loop() {
		if key, err = p.Append(key[:0], doc); err != nil {
			b.Fatal(err)
		}
	}
}

// TestManyElements: which of the documents in an array counts is found in time by their number. By its square it would be minutes.
func TestManyElements(t *testing.T) {
	const many = 90_000
	array := bsoncore.NewArrayBuilder()
	for i := range int32(many) {
		array.AppendDocument(bsoncore.NewDocumentBuilder().AppendInt32("a", many-i).Build())
	}
	order := bsoncore.NewDocumentBuilder()
	for _, field := range []string{"d.a", "d.b", "d.c", "d.e", "d.f", "d.g", "d.89999.x"} {
		order.AppendInt32(field, 1)
	}
	p, err := Parse(order.Build(), nil)
	if err != nil {
		t.Fatal(err)
	}
	values, err := p.Values(path.Document(bsoncore.NewDocumentBuilder().AppendArray("d", array.Build()).Build()))
	if err != nil || values[0].AsInt64() != 1 {
		t.Errorf("%v, %v; want the last element", values, err)
	}
}
