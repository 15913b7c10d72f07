package projection

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// value parses extended JSON.
func value(t testing.TB, s string) bsoncore.Value {
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(`{"v": `+s+`}`), false, &raw); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	v := raw.Lookup("v")
	return bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}
}

func benchmark(b *testing.B, spec string) {
	d := bson.D{{Key: "_id", Value: int64(1)}}
	for i := range 19 {
		var v any = i
		if i%3 == 0 {
			v = "a value of some length"
		}
		d = append(d, bson.E{Key: fmt.Sprintf("field%d", i), Value: v})
	}
	d = append(d, bson.E{Key: "sub", Value: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}}})
	doc, err := bson.Marshal(d)
	if err != nil {
		b.Fatal(err)
	}
	p, err := Parse(value(b, spec).Data, nil)
	if err != nil {
		b.Fatal(err)
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = p.Apply(dst[:0], doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInclude(b *testing.B)       { benchmark(b, `{"field3": 1, "field10": 1}`) }
func BenchmarkExclude(b *testing.B)       { benchmark(b, `{"field3": 0, "field10": 0}`) }
func BenchmarkIncludeNested(b *testing.B) { benchmark(b, `{"sub.b": 1}`) }
