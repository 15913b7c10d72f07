package expression

import (
	"testing"
)

// TestEvaluate has one example of each subject; the corpus has the rest.
func TestEvaluate(t *testing.T) {
	const document = `{"_id": 1, "a": {"b": 5}, "list": [{"x": 1}, {"x": 2}, {"y": 3}, 4, [{"x": 9}]], "s": "hello", "n": null}`
	for expression, want := range map[string]string{
		`"$a.b"`:                               `int {"$numberInt":"5"}`,
		`"$list.x"`:                            `array [{"$numberInt":"1"},{"$numberInt":"2"}]`,
		`"$list.0"`:                            `array []`,
		`"$$ROOT.a"`:                           `object {"b": {"$numberInt":"5"}}`,
		`"$$REMOVE"`:                           `missing`,
		`"$none.x"`:                            `missing`,
		`{"$add": ["$a.b", 1.5]}`:              `double {"$numberDouble":"6.5"}`,
		`{"x": "$none", "y": ["$none", "$s"]}`: `object {"y": [null,"hello"]}`,
		`{"$cond": [{"$gt": ["$a.b", 3]}, "big", "small"]}`:                                           `string "big"`,
		`{"$map": {"input": [1, 2], "as": "i", "in": {"$multiply": ["$$i", "$a.b"]}}}`:                `array [{"$numberInt":"5"},{"$numberInt":"10"}]`,
		`{"$let": {"vars": {"CURRENT": "$a"}, "in": ["$b", "$$ROOT.s"]}}`:                             `array [{"$numberInt":"5"},"hello"]`,
		`{"$reduce": {"input": [1, 2, 3], "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}`: `int {"$numberInt":"6"}`,
		`{"$divide": ["$a.b", 0]}`: `error 2`,
		`{"$add": ["$s", 1]}`:      `error 16554`,
		`{"$nothing": 1}`:          `error 168`,
		`"$$nothing"`:              `error 17276`,
	} {
		v, err := evaluate(value(t, expression), value(t, document))
		if got := outcome(v, err); got != want {
			t.Errorf("%s: got %s, want %s", expression, got, want)
		}
	}
}
