package codec

import (
	"bytes"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// learnt returns a codec with templates of many kinds of fields, and a record of each.
func learnt(tb testing.TB) (*Codec, [][]byte) {
	tb.Helper()
	c := open(tb, Template, newMemory())
	var records [][]byte
	for _, doc := range append(append(goldenDocuments(), flights(3)...), packages(3)...) {
		for range 4 {
			record, err := c.Encode(nil, doc)
			if err != nil {
				tb.Fatal(err)
			}
			records = append(records, record)
		}
	}
	return c, records
}

// expected fails on errors that bytes from a disk must not provoke.
func expected(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
}

func FuzzDecode(f *testing.F) {
	c, records := learnt(f)
	for _, r := range records {
		f.Add(r)
	}
	f.Add([]byte(`{"a":{"$numberInt":"1"}}`))
	for _, doc := range unsound() {
		f.Add(append([]byte{tagBSON}, doc...))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		doc, err := c.Decode([]byte("front"), record)
		expected(t, err)
		if !bytes.HasPrefix(doc, []byte("front")) {
			t.Fatal("what was there before is gone")
		}
		if err != nil {
			return
		}
		if !allSound(doc[5:]) {
			t.Fatalf("%x is decoded as %x, which is no BSON", record, doc[5:])
		}
		for room := range len(doc) - 5 + 1 { // there may be no room to spare, from any field on
			tight, err := c.Decode(make([]byte, 0, room), record)
			if err != nil || !bytes.Equal(tight, doc[5:]) {
				t.Fatalf("%x is %x in a buffer of %d bytes: %v", doc[5:], tight, room, err)
			}
		}
		again, err := c.Encode(nil, doc[5:])
		if err != nil {
			t.Fatal(err)
		}
		if back, err := c.Decode(nil, again); err != nil || !bytes.Equal(back, doc[5:]) {
			t.Fatalf("%x becomes %x: %v", doc[5:], back, err)
		}
	})
}

func FuzzView(f *testing.F) {
	c, records := learnt(f)
	for _, r := range records {
		f.Add(r, "_id", "distance")
		f.Add(r, "list", "depends")
	}
	for _, doc := range unsound() {
		f.Add(append([]byte{tagBSON}, doc...), "n", "a")
	}
	f.Fuzz(func(t *testing.T, record []byte, first, second string) {
		v := c.NewView()
		if err := v.Reset(record); err != nil {
			expected(t, err)
			return
		}
		cut, isCut, cutErr := NewExcerpt([]string{second, first}).Append(nil, v)
		expected(t, cutErr)
		a, hasA := v.Lookup(first)
		b, hasB := v.Lookup(second)
		expected(t, v.Err())
		if v.Err() == nil {
			same := func(x bsoncore.Value) bool { return x.Type == a.Type && bytes.Equal(x.Data, a.Data) }
			if c.NewSieve([]Condition{{first, same}}).Look(record) == Fails {
				t.Fatalf("%q of %x is %v, and another value to the sieve", first, record, a)
			}
		}
		doc, err := v.Document(nil)
		expected(t, err)
		for _, is := range []struct {
			value bsoncore.Value
			ok    bool
		}{{a, hasA}, {b, hasB}} {
			if is.ok && !allSound(bsoncore.NewDocumentBuilder().AppendValue("", is.value).Build()) {
				t.Fatalf("a field of %x is %v", record, is.value)
			}
		}
		if isCut && !allSound(cut) {
			t.Fatalf("the excerpt of %x is %x", record, cut)
		}
		if err == nil && v.Err() != nil {
			t.Fatalf("%v, but the document is whole: %x", v.Err(), doc)
		}
		if err != nil {
			return
		}
		for _, is := range []struct {
			name  string
			value bsoncore.Value
			ok    bool
		}{{first, a, hasA}, {second, b, hasB}} {
			if want, ok := lookupRaw(doc[4:], is.name); ok != is.ok || !want.Equal(is.value) {
				t.Fatalf("field %q is %v, %v; in the document %v, %v", is.name, is.value, is.ok, want, ok)
			}
		}
		if isCut && first != second && !bytes.Equal(cut, excerptOf(doc, []string{first, second})) {
			t.Fatalf("the excerpt of %v is %v", bsoncore.Document(doc), bsoncore.Document(cut))
		}
	})
}

func FuzzDefinition(f *testing.F) {
	store := newMemory()
	c := open(f, Template, store)
	docs := append(goldenDocuments(), document(bson.D{{Key: "s", Value: "again"}}))
	for _, doc := range docs {
		for range 3 {
			if _, err := c.Encode(nil, doc); err != nil {
				f.Fatal(err)
			}
		}
	}
	for number, definition := range store.kept {
		f.Add(number, definition, []byte{tagTemplate, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	}
	f.Fuzz(func(t *testing.T, number uint32, definition, record []byte) {
		store := newMemory()
		store.kept[number] = definition
		c, err := New(Template, store)
		expected(t, err)
		if err != nil {
			return
		}
		doc, err := c.Decode(nil, record)
		expected(t, err)
		if err != nil {
			return
		}
		if !allSound(doc) {
			t.Fatalf("%x is decoded as %x, which is no BSON", record, doc)
		}
		again, err := c.Encode(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		same(t, again, doc, c)
	})
}
