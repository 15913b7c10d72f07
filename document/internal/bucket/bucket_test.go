package bucket

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"
)

// sorted returns a document with its fields in the order of their bytes: where they stand in a bucket says nothing.
func sorted(t testing.TB, doc bsoncore.Document) []byte {
	t.Helper()
	elements, err := doc.Elements()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(elements, func(a, b bsoncore.Element) int { return bytes.Compare(a, b) })
	var out []byte
	for _, e := range elements {
		out = append(out, e...)
	}
	return out
}

// compressed returns buckets that a mongod 6.0.5 has compressed, with what it reads from them: documents {bucket, measurements}.
func compressed(t testing.TB) (list []bsoncore.Document) {
	t.Helper()
	rest, err := os.ReadFile(filepath.Join("testdata", "mongod.bson"))
	if err != nil {
		t.Fatal(err)
	}
	for len(rest) > 0 {
		doc, after, ok := bsoncore.ReadDocument(rest)
		if !ok {
			t.Fatal("testdata/mongod.bson is cut off")
		}
		list, rest = append(list, doc), after
	}
	return list
}

// TestBucketsOfMongoDB unpacks buckets of each type of values, with values that are missing, that mongod has compressed.
func TestBucketsOfMongoDB(t *testing.T) {
	for n, doc := range compressed(t) {
		got, err := Fields{"at", "m"}.Unpack(doc.Lookup("bucket").Document())
		if err != nil {
			t.Errorf("bucket %d: %v", n, err)
			continue
		}
		want, err := doc.Lookup("measurements").Array().Values()
		if err != nil || len(want) != len(got) {
			t.Errorf("bucket %d: %d measurements, want %d (%v)", n, len(got), len(want), err)
			continue
		}
		slices.SortFunc(got, func(a, b bsoncore.Document) int { return int(a.Lookup("_id").AsInt64() - b.Lookup("_id").AsInt64()) })
		for i := range got {
			if !bytes.Equal(sorted(t, got[i]), sorted(t, want[i].Document())) {
				t.Errorf("bucket %d, measurement %d: %s, want %s", n, i, got[i], want[i])
			}
		}
	}
}

func TestWhatIsNoBucket(t *testing.T) {
	const control = `"control": {"version": 1, "min": {"at": {"$date": "2024-01-01T00:00:00Z"}}, "max": {"at": {"$date": "2024-01-01T00:00:00Z"}}}`
	const id, times = `"_id": {"$oid": "65920080c83b361afb6b8501"}, `, `"at": {"0": {"$date": "2024-01-01T00:00:00Z"}}`
	for name, c := range map[string]struct {
		doc string
		ok  bool
	}{
		"a bucket":               {`{` + id + control + `, "meta": 1, "data": {` + times + `, "v": {"0": 1}}}`, true},
		"without _id":            {`{` + control + `, "data": {` + times + `}}`, false},
		"with another _id":       {`{"_id": 1, ` + control + `, "data": {` + times + `}}`, false},
		"without control":        {`{` + id + `"data": {` + times + `}}`, false},
		"without data":           {`{` + id + control + `}`, false},
		"without times":          {`{` + id + control + `, "data": {"v": {"0": 1}}}`, false},
		"with more":              {`{` + id + control + `, "data": {` + times + `}, "x": 1}`, false},
		"of version 9":           {`{` + id + `"control": {"version": 9, "min": {}, "max": {}}, "data": {` + times + `}}`, false},
		"without bounds":         {`{` + id + `"control": {"version": 1, "min": {}, "max": {}}, "data": {` + times + `}}`, false},
		"with more values":       {`{` + id + control + `, "data": {` + times + `, "v": {"1": 1}}}`, false},
		"with a gap":             {`{` + id + control + `, "data": {"at": {"1": {"$date": "2024-01-01T00:00:00Z"}}}}`, false},
		"with a number too high": {`{` + id + control + `, "data": {"at": {"4000000": {"$date": "2024-01-01T00:00:00Z"}}}}`, false},
		"with names":             {`{` + id + control + `, "data": {` + times + `, "v": {"x": 1}}}`, false},
		"with a value":           {`{` + id + control + `, "data": {` + times + `, "v": 1}}`, false},
		"with a short column":    {`{` + id + control + `, "data": {` + times + `, "v": {"$binary": {"base64": "gA==", "subType": "07"}}}}`, false},
		"with an empty column":   {`{` + id + control + `, "data": {` + times + `, "v": {"$binary": {"base64": "AA==", "subType": "07"}}}}`, true},
	} {
		var doc bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(c.doc), false, &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if list, err := (Fields{"at", "m"}).Unpack(bsoncore.Document(doc)); err == nil != c.ok || c.ok && len(list) != 1 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

// A few bytes cannot stand for more than the limits.
func TestColumnsThatClaimMuch(t *testing.T) {
	repeats := bytes.Repeat([]byte{0xFF, 0, 0, 0, 0, 0, 0, 0}, 16)
	column := []byte{0x10, 0, 1, 0, 0, 0}
	for range 100 {
		column = append(append(column, 0x8F), repeats...)
	}
	if _, err := decodeColumn(append(column, 0), newBudget()); err == nil {
		t.Error("a column of more values than a bucket may have was read")
	}
}

// TestPackedAndUnpacked packs generated measurements, and gets them back; the bounds of each bucket hold for what is in it.
func TestPackedAndUnpacked(t *testing.T) {
	value := rapid.OneOf(rapid.Map(rapid.Int32(), func(n int32) any { return n }), rapid.Map(rapid.StringN(0, 5, 5), func(s string) any { return s }),
		rapid.Just[any](nil), rapid.Map(rapid.Int32Range(0, 9), func(n int32) any { return bson.D{{Key: "a", Value: n}, {Key: "b", Value: bson.A{n, "x"}}} }))
	rapid.Check(t, func(r *rapid.T) {
		p := &Packer{Fields: Fields{"at", "m"}, Span: time.Hour, Rounding: time.Minute}
		var want, got [][]byte
		var number uint64
		flush := func() {
			number++
			list, err := p.Unpack(p.Finish(number))
			if err != nil {
				r.Fatal(err)
			}
			for _, doc := range list {
				got = append(got, sorted(t, doc))
			}
		}
		for i := range rapid.IntRange(1, 40).Draw(r, "measurements") {
			d := bson.D{{Key: "at", Value: bson.DateTime(rapid.Int64Range(-1e7, 1e7).Draw(r, "at"))}, {Key: "_id", Value: int32(i)}}
			if rapid.Bool().Draw(r, "meta") {
				d = append(d, bson.E{Key: "m", Value: rapid.Int32Range(0, 2).Draw(r, "m")})
			}
			for _, name := range []string{"x", "y.z", "$w"} {
				if rapid.Bool().Draw(r, name) {
					d = append(d, bson.E{Key: name, Value: value.Draw(r, "value")})
				}
			}
			raw, err := bson.Marshal(d)
			if err != nil {
				r.Fatal(err)
			}
			if !p.Fits(raw) {
				flush()
			}
			if err := p.Add(raw); err != nil {
				r.Fatal(err)
			}
			want = append(want, sorted(t, raw))
		}
		flush()
		if !slices.EqualFunc(got, want, bytes.Equal) {
			r.Fatalf("got %q, want %q", got, want)
		}
	})
}

// TestBounds compares control.min and control.max with those that mongod 6.0.5 makes of the same measurements.
func TestBounds(t *testing.T) {
	p := &Packer{Fields: Fields{"at", "m"}, Span: time.Hour, Rounding: time.Minute}
	parse := func(text string) bsoncore.Document {
		var doc bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
			t.Fatal(err)
		}
		return bsoncore.Document(doc)
	}
	for _, text := range []string{
		`{"at": {"$date": "2024-01-01T00:00:07Z"}, "m": 1, "v": 5, "n": {"p": 0, "q": [0, 9]}, "s": "x"}`,
		`{"at": {"$date": "2024-01-01T00:00:05Z"}, "m": 1, "v": 7, "n": {"p": -1, "q": [3, 4, 5]}, "t": null}`,
		`{"at": {"$date": "2024-01-01T00:00:09Z"}, "m": 1, "v": 3, "s": "y"}`,
	} {
		doc := parse(text)
		if !p.Fits(doc) {
			t.Errorf("%s does not fit", text)
		}
		if err := p.Add(doc); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		`{"at": {"$date": "2024-01-01T00:00:09Z"}, "m": 2}`, `{"at": {"$date": "2024-01-01T00:00:09Z"}}`, `{"at": {"$date": "2024-01-01T01:00:00Z"}, "m": 1}`,
		`{"at": {"$date": "2023-12-31T23:59:59Z"}, "m": 1}`, `{"at": {"$date": "2024-01-01T00:00:09Z"}, "m": 1, "v": "text"}`,
		`{"at": {"$date": "2024-01-01T00:00:09Z"}, "m": 1, "n": {"q": ["text"]}}`,
	} {
		if p.Fits(parse(text)) {
			t.Errorf("%s fits", text)
		}
	}
	const want = `{"version": {"$numberInt":"1"},"min": {"at": {"$date":{"$numberLong":"1704067200000"}},"v": {"$numberInt":"3"},` +
		`"n": {"p": {"$numberInt":"-1"},"q": [{"$numberInt":"0"},{"$numberInt":"4"},{"$numberInt":"5"}]},"s": "x","t": null},` +
		`"max": {"at": {"$date":{"$numberLong":"1704067209000"}},"v": {"$numberInt":"7"},"n": {"p": {"$numberInt":"0"},` +
		`"q": [{"$numberInt":"3"},{"$numberInt":"9"},{"$numberInt":"5"}]},"s": "y","t": null}}`
	doc := p.Finish(1)
	if got := doc.Lookup("control").String(); got != want {
		t.Errorf("control is\n%s, want\n%s", got, want)
	}
	if id := bson.ObjectID(doc.Lookup("_id").ObjectID()); !id.Timestamp().Equal(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("_id has the time %s", id.Timestamp())
	}
}
