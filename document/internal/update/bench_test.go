package update

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func benchmark(b *testing.B, update string) {
	var d bson.D
	d = append(d, bson.E{Key: "_id", Value: int64(1)})
	for i := range 19 {
		var v any = i
		if i%3 == 0 {
			v = "a value of some length"
		}
		d = append(d, bson.E{Key: fmt.Sprintf("field%d", i), Value: v})
	}
	d = append(d, bson.E{Key: "tags", Value: bson.A{1, 2, 3, 4, 5, 6, 7, 8}})
	doc, err := bson.Marshal(d)
	if err != nil {
		b.Fatal(err)
	}
	u, err := Parse(value(b, update), nil)
	if err != nil {
		b.Fatal(err)
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst, _, err = u.Apply(dst[:0], doc, false, -1)
		if err != nil {
			b.Fatal(err)
		}
	}
}

// value parses extended JSON.
func value(t testing.TB, s string) bsoncore.Value {
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(`{"v": `+s+`}`), false, &raw); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	v := raw.Lookup("v")
	return bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}
}

func BenchmarkSet(b *testing.B) { benchmark(b, `{"$set": {"field10": 99}}`) }
func BenchmarkInc(b *testing.B) { benchmark(b, `{"$inc": {"field10": 1}}`) }
func BenchmarkSetAndInc(b *testing.B) {
	benchmark(b, `{"$set": {"field18": "x"}, "$inc": {"field10": 1}}`)
}
func BenchmarkPush(b *testing.B)        { benchmark(b, `{"$push": {"tags": 9}}`) }
func BenchmarkReplace(b *testing.B)     { benchmark(b, `{"a": 1, "b": 2}`) }
func BenchmarkSetPosition(b *testing.B) { benchmark(b, `{"$set": {"tags.3": 9}}`) }

func BenchmarkParse(b *testing.B) {
	u := value(b, `{"$set": {"field10": 99, "name": "x"}, "$inc": {"n": 1}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(u, nil); err != nil {
			b.Fatal(err)
		}
	}
}
