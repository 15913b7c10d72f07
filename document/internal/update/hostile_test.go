package update

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// made applies an update to a document.
func made(t *testing.T, doc, update bsoncore.Document) bsoncore.Document {
	t.Helper()
	u, err := Parse(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: update}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := u.Apply(nil, doc, false, -1)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNamesLikeNumbers: whatever else is set, a field whose name begins as a number is found again. It was there twice afterwards, and two
// values for one were no conflict, as 9 was before 10, 10 before 1a, and 1a before 9.
func TestNamesLikeNumbers(t *testing.T) {
	names := []string{"9", "10", "1a", "1b", "1c", "100", "1", "2", "2a", "1_", "99", "a", "-"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		some := names[:1+r.IntN(len(names))]
		var first, set bson.D
		for i, name := range some {
			first = append(first, bson.E{Key: name, Value: bson.D{{Key: "x", Value: i}}})
			set = append(set, bson.E{Key: name + ".x", Value: -i}, bson.E{Key: name + ".y", Value: i})
		}
		r.Shuffle(len(set), func(i, k int) { set[i], set[k] = set[k], set[i] })
		for _, doc := range []bson.D{{}, first} {
			out := made(t, marshal(t, doc), marshal(t, bson.D{{Key: "$set", Value: set}}))
			var got bson.D
			if err := bson.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, e := range got {
				if inner, ok := e.Value.(bson.D); seen[e.Key] || !ok || len(inner) != 2 {
					t.Fatalf("seed %d: %v made of %v by %v", seed, got, doc, set)
				}
				seen[e.Key] = true
			}
			if len(got) != len(some) {
				t.Fatalf("seed %d: %v made of %v by %v", seed, got, doc, set)
			}
		}
		twice := append(slices.Clone(set), set[r.IntN(len(set))])
		if err := apply(t, bson.D{}, bson.D{{Key: "$set", Value: twice}}); err == nil {
			t.Fatalf("seed %d: %v is no conflict", seed, twice)
		}
	}
}

// TestOrderOfNames: fields are set in the order in which mongod 6.0.5 sets them.
func TestOrderOfNames(t *testing.T) {
	want := strings.Fields("- 0 00 05 0a 1 9 1- 10 1a 2a 9- 99 9a 100 10a 1b2 a")
	for seed := range uint64(20) {
		var set bson.D
		for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(want)) {
			set = append(set, bson.E{Key: want[i], Value: 1})
		}
		elements, err := made(t, marshal(t, bson.D{}), marshal(t, bson.D{{Key: "$set", Value: set}})).Elements()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range elements {
			got = append(got, e.Key())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// TestManyFields: an update of many fields, in whatever order, takes time by their number. By its square it would be minutes.
func TestManyFields(t *testing.T) {
	const many = manyFields
	var set []byte
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(many) {
		set = bsoncore.AppendInt32Element(set, fmt.Sprintf("f%06d", i), int32(i))
	}
	update := bsoncore.BuildDocument(nil, bsoncore.AppendDocumentElement(nil, "$set", bsoncore.BuildDocument(nil, set)))
	elements, err := made(t, marshal(t, bson.D{}), update).Elements()
	if err != nil || len(elements) != many || elements[7].Key() != "f000007" {
		t.Error(len(elements), err)
	}
}

// TestManyRenames: and so do renames, also within a document.
func TestManyRenames(t *testing.T) {
	const many = 50_000
	var fields, renames []byte
	for i := range many {
		fields = bsoncore.AppendInt32Element(fields, fmt.Sprint("f", i), int32(i))
		renames = bsoncore.AppendStringElement(renames, fmt.Sprint("d.f", i), fmt.Sprint("g", i))
	}
	doc := bsoncore.BuildDocument(nil, bsoncore.AppendDocumentElement(nil, "d", bsoncore.BuildDocument(nil, fields)))
	out := made(t, doc, bsoncore.BuildDocument(nil, bsoncore.AppendDocumentElement(nil, "$rename", bsoncore.BuildDocument(nil, renames))))
	if last, err := out.LookupErr(fmt.Sprint("g", many-1)); err != nil || last.AsInt64() != many-1 {
		t.Errorf("the last is %v, %v", last, err)
	}
}

// TestLargeSets: so it is with arrays that count as sets.
func TestLargeSets(t *testing.T) {
	const many = 100_000
	numbers := func(from, to int32) bsoncore.Document {
		var b []byte
		for i := range to - from {
			b = bsoncore.AppendInt32Element(b, fmt.Sprint(i), from+i)
		}
		return bsoncore.BuildDocument(nil, b)
	}
	doc := bsoncore.BuildDocument(nil, bsoncore.AppendArrayElement(nil, "a", numbers(0, many)))
	each := bsoncore.BuildDocument(nil, bsoncore.AppendArrayElement(nil, "$each", numbers(many/2, 2*many)))
	operate := func(operator string, operand bsoncore.Value) int {
		inner := bsoncore.BuildDocument(nil, bsoncore.AppendValueElement(nil, "a", operand))
		out := made(t, doc, bsoncore.BuildDocument(nil, bsoncore.AppendDocumentElement(nil, operator, inner)))
		values, err := out.Lookup("a").Array().Values()
		if err != nil {
			t.Fatal(err)
		}
		return len(values)
	}
	if n := operate("$addToSet", bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: each}); n != 2*many {
		t.Errorf("$addToSet leaves %d", n)
	}
	if n := operate("$pullAll", bsoncore.Value{Type: bsoncore.TypeArray, Data: numbers(many/2, 2*many)}); n != many/2 {
		t.Errorf("$pullAll leaves %d", n)
	}
}

// TestSetsCompareByValue: hashes do not make a difference of 1 and 1.0.
func TestSetsCompareByValue(t *testing.T) {
	var list, others bson.A
	for i := range 50 {
		list = append(list, int32(i), bson.D{{Key: "n", Value: int64(i)}}, bson.A{i, "x"})
		others = append(others, float64(i), bson.D{{Key: "n", Value: float64(i)}}, bson.A{int64(i), "x"})
	}
	doc := marshal(t, bson.D{{Key: "a", Value: list}})
	added := made(t, doc, marshal(t, bson.D{{Key: "$addToSet", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$each", Value: others}}}}}}))
	if string(added) != string(doc) {
		t.Errorf("$addToSet made %s", added)
	}
	left := made(t, doc, marshal(t, bson.D{{Key: "$pullAll", Value: bson.D{{Key: "a", Value: others}}}}))
	if want := marshal(t, bson.D{{Key: "a", Value: bson.A{}}}); string(left) != string(want) {
		t.Errorf("$pullAll left %s", left)
	}
}

// TestFiltersOfElementsAskForNoMoreThanElements: distances and schemas are of documents. The codes are those of mongod 6.0.5.
func TestFiltersOfElementsAskForNoMoreThanElements(t *testing.T) {
	for filter, code := range map[string]mongoerror.Code{
		`{"$jsonSchema": {}}`:                       mongoerror.QueryFeatureNotAllowed,
		`{"$and": [{"x": 1}, {"$jsonSchema": {}}]}`: mongoerror.QueryFeatureNotAllowed,
		`{"x": {"$near": [0, 0]}}`:                  5626500,
		`{"x": {"$exists": true}, "$comment": ""}`:  0,
	} {
		doc := bsoncore.Document(value(t, filter).Data)
		set := value(t, `{"$set": {"a.$[x]": 1}}`)
		if _, err := Parse(set, &Options{ArrayFilters: []bsoncore.Document{doc}}); mongoerror.CodeOf(err) != code {
			t.Errorf("array filter %s: %v", filter, err)
		}
		if _, err := Parse(value(t, `{"$pull": {"a": `+filter+`}}`), nil); mongoerror.CodeOf(err) != code {
			t.Errorf("$pull of %s: %v", filter, err)
		}
	}
}

// TestPipelinesHaveAsManyStagesAsInMongoDB: a thousand.
func TestPipelinesHaveAsManyStagesAsInMongoDB(t *testing.T) {
	for n, code := range map[int]mongoerror.Code{1000: 0, 1001: mongoerror.FailedToParse} {
		stages := strings.Repeat(`{"$set": {"x": 1}}, `, n-1) + `{"$unset": "y"}`
		if _, err := Parse(value(t, `[`+stages+`]`), nil); mongoerror.CodeOf(err) != code {
			t.Errorf("%d stages: %v", n, err)
		}
	}
}
