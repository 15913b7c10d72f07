package codec

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// nestedArrays is a document with arrays in arrays: each has a document that step makes of the array below, and what step puts beside it.
func nestedArrays(depth int, step func(v any) bson.A) bsoncore.Document {
	var v any = bson.A{}
	for range depth {
		v = step(v)
	}
	return document(bson.D{{Key: "top", Value: v}})
}

// TestNestedArraysOfTwoShapes: how long a document takes does not double with each array in which documents of two shapes stand. With 45
// of them, which is what a document may have, it took for ever.
func TestNestedArraysOfTwoShapes(t *testing.T) {
	for _, depth := range []int{1, 2, 45, MaxNesting + 2} {
		for _, step := range []func(v any) bson.A{
			func(v any) bson.A { return bson.A{bson.D{{Key: "a", Value: v}}, bson.D{{Key: "b", Value: int32(1)}}} },
			func(v any) bson.A { return bson.A{bson.D{{Key: "a", Value: v}}, bson.D{{Key: "a", Value: int32(1)}}} },
			func(v any) bson.A {
				return bson.A{bson.D{{Key: "a", Value: v}, {Key: "b", Value: int32(1)}}, bson.D{{Key: "a", Value: bson.A{}}, {Key: "c", Value: int32(1)}}}
			},
			func(v any) bson.A {
				return bson.A{bson.D{{Key: "a", Value: bson.A{}}}, bson.D{{Key: "a", Value: v}}, bson.D{{Key: "a", Value: bson.A{}}, {Key: "b", Value: "x"}}}
			},
		} {
			c, doc := open(t, Template, newMemory()), nestedArrays(depth, step)
			for range 3 {
				record, err := c.Encode(nil, doc)
				if err != nil {
					t.Fatal(err)
				}
				same(t, record, doc, c)
			}
		}
	}
}

// TestNestedArraysOfWhatIsNoBSON: so it is with documents of one shape that are no valid BSON, which nobody has found out yet.
func TestNestedArraysOfWhatIsNoBSON(t *testing.T) {
	step := func(v any) bson.A { return bson.A{bson.D{{Key: "a", Value: v}, {Key: "truth", Value: true}}} }
	doc := nestedArrays(45, step)
	truth := []byte("\x08truth\x00\x01")
	wrong := bytes.ReplaceAll(doc, truth, append(truth[:len(truth)-1:len(truth)-1], 2))
	c := open(t, Template, newMemory())
	for _, d := range []bsoncore.Document{doc, doc, wrong, doc} {
		record, err := c.Encode(nil, d)
		if err != nil {
			t.Fatal(err)
		}
		same(t, record, d, c)
		if _, proven, err := c.EncodeUnseen(nil, wrong); proven || err != nil {
			t.Fatalf("a bool of 2 counts as valid: %v", err)
		}
	}
}

// TestDatesFarApart: a date that is as far from the one that it is relative to as can be packed, and a millisecond further.
func TestDatesFarApart(t *testing.T) {
	dates := func(a, b int64) bsoncore.Document {
		return document(bson.D{{Key: "a", Value: bson.DateTime(a)}, {Key: "b", Value: bson.DateTime(b)}})
	}
	const far = 1 << 60
	c := open(t, Template, newMemory())
	for _, doc := range []bsoncore.Document{
		dates(far-5, far-4), dates(far-5, far-4), dates(-far, far-1), dates(-far, far), dates(-far, far+1), dates(far, -far), dates(far, -far-1),
	} {
		record, err := c.Encode(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		same(t, record, doc, c)
	}
}
