package query

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/test/wellformed"
)

// seeds are filters for the fuzz targets: every operator at least once.
var seeds = []string{
	`{"a": 1, "b.c": {"$gt": 1, "$lt": {"$maxKey": 1}}}`, `{"$or": [{"a": {"$in": [1, null, "x"]}}, {"$nor": [{"b": {"$not": {"$size": 1}}}]}]}`,
	`{"a": {"$regex": "^a(b|c)$", "$options": "ix"}}`, `{"a": {"$elemMatch": {"$mod": [2, 1], "$type": ["number", 2]}}}`,
	`{"a": {"$all": [{"$elemMatch": {"b": 1}}]}, "c": {"$bitsAnySet": [1, 70]}}`, `{"a": {"$exists": false}}`,
	`{"$jsonSchema": {"required": ["a"], "properties": {"a": {"bsonType": "int", "minimum": 1}}, "additionalProperties": false}}`,
	`{"$jsonSchema": {"patternProperties": {"^a": {"items": [{"enum": [1]}], "uniqueItems": true}}, "dependencies": {"a": ["b"]}}}`,
	`{"a": {"$geoWithin": {"$geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}}}}`,
	`{"a": {"$geoIntersects": {"$geometry": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}}}}`,
	`{"a": {"$near": [1, 1], "$maxDistance": 2}}`, `{"a": {"$geoWithin": {"$centerSphere": [[1, 1], 0.5]}}}`,
	`{"$sampleRate": 0.5, "$comment": "x", "$alwaysTrue": 1}`,
}

// FuzzParse parses filters that are BSON, but may be anything else: the errors must be those that drivers know, and the normal form
// must parse again.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(document(f, s)))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		data, ok := wellformed.Document(input)
		if !ok {
			return
		}
		filter, err := Parse(data, nil)
		if err != nil {
			if mongoerror.CodeOf(err) == 0 {
				t.Fatalf("%v: an error without a code: %v", bson.Raw(data), err)
			}
			return
		}
		_ = filter.Document()
		_, _ = filter.Fields()
		if _, err := filter.Equalities(); err != nil && mongoerror.CodeOf(err) == 0 {
			t.Fatalf("%v: an error without a code: %v", bson.Raw(data), err)
		}
	})
}

// FuzzMatch matches documents: nothing may panic, and what $nor wraps must have the opposite answer.
func FuzzMatch(f *testing.F) {
	docs := []string{`{"a": 1, "b": {"c": 2}}`, `{"a": [1, {"b": 1}, [2]], "c": "x"}`, `{"a": {"type": "Point", "coordinates": [1, 1]}}`}
	for _, s := range seeds {
		for _, d := range docs {
			f.Add([]byte(document(f, s)), []byte(document(f, d)))
		}
	}
	f.Fuzz(func(t *testing.T, anyFilter, anyDoc []byte) {
		data, ok := wellformed.Document(anyFilter)
		doc, ok2 := wellformed.Document(anyDoc)
		if !ok || !ok2 {
			return
		}
		filter, err := Parse(data, nil)
		if err != nil {
			return
		}
		matched, err := filter.Match(path.Document(doc))
		if err != nil && mongoerror.CodeOf(err) == 0 {
			t.Fatalf("an error without a code: %v", err)
		}
		again, _, err2 := filter.MatchPosition(path.Document(doc))
		random := hasSample(filter.Root)
		if (err == nil) != (err2 == nil) || matched != again && !random {
			t.Fatalf("%v on %v: Match %v %v, MatchPosition %v %v", bson.Raw(data), bson.Raw(doc), matched, err, again, err2)
		}
		list := bsoncore.NewArrayBuilder().AppendDocument(data).Build()
		opposite, parseErr := Parse(bsoncore.NewDocumentBuilder().AppendArray("$nor", list).Build(), nil)
		if parseErr != nil || err != nil || random {
			return // too deep then, or $near
		}
		if other, err := opposite.Match(path.Document(doc)); err == nil && other == matched {
			t.Fatalf("%v on %v: %v, and so within $nor", bson.Raw(data), bson.Raw(doc), matched)
		}
	})
}

func hasSample(n Node) bool {
	if _, ok := n.(*Sample); ok {
		return true
	}
	for _, child := range childrenOf(n) {
		if hasSample(child) {
			return true
		}
	}
	return false
}
