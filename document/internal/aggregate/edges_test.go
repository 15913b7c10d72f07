package aggregate

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// TestFarBoundsOfWindows: a bound in units of time is any whole number of 32 bits, and leads to a date, or is an error.
func TestFarBoundsOfWindows(t *testing.T) {
	source := `{"$documents": [{"_id": 1, "t": {"$date": "1970-01-01T00:00:00Z"}}, {"_id": 2, "t": {"$date": "1970-01-02T00:00:00Z"}}]}`
	windowed := func(bounds string) string {
		return `[` + source + `, {"$setWindowFields": {"sortBy": {"t": 1}, "output": {"n": {"$sum": 1, "window": ` + bounds + `}}}},
			{"$project": {"n": 1}}]`
	}
	const both = `{_id: 1, n: 2}
{_id: 2, n: 1}`
	gives(t, windowed(`{"range": [0.0, {"$numberDecimal": "1"}], "unit": "day"}`), both)
	gives(t, windowed(`{"range": [0, 200000000], "unit": "year"}`), both)
	for bounds, code := range map[string]mongoerror.Code{
		`{"range": [0, 1.5], "unit": "day"}`:                                 9,
		`{"range": [0, {"$numberLong": "2147483648"}], "unit": "second"}`:    9,
		`{"range": [0, 500000000], "unit": "year"}`:                          5166406,
		`{"range": [0, 2000000000], "unit": "year"}`:                         5976500,
		`{"documents": [0, {"$numberLong": "2147483648"}]}`:                  9,
		`{"range": [0, {"$numberDecimal": "NaN"}], "unit": "millisecond"}`:   9,
		`{"range": [{"$numberDouble": "-Infinity"}, 0], "unit": "quarter"}`:  9,
		`{"range": [-2000000000, {"$numberLong": "-1"}], "unit": "quarter"}`: 5166406,
	} {
		fails(t, windowed(bounds), code)
	}
	fails(t, `[`+source+`, {"$setWindowFields": {"sortBy": {"t": 1}, "output": {"s": {"$shift": {"output": "$t", "by": 2147483648.0}}}}}]`, 9)
}

// TestWeightsOfMovingAverages: a weight lies between 0 and 1, as a decimal, and NaN does not.
func TestWeightsOfMovingAverages(t *testing.T) {
	averaged := func(alpha string) string {
		return `[{"$documents": [{"_id": 1, "v": 5}, {"_id": 2, "v": 7}]},
			{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"a": {"$expMovingAvg": {"input": "$v", "alpha": ` + alpha + `}}}}},
			{"$match": {"_id": 2}}, {"$project": {"a": {"$round": ["$a", 3]}}}]`
	}
	gives(t, averaged(`0.5`), `{_id: 2, a: 6d}`)
	gives(t, averaged(`{"$numberDecimal": "0.99999999999999999999"}`), `{_id: 2, a: 7d}`)
	gives(t, averaged(`{"$numberDecimal": "1E-400"}`), `{_id: 2, a: 5d}`)
	for _, alpha := range []string{"0", "1", "-0.5", `{"$numberDouble": "NaN"}`, `{"$numberDecimal": "NaN"}`, `{"$numberDouble": "Infinity"}`} {
		fails(t, averaged(alpha), 9)
	}
}

// TestDerivativeOfDecimals has the results of a MongoDB server: a slope in a unit has all digits of a decimal.
func TestDerivativeOfDecimals(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{`{"$numberDecimal": "1.5"}`, `{"$numberDecimal": "2"}`, `{"$numberDecimal":"0.8108108108108108108108108108108107"}`},
		{`0`, `{"$numberDecimal": "1"}`, `{"$numberDecimal":"1.621621621621621621621621621621622"}`},
		{`0`, `3`, `4.864864864865d`},
	} {
		gives(t, `[{"$documents": [{"_id": 1, "t": {"$date": "2021-03-13T22:00:00Z"}, "v": `+test.from+`}, {"_id": 2, "t": {"$date": "2021-03-13T22:37:00Z"}, "v": `+test.to+`}]},
			{"$setWindowFields": {"sortBy": {"t": 1}, "output": {"d": {"$derivative": {"input": "$v", "unit": "hour"}, "window": {"documents": [-1, 0]}}}}},
			{"$match": {"_id": 2}}, {"$project": {"d": 1}}]`, `{_id: 2, d: `+test.want+`}`)
	}
}

// TestLinearFillTellsCloseValuesApart: only values that are equal are repeated, not those whose difference is no number, or is rounded.
func TestLinearFillTellsCloseValuesApart(t *testing.T) {
	filled := `, {"$fill": {"sortBy": {"x": 1}, "output": {"y": {"method": "linear"}}}}, {"$project": {"y": 1}}]`
	gives(t, `[{"$documents": [{"_id": 1, "x": {"$numberLong": "9007199254740993"}, "y": 1}, {"_id": 2, "x": 9007199254740992.0, "y": 2}]}`+filled,
		`{_id: 2, y: 2}
{_id: 1, y: 1}`)
	gives(t, `[{"$documents": [{"_id": 1, "x": {"$numberDouble": "NaN"}, "y": 1}, {"_id": 2, "x": 5, "y": 2}]}`+filled,
		`{_id: 1, y: 1}
{_id: 2, y: 2}`)
	fails(t, `[{"$documents": [{"x": 1}, {"x": 1.0}]}`+filled, 6050106)
}

// TestFillIsPartitionedByNames: a path as partition could be taken for the name of another field.
func TestFillIsPartitionedByNames(t *testing.T) {
	fails(t, `[{"$documents": [{"o": {"x": 1}}]}, {"$fill": {"sortBy": {"_id": 1}, "partitionByFields": ["o.x"], "output": {"y": {"method": "locf"}}}}]`, 16412)
	fails(t, `[{"$fill": {"sortBy": {"_id": 1}, "partitionByFields": ["o\u0000"], "output": {"y": {"method": "locf"}}}}]`, 16411)
}

// TestDensifyPartitionsByWhatAPathLeadsTo: into arrays too, as in expressions.
func TestDensifyPartitionsByWhatAPathLeadsTo(t *testing.T) {
	gives(t, `[{"$documents": [{"n": 1, "o": [{"k": 1}, {"k": 2}]}, {"n": 3, "o": [{"k": 1}, {"k": 2}]}, {"n": 5, "o": [{"k": 3}]}]},
		{"$densify": {"field": "n", "partitionByFields": ["o.k"], "range": {"step": 1, "bounds": "partition"}}}]`,
		`{n: 1, o: [{k: 1}, {k: 2}]}
{o: {k: [1, 2]}, n: 2}
{n: 3, o: [{k: 1}, {k: 2}]}
{n: 5, o: [{k: 3}]}`)
}

// TestDensifyAtTheEdgesOfTypes: a value that the step's type rounds is there once, and behind the last date is none.
func TestDensifyAtTheEdgesOfTypes(t *testing.T) {
	gives(t, `[{"$documents": [{"n": 0.1}]}, {"$densify": {"field": "n", "range": {"step": {"$numberDecimal": "1.5"}, "bounds": "full"}}}]`,
		`{n: 0.1d}`)
	last := `{"$date": {"$numberLong": "9223372036854775806"}}`
	gives(t, `[{"$documents": [{"_id": 1, "t": `+last+`}, {"_id": 2, "t": `+last+`}]},
		{"$densify": {"field": "t", "range": {"step": 1, "unit": "day", "bounds": "full"}}}, {"$project": {"t": 0}}]`, `{_id: 1}
{_id: 2}`)
}

// TestRanksCompareValues: null and a missing value are sorted as one, and arrays by an element; ranks tell them apart.
func TestRanksCompareValues(t *testing.T) {
	for op, want := range map[string]string{"$rank": "1, 2, 3, 3, 5", "$denseRank": "1, 2, 3, 3, 4"} {
		gives(t, `[{"$documents": [{"_id": 1, "m": null}, {"_id": 2}, {"_id": 3, "m": [1, 2]}, {"_id": 4, "m": [1.0, 2]}, {"_id": 5, "m": [1, 3]}]},
			{"$setWindowFields": {"sortBy": {"m": 1}, "output": {"r": {"`+op+`": {}}}}}, {"$group": {"_id": null, "l": {"$push": "$r"}}}]`,
			`{_id: null, l: [`+want+`]}`)
	}
	gives(t, `[{"$documents": [{"_id": 1, "o": [1]}, {"_id": 2, "o": 5}, {"_id": 3}]},
		{"$setWindowFields": {"sortBy": {"o.x": 1}, "output": {"r": {"$rank": {}}}}}, {"$project": {"r": 1}}]`, `{_id: 1, r: 1}
{_id: 2, r: 2}
{_id: 3, r: 2}`)
}

// TestLetMayGivePathsAnotherStart: $field is $$CURRENT.field, whatever that is.
func TestLetMayGivePathsAnotherStart(t *testing.T) {
	gives(t, `[{"$documents": [{"_id": 1, "a": 1, "o": {"a": 2}}, {"_id": 2, "a": 3}]}, {"$lookup": {"let": {"CURRENT": "$o"}, "as": "r",
		"pipeline": [{"$documents": [{"a": 7}]}, {"$project": {"x": "$a", "y": "$$ROOT.a"}}]}}, {"$project": {"r": 1}}]`,
		`{_id: 1, r: [{x: 2, y: 7}]}
{_id: 2, r: [{y: 7}]}`)
	docs, err := numbers(1).run(parseJSON(t, `[{"$documents": [{}]}, {"$project": {"x": "$a.b", "y": {"$getField": "a"}, "z": "$$CURRENT"}}]`), &Options{Database: "test",
		Let: []expression.Variable{{Name: "CURRENT", Value: documentValue(fields("a", int32Value(5)))}}})
	if got, want := shown(docs), `{y: 5, z: {a: 5}}`; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// TestMatchOfNothingComesFirst: a stage in front of a filter that nothing passes has no document to fail at.
func TestMatchOfNothingComesFirst(t *testing.T) {
	failing := `[{"$documents": [{"a": "x"}]}, {"$set": {"e": {"$toInt": "$a"}}}, {"$match": `
	gives(t, failing+`{"$nor": [{}, {"a": 1}]}}]`, "")
	fails(t, failing+`{"$or": [{}, {"e": 1}]}}]`, mongoerror.ConversionFailure)
}

// TestLookupTakesUndefinedForNull: as a filter for null does.
func TestLookupTakesUndefinedForNull(t *testing.T) {
	m := &memory{collections: map[string][]document{
		"c": {fields("_id", int32Value(1)), fields("_id", int32Value(2), "k", int32Value(5))},
		"o": {fields("_id", int32Value(8), "k", value{Type: bsoncore.TypeUndefined}), fields("_id", int32Value(9), "k", int32Value(5))},
	}}
	expect(t, m, `[{"$lookup": {"from": "o", "localField": "k", "foreignField": "k", "as": "l"}}, {"$project": {"l._id": 1}}]`, `{_id: 1, l: [{_id: 8}]}
{_id: 2, l: [{_id: 9}]}`)
}

// withoutCollection runs a pipeline that begins with documents of its own.
func withoutCollection(t *testing.T, pipeline string) ([]document, error) {
	t.Helper()
	return numbers(0).run(parseJSON(t, pipeline), &Options{Database: "test", Now: goldenNow})
}

func gives(t *testing.T, pipeline, want string) {
	t.Helper()
	docs, err := withoutCollection(t, pipeline)
	if got := shown(docs); err != nil || got != want {
		t.Errorf("%s:\n%s, %v, want\n%s", pipeline, got, err, want)
	}
}

func fails(t *testing.T, pipeline string, code mongoerror.Code) {
	t.Helper()
	if _, err := withoutCollection(t, pipeline); mongoerror.CodeOf(err) != code {
		t.Errorf("%s: %v, want the code %d", pipeline, err, code)
	}
}
