package codec

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"
)

// TestSieveIsNeverWrong: what a sieve says of a record is what a look at the fields of the document says.
func TestSieveIsNeverWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := New(Template, newMemory())
		if err != nil {
			t.Fatal(err)
		}
		shapes := []*shape{drawShape(t, 1), drawShape(t, 1)}
		var docs []bsoncore.Document
		for range rapid.IntRange(1, 12).Draw(t, "documents") {
			docs = append(docs, rapid.SampledFrom(shapes).Draw(t, "shape").draw(t))
		}
		// A condition is to have one of some values.
		var fields []string
		var held [][]bsoncore.Value
		var conditions []Condition
		for i := range rapid.IntRange(1, 3).Draw(t, "conditions") {
			of := rapid.SampledFrom(docs).Draw(t, "document")
			name := rapid.SampledFrom([]string{"a", "b", "_id", "nowhere"}).Draw(t, "name")
			if elements, _ := of.Elements(); len(elements) > 0 {
				name = rapid.SampledFrom(elements).Draw(t, "element").Key()
			}
			values := []bsoncore.Value{lookedUp(of, name), lookedUp(rapid.SampledFrom(docs).Draw(t, "another"), name)}
			fields, held = append(fields, name), append(held, values)
			conditions = append(conditions, Condition{Field: name, Holds: func(v bsoncore.Value) bool { return isOneOf(v, held[i]) }})
		}
		s := c.NewSieve(conditions)
		for range 3 { // strings become entries of dictionaries
			for _, doc := range docs {
				record, err := c.Encode(nil, doc)
				if err != nil {
					t.Fatal(err)
				}
				all := Holds
				for i, name := range fields {
					if !isOneOf(lookedUp(doc, name), held[i]) {
						all = Fails
					}
				}
				if got := s.Look(record); got != Unknown && got != all {
					t.Fatalf("%d instead of %d of %s and %v", got, all, doc, fields)
				}
			}
		}
	})
}

// lookedUp is the first value of a name.
func lookedUp(doc bsoncore.Document, name string) bsoncore.Value {
	v, _ := lookupRaw(doc[4:], name)
	return v
}

func isOneOf(v bsoncore.Value, list []bsoncore.Value) bool {
	for _, one := range list {
		if v.Type == one.Type && bytes.Equal(v.Data, one.Data) {
			return true
		}
	}
	return false
}

// TestSieveKnows: small numbers, strings that come again, bools, nulls and missing fields need no look at the record; others do. A record
// that is damaged, or of no template, says nothing.
func TestSieveKnows(t *testing.T) {
	c, err := New(Template, newMemory())
	if err != nil {
		t.Fatal(err)
	}
	var record []byte
	for range 8 {
		if record, err = c.Encode(nil, document(bson.D{
			{Key: "small", Value: int32(-40)}, {Key: "long", Value: int64(50)}, {Key: "again", Value: "JFK"}, {Key: "bool", Value: true}, {Key: "null", Value: nil},
			{Key: "large", Value: int32(12_345)}, {Key: "double", Value: 1.5}, {Key: "array", Value: bson.A{1}}, {Key: "in", Value: bson.D{{Key: "a", Value: 1}}},
		})); err != nil {
			t.Fatal(err)
		}
	}
	always := func(answer bool) func(bsoncore.Value) bool { return func(bsoncore.Value) bool { return answer } }
	for _, field := range []string{"small", "long", "again", "bool", "null", "missing"} {
		asked := 0
		s := c.NewSieve([]Condition{{field, func(bsoncore.Value) bool { asked++; return true }}})
		for range 3 {
			if got := s.Look(record); got != Holds {
				t.Errorf("%s: %d", field, got)
			}
		}
		if asked != 1 {
			t.Errorf("%s: asked %d times", field, asked)
		}
		if got := c.NewSieve([]Condition{{field, always(false)}, {"double", always(true)}}).Look(record); got != Fails {
			t.Errorf("%s does not hold: %d", field, got)
		}
	}
	for _, field := range []string{"large", "double", "array", "in"} {
		if got := c.NewSieve([]Condition{{field, always(false)}}).Look(record); got != Unknown {
			t.Errorf("%s: %d", field, got)
		}
	}
	s := c.NewSieve([]Condition{{"missing", always(false)}})
	for _, bad := range [][]byte{nil, {record[0]}, {record[0] + 1, 0, 0}, record[:3], {tagBSON}, {tagJSON}} {
		if got := s.Look(bad); got != Unknown {
			t.Errorf("%x: %d", bad, got)
		}
	}
}
