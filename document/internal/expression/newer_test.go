package expression

import "testing"

// TestNewer has the operators of MongoDB 7 that the server which made the corpus does not have: results by its documentation.
func TestNewer(t *testing.T) {
	const document = `{"i": 12, "l": {"$numberLong": "5"}, "t": {"$date": "2021-03-04T05:06:07.008Z"}, "list": [5, 1, 4, 2, 3], "mixed": [1, "a", null, 7], "n": null}`
	for _, test := range []struct{ expression, want string }{
		{`{"$bitAnd": ["$i", 10]}`, `int {"$numberInt":"8"}`},
		{`{"$bitAnd": ["$i", "$l"]}`, `long {"$numberLong":"4"}`},
		{`{"$bitOr": ["$i", 3]}`, `int {"$numberInt":"15"}`},
		{`{"$bitXor": ["$i", 10, 1]}`, `int {"$numberInt":"7"}`},
		{`{"$bitNot": "$i"}`, `int {"$numberInt":"-13"}`},
		{`{"$bitNot": "$n"}`, `null null`},
		{`{"$bitAnd": []}`, `int {"$numberInt":"-1"}`},
		{`{"$bitOr": ["$i", "$n"]}`, `null null`},
		{`{"$bitOr": ["$i", 1.5]}`, `error 14`},
		{`{"$bitNot": 1.5}`, `error 14`},
		{`{"$median": {"input": "$list", "method": "approximate"}}`, `double {"$numberDouble":"3.0"}`},
		{`{"$median": {"input": "$mixed", "method": "approximate"}}`, `double {"$numberDouble":"1.0"}`},
		{`{"$median": {"input": "$n", "method": "approximate"}}`, `null null`},
		{`{"$percentile": {"input": "$list", "p": [0, 0.25, 0.95, 1], "method": "approximate"}}`,
			`array [{"$numberDouble":"1.0"},{"$numberDouble":"2.0"},{"$numberDouble":"5.0"},{"$numberDouble":"5.0"}]`},
		{`{"$percentile": {"input": [], "p": [0.5], "method": "approximate"}}`, `array [null]`},
		{`{"$percentile": {"input": "$list", "p": [2], "method": "approximate"}}`, `error 7750303`},
		{`{"$percentile": {"input": "$list", "p": [], "method": "approximate"}}`, `error 7750300`},
		{`{"$median": {"input": "$list", "method": "exact"}}`, `error 2`},
		{`{"$median": {"input": "$list"}}`, `error 40414`},
		{`{"$dateToString": {"date": "$t", "format": "%d %b %Y, %B"}}`, `string "04 Mar 2021, March"`},
		{`{"$dateFromString": {"dateString": "4 March 2021", "format": "%d %B %Y"}}`, `date {"$date":{"$numberLong":"1614816000000"}}`},
		{`{"$dateFromString": {"dateString": "Mar 4, 2021", "format": "%b %d, %Y"}}`, `date {"$date":{"$numberLong":"1614816000000"}}`},
		{`{"$dateFromString": {"dateString": "2021 063", "format": "%Y %j"}}`, `date {"$date":{"$numberLong":"1614816000000"}}`},
		{`{"$function": {"body": "function() {}", "args": [], "lang": "js"}}`, `error 115`},
		{`{"$log": [{"$numberDecimal": "9"}, 3]}`, `decimal {"$numberDecimal":"2"}`},
		{`{"$round": [-2147483648, -1]}`, `long {"$numberLong":"-2147483650"}`},
	} {
		v, err := evaluate(value(t, test.expression), value(t, document))
		if got := outcome(v, err); got != test.want {
			t.Errorf("%s: got %s, want %s (%v)", test.expression, got, test.want, err)
		}
	}
}

// TestHashedKeys has hashes that a server gave.
func TestHashedKeys(t *testing.T) {
	for v, want := range map[string]int64{
		`12`: -6563062838750079931, `12.7`: -6563062838750079931, `{"$numberDecimal": "12"}`: -6563062838750079931, `"abc"`: 8478485326885698097,
		`null`: 2338878944348059895, `true`: 6405873908747105701, `{"a": 1, "b": "x"}`: -9120163015462966597,
		`{"a": {"b": [1, 2.5]}}`: -2455729632014814444, `[1, "a"]`: 549558944930476852, `{}`: 7980500913326740417, `[]`: 8849948234993459283,
		`{"$oid": "507f1f77bcf86cd799439011"}`: -3048436677993134862, `{"$date": "2021-01-01T00:00:00Z"}`: -1236285792506596090,
		`{"$timestamp": {"t": 5, "i": 6}}`: -6832991088748649283, `{"$minKey": 1}`: 7961148599568647290, `{"$maxKey": 1}`: 5504842513779440750,
		`{"$binary": {"base64": "YWI=", "subType": "00"}}`: -5211738885555603998, `1e300`: 921523596458303250, `{"$numberDouble": "NaN"}`: 4854801880128277513,
		`{"$regularExpression": {"pattern": "a", "options": "i"}}`: -1736204118293582337,
		`{"$numberDecimal": "2147483647.5"}`:                       -6026746251351052787, `{"$numberDouble": "9.223372036854775808e18"}`: 4532067210535695462,
	} {
		if got := HashedKey(value(t, v)); got != want {
			t.Errorf("%s: got %d, want %d", v, got, want)
		}
	}
}
