package update

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

func marshal(t *testing.T, d bson.D) bsoncore.Document {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func apply(t *testing.T, doc, update bson.D) error {
	t.Helper()
	u, err := Parse(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: marshal(t, update)}, nil)
	if err == nil {
		_, _, err = u.Apply(nil, marshal(t, doc), false, -1)
	}
	return err
}

func nested(depth int) any {
	var v any = 1
	for range depth {
		v = bson.D{{Key: "a", Value: v}}
	}
	return v
}

func TestDepthIsLimited(t *testing.T) {
	doc := bson.D{{Key: "_id", Value: 1}, {Key: "p", Value: bson.A{}}}
	for _, c := range []struct {
		name string
		ok   bson.D
		bad  bson.D
	}{
		{"$set of a deep value", bson.D{{Key: "x", Value: nested(maxDepth - 1)}}, bson.D{{Key: "x", Value: nested(maxDepth)}}},
		{"$set at a deep path", bson.D{{Key: strings.Repeat("a.", maxDepth-1) + "a", Value: 1}},
			bson.D{{Key: strings.Repeat("a.", maxDepth) + "a", Value: 1}}},
	} {
		if err := apply(t, doc, bson.D{{Key: "$set", Value: c.ok}}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := apply(t, doc, bson.D{{Key: "$set", Value: c.bad}}); !errors.Is(err, mongoerror.Overflow) {
			t.Errorf("%s: %v, want Overflow", c.name, err)
		}
	}
	if err := apply(t, doc, bson.D{{Key: "$push", Value: bson.D{{Key: "p", Value: nested(maxDepth - 2)}}}}); err != nil {
		t.Error(err)
	}
	for _, op := range []string{"$push", "$addToSet"} {
		err := apply(t, doc, bson.D{{Key: op, Value: bson.D{{Key: "p", Value: nested(maxDepth - 1)}}}})
		if !errors.Is(err, mongoerror.Overflow) {
			t.Errorf("%s: %v, want Overflow", op, err)
		}
	}
	if err := apply(t, doc, bson.D{{Key: "$unset", Value: bson.D{{Key: strings.Repeat("a.", 1<<20) + "a", Value: 1}}}}); err == nil {
		t.Error("a path of a million components")
	}
}

func TestSizeIsLimited(t *testing.T) {
	doc := bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: strings.Repeat("x", 9<<20)}}
	err := apply(t, doc, bson.D{{Key: "$set", Value: bson.D{{Key: "b", Value: strings.Repeat("x", 9<<20)}}}})
	if !errors.Is(err, mongoerror.BSONObjectTooLarge) {
		t.Error(err)
	}
	var set bson.D
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		set = append(set, bson.E{Key: name + ".1500000", Value: 1})
	}
	arrays := bson.D{{Key: "_id", Value: 1}}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		arrays = append(arrays, bson.E{Key: name, Value: bson.A{}})
	}
	if err := apply(t, arrays, bson.D{{Key: "$set", Value: set}}); !errors.Is(err, mongoerror.BSONObjectTooLarge) {
		t.Error(err)
	}
}

// An update is applied by many at once, and leaves alone what it is given.
func TestApplyKeepsItsInput(t *testing.T) {
	update := value(t, `{"$set": {"b.c": 1}, "$push": {"a": {"$each": [5], "$sort": 1}}, "$pop": {"d": 1}, "$unset": {"e": ""}}`)
	u, err := Parse(update, nil)
	if err != nil {
		t.Fatal(err)
	}
	doc := value(t, `{"_id": 1, "a": [9, 3, 4], "b": {"c": 2}, "d": [1, 2], "e": 1}`).Data
	before := string(doc)
	var results [4]string
	done := make(chan int)
	for i := range results {
		go func() {
			out, _, err := u.Apply([]byte("dst"), doc, false, -1)
			if err == nil {
				results[i] = string(out)
			}
			done <- i
		}()
	}
	for range results {
		<-done
	}
	if string(doc) != before {
		t.Error("the document was changed")
	}
	for _, r := range results {
		if r != results[0] || !strings.HasPrefix(r, "dst") {
			t.Errorf("%q and %q", r, results[0])
		}
	}
}
