package expression

import "testing"

func BenchmarkEval(b *testing.B) {
	document := value(b, `{"_id": 1, "carrier": "AA", "delay": 17, "distance": 1089.5, "when": {"$date": "2021-03-04T05:06:07Z"}, "tags": ["a", "b", "c"], "legs": [{"n": 1}, {"n": 2}], "a": {"b": {"c": 5}}}`)
	for _, test := range []struct{ name, expression string }{
		{"path", `"$a.b.c"`},
		{"path-array", `"$legs.n"`},
		{"compare", `{"$gt": ["$delay", 15]}`},
		{"and", `{"$and": [{"$gt": ["$delay", 15]}, {"$eq": ["$carrier", "AA"]}]}`},
		{"arithmetic", `{"$multiply": [{"$add": ["$delay", 1]}, "$distance"]}`},
		{"cond", `{"$cond": [{"$gte": ["$delay", 0]}, "late", "early"]}`},
		{"concat", `{"$concat": ["$carrier", "-", "$carrier"]}`},
		{"month", `{"$month": "$when"}`},
		{"format", `{"$dateToString": {"date": "$when", "format": "%Y-%m-%d"}}`},
		{"map", `{"$map": {"input": "$legs", "in": {"$add": ["$$this.n", 1]}}}`},
		{"object", `{"c": "$carrier", "d": {"$abs": "$delay"}}`},
		{"in", `{"$in": ["c", "$tags"]}`},
		{"regex", `{"$regexMatch": {"input": "$carrier", "regex": "^A+"}}`},
	} {
		b.Run(test.name, func(b *testing.B) {
			e := parse(b, test.expression, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Eval(document.Data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	v := value(b, `{"$cond": [{"$and": [{"$gt": ["$delay", 15]}, {"$eq": ["$carrier", "AA"]}]}, {"$concat": ["$carrier", "-"]}, {"$add": [1, 2]}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(v, nil); err != nil {
			b.Fatal(err)
		}
	}
}
