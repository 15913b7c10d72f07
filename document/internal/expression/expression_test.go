package expression

import (
	"fmt"
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

// TestRegexesAreNotFolded has patterns that match constants, which MongoDB does when a document comes, and what contains them with it.
func TestRegexesAreNotFolded(t *testing.T) {
	for _, text := range []string{
		`{"$regexFindAll": {"input": "2", "regex": "[ab]"}}`,
		`{"$divide": [1, {"$size": {"$regexFindAll": {"input": "2", "regex": "3"}}}]}`,
		`{"$strLenCP": {"$getField": {"field": "match", "input": {"$regexFind": {"input": "2", "regex": "3"}}}}}`,
	} {
		if _, constant := parse(t, text, &Options{}).Constant(); constant {
			t.Errorf("%s is a constant", text)
		}
	}
}

// TestFractionsOfMilliseconds adds them to dates after and before 1970, with what MongoDB gives.
func TestFractionsOfMilliseconds(t *testing.T) {
	for _, test := range []struct {
		start     int64
		fractions map[float64]int64
	}{
		{1_577_836_800_000, map[float64]int64{0.4: 0, 0.5: 0, 0.51: 1, 0.75: 1, 1.5: 1, 2.5: 2, -0.1: 0, -0.5: -1, -0.51: -1, -1.5: -2}},
		{-315_619_200_000, map[float64]int64{0.4: 0, 0.5: 1, 0.51: 1, 1.5: 2, -0.1: 0, -0.5: 0, -0.51: -1, -1.5: -1, -2.5: -2}},
	} {
		for fraction, want := range test.fractions {
			v, err := evaluate(value(t, fmt.Sprintf(`{"$toLong": {"$add": ["$t", %v]}}`, fraction)), value(t, fmt.Sprintf(`{"t": {"$date": {"$numberLong": "%d"}}}`, test.start)))
			if got := outcome(v, err); got != fmt.Sprintf(`long {"$numberLong":"%d"}`, test.start+want) {
				t.Errorf("%d and %v: got %s, want %d more", test.start, fraction, got, want)
			}
		}
	}
}
