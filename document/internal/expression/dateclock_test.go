package expression

import "testing"

// TestDatesByTheClock: dates are read by the clock of a zone. An hour that comes twice is the second one, one that is skipped is later; a
// year may have fewer than four digits. The results are those of a MongoDB server.
func TestDatesByTheClock(t *testing.T) {
	for _, test := range []struct{ expression, want string }{
		{`{"$toLong": {"$dateFromString": {"dateString": "2024-11-03T01:30:00", "timezone": "America/New_York"}}}`, `long {"$numberLong":"1730615400000"}`},
		{`{"$toLong": {"$dateFromString": {"dateString": "2024-11-03T00:59:59", "timezone": "America/New_York"}}}`, `long {"$numberLong":"1730609999000"}`},
		{`{"$toLong": {"$dateFromString": {"dateString": "2024-11-03T02:00:00", "timezone": "America/New_York"}}}`, `long {"$numberLong":"1730617200000"}`},
		{`{"$toLong": {"$dateFromString": {"dateString": "2024-03-10T02:30:00", "timezone": "America/New_York"}}}`, `long {"$numberLong":"1710055800000"}`},
		{`{"$toLong": {"$dateFromString": {"dateString": "2024-10-27T01:30:00", "timezone": "Europe/London"}}}`, `long {"$numberLong":"1729992600000"}`},
		{`{"$toLong": {"$dateFromParts": {"year": 2018, "month": 2, "day": 17, "hour": 23, "minute": 30, "timezone": "America/Sao_Paulo"}}}`,
			`long {"$numberLong":"1518921000000"}`},
		{`{"$toLong": {"$dateFromString": {"dateString": "10/03/24", "format": "%d/%m/%Y"}}}`, `long {"$numberLong":"-61403875200000"}`},
		{`{"$dateFromParts": {"year": 2024, "isoWeek": 2}}`, `error 40489`},
		{`{"$dateFromParts": {"isoWeekYear": 2024, "month": 2}}`, `error 40525`},
	} {
		v, err := evaluate(value(t, test.expression), value(t, `{}`))
		if got := outcome(v, err); got != test.want {
			t.Errorf("%s: got %s, want %s (%v)", test.expression, got, test.want, err)
		}
	}
}

// TestDatesOfManySeconds: parts of a date carry over, also where they are more than an int of 32 bits holds.
func TestDatesOfManySeconds(t *testing.T) {
	for _, test := range []struct{ expression, want string }{
		{`{"$toLong": {"$dateFromParts": {"year": 1970, "second": 3000000000}}}`, `long {"$numberLong":"3000000000000"}`},
		{`{"$toLong": {"$dateFromParts": {"year": 1970, "minute": 1, "millisecond": 5000000000001}}}`, `long {"$numberLong":"5000000060001"}`},
		{`{"$toLong": {"$dateFromParts": {"year": 1970, "second": -3000000001, "timezone": "+01"}}}`, `long {"$numberLong":"-3000003601000"}`},
	} {
		v, err := evaluate(value(t, test.expression), value(t, `{}`))
		if got := outcome(v, err); got != test.want {
			t.Errorf("%s: got %s, want %s (%v)", test.expression, got, test.want, err)
		}
	}
}

// TestDatesSince1970: a string may have seconds behind an at sign, as many as lead to a date. What is no number leads to none.
func TestDatesSince1970(t *testing.T) {
	for text, want := range map[string]string{
		"@1.5": `date {"$date":{"$numberLong":"1500"}}`, "@-1": `date {"$date":{"$numberLong":"-1000"}}`,
		"@1000000000000000": `error 241`, "@inf": `error 241`, "@nan": `error 241`, "@-NaN": `error 241`, "@": `error 241`,
	} {
		v, err := evaluate(value(t, `{"$toDate": "`+text+`"}`), value(t, `{}`))
		if got := outcome(v, err); got != want {
			t.Errorf("%s: got %s, want %s (%v)", text, got, want, err)
		}
	}
}
