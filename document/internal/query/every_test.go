package query

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// values are one of each type, and some that are odd.
var values = []string{
	`1`, `0`, `-1`, `{"$numberLong": "-9223372036854775808"}`, `{"$numberDouble": "1.5"}`, `{"$numberDouble": "NaN"}`,
	`{"$numberDouble": "-Infinity"}`, `{"$numberDecimal": "1E+6000"}`, `{"$numberDecimal": "NaN"}`, `"a"`, `""`, `"("`, `"(?=a)(a+)+$"`,
	`null`, `true`, `{"$undefined": true}`, `{"$minKey": 1}`, `{"$maxKey": 1}`, `{"$date": {"$numberLong": "1"}}`,
	`{"$timestamp": {"t": 1, "i": 1}}`, `{"$oid": "0123456789abcdef01234567"}`, `{"$binary": {"base64": "", "subType": "00"}}`,
	`{"$binary": {"base64": "/w==", "subType": "02"}}`, `{"$regularExpression": {"pattern": "a", "options": "i"}}`, `{"$code": "x"}`,
	`{"$code": "x", "$scope": {"a": 1}}`, `{"$symbol": "a"}`, `{"$dbPointer": {"$ref": "a", "$id": {"$oid": "0123456789abcdef01234567"}}}`,
	`{}`, `[]`, `{"a": 1}`, `[1]`, `[[1]]`, `[[1, 2], [3, 4]]`, `[null]`, `[{}]`, `[{"a": 1}]`, `{"$gt": 1}`, `[{"$gt": 1}]`, `{"$ref": "a", "$id": 1}`,
	`{"type": "Point", "coordinates": [1, 2]}`, `{"type": "Polygon", "coordinates": [[]]}`, `{"$geometry": {}}`, `{"$box": []}`,
	`{"$elemMatch": {}}`, `{"$options": "i"}`, `{"$not": {}}`, `{"": 1}`, `["a", "a"]`,
}

// operators are all that filters, paths and schemas may have, and a few that they may not.
var operators = []string{
	"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$not", "$exists", "$type", "$regex", "$options", "$mod", "$size", "$all",
	"$elemMatch", "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear", "$geoWithin", "$within", "$geoIntersects", "$near",
	"$nearSphere", "$geoNear", "$maxDistance", "$where", "$and", "$or", "$nor", "$jsonSchema", "$alwaysTrue", "$alwaysFalse", "$sampleRate",
	"$comment", "$text", "$foo", "$", "$ref", "$id", "$db",
}

var keywordsOfSchemas = []string{
	"type", "bsonType", "required", "properties", "patternProperties", "additionalProperties", "dependencies", "items",
	"additionalItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "minLength", "maxLength",
	"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "enum", "allOf", "anyOf", "oneOf", "not", "title",
	"description", "encrypt", "encryptMetadata", "$ref",
}

// TestEveryOperatorWithEveryType gives each operator a value of each type, and what parses documents of each type: errors have codes,
// Match and MatchPosition agree, and nothing panics.
func TestEveryOperatorWithEveryType(t *testing.T) {
	var docs []path.Fields
	for _, v := range values {
		docs = append(docs, path.Document(document(t, `{"a": `+v+`}`)))
	}
	var filters []string
	for _, v := range values {
		filters = append(filters, `{"a": `+v+`}`, `{"a": {"$geoWithin": {"$geometry": `+v+`}}}`, `{"a": {"$near": {"$geometry": `+v+`}}}`)
		for _, shape := range []string{"$box", "$polygon", "$center", "$centerSphere"} {
			filters = append(filters, fmt.Sprintf(`{"a": {"$geoWithin": {"%s": %s}}}`, shape, v))
		}
		for _, op := range operators {
			filters = append(filters, fmt.Sprintf(`{"%s": %s}`, op, v), fmt.Sprintf(`{"a": {"%s": %s}}`, op, v),
				fmt.Sprintf(`{"a": {"$not": {"%s": %s}}}`, op, v), fmt.Sprintf(`{"a": {"$elemMatch": {"%s": %s}}}`, op, v))
		}
		for _, keyword := range keywordsOfSchemas {
			filters = append(filters, fmt.Sprintf(`{"$jsonSchema": {"properties": {"a": {"%s": %s}}}}`, keyword, v))
		}
	}
	parsed := 0
	for _, s := range filters {
		f, err := Parse(document(t, s), nil)
		if err != nil {
			if mongoerror.CodeOf(err) == 0 {
				t.Errorf("%s: an error without a code: %v", s, err)
			}
			continue
		}
		parsed++
		_ = f.Document()
		for _, doc := range docs {
			matched, err := f.Match(doc)
			again, _, err2 := f.MatchPosition(doc)
			if err != nil || err2 != nil || matched != again && !hasSample(f.Root) {
				t.Errorf("%s on %v: Match %v %v, MatchPosition %v %v", s, doc, matched, err, again, err2)
			}
		}
	}
	t.Logf("%d of %d parsed", parsed, len(filters))
}
