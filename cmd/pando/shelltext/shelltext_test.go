package shelltext

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
)

var now = time.Date(2013, 7, 4, 12, 0, 0, 0, time.UTC)

func TestValue(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{}`, `{}`},
		{`{carrier: 'UA', "delay": {$gt: 10}, }`, `{"carrier":"UA","delay":{"$gt":10}}`},
		{`{'a.b': [1, -2, 3.5, .5, 5., 1e3, 0x1F, 12345678901234567890,]}`, `{"a.b":[1,-2,3.5,0.5,5.0,1000.0,31,12345678901234567890.0]}`},
		{`[true, false, null, undefined, NaN, -Infinity]`,
			`[true,false,null,{"$undefined":true},{"$numberDouble":"NaN"},{"$numberDouble":"-Infinity"}]`},
		{`/^lib[/]c\/x/xi`, `{"$regularExpression":{"pattern":"^lib[/]c/x","options":"ix"}}`},
		{`ObjectId("507f1f77bcf86cd799439011")`, `{"$oid":"507f1f77bcf86cd799439011"}`},
		{`{d: new ISODate('2013-07-04'), e: new Date(1000), f: Date()}`,
			`{"d":{"$date":{"$numberLong":"1372896000000"}},"e":{"$date":{"$numberLong":"1000"}},"f":{"$date":{"$numberLong":"1372939200000"}}}`},
		{`[NumberLong("5"), NumberInt(5), NumberDecimal('1.50'), Double(5), Timestamp(1, 2)]`,
			`[{"$numberLong":"5"},{"$numberInt":"5"},{"$numberDecimal":"1.50"},{"$numberDouble":"5"},{"$timestamp":{"t":1,"i":2}}]`},
		{`[BinData(0, "AQI="), UUID("00112233-4455-6677-8899-aabbccddeeff"), MinKey(), MaxKey]`,
			`[{"$binary":{"base64":"AQI=","subType":"00"}},{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}},{"$minKey":1},{"$maxKey":1}]`},
		{`"tab\t \x41 \u00e4 \u{1F600} \uD83D\uDE00 \'"`, "\"tab\\t A \u00e4 \U0001F600 \U0001F600 '\""},
		{"{ // a comment\n a: /* another */ 1 }", `{"a":1}`},
		{`{"$oid": "507f1f77bcf86cd799439011"}`, `{"$oid":"507f1f77bcf86cd799439011"}`},
	} {
		got, err := Value(c.text, now)
		if err != nil || got != c.want {
			t.Errorf("Value(%s) = %s, %v; want %s", c.text, got, err, c.want)
			continue
		}
		var holder bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(`{"v":`+got+`}`), false, &holder); err != nil {
			t.Errorf("Value(%s) = %s, which is no Extended JSON: %v", c.text, got, err)
		}
	}
}

// TestNumbersKeepTheirKind: a point makes a double, none an integer, of as many bits as it needs.
func TestNumbersKeepTheirKind(t *testing.T) {
	for text, want := range map[string]bson.Type{
		"5": bson.TypeInt32, "5.0": bson.TypeDouble, "5000000000": bson.TypeInt64, "12345678901234567890": bson.TypeDouble, "1e3": bson.TypeDouble,
		"9223372036854775808": bson.TypeDouble, "-9223372036854775808": bson.TypeInt64, "-9223372036854775809": bson.TypeDouble,
	} {
		got, err := Value(text, now)
		var doc bson.Raw
		if err == nil {
			err = bson.UnmarshalExtJSON([]byte(`{"v":`+got+`}`), false, &doc)
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := doc.Lookup("v").Type; got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

// Identifiers without an argument are new ones, as in MongoDB's shell.
func TestNewIdentifiers(t *testing.T) {
	for text, shape := range map[string]string{
		`ObjectId()`: `^\{"\$oid":"[0-9a-f]{24}"\}$`,
		`UUID()`:     `^\{"\$binary":\{"base64":"[A-Za-z0-9+/]{22}==","subType":"04"\}\}$`,
	} {
		one, err := Value(text, now)
		two, again := Value(text, now)
		if err != nil || again != nil || !regexp.MustCompile(shape).MatchString(one) || one == two {
			t.Errorf("%s: %s and %s, %v, %v", text, one, two, err, again)
		}
	}
}

func TestValueRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                          "the text ends where a value is expected",
		`{a: 1`:                     "the text ends where a comma or } is expected",
		`{a 1}`:                     `character 4: '1' stands where a colon is expected`,
		`{a: 1} x`:                  `'x' stands where the end is expected`,
		`{a: b}`:                    "b is no value: strings have quotes",
		`{a: 'x}`:                   "without its closing quote",
		`/x`:                        "without its end",
		`/x/q`:                      `not "q"`,
		`1.2.3`:                     "a number is expected",
		`ObjectId("12")`:            "24 hexadecimal digits",
		`UUID("12")`:                "32 hexadecimal digits",
		`ISODate("yesterday")`:      "no date such as",
		`NumberInt(5000000000)`:     "no integer of 32 bits",
		`Nothing(1)`:                `there is no "Nothing"`,
		`"\uD83D"`:                  "half of a character",
		"\xff":                      "not UTF-8",
		strings.Repeat("[", 100000): "more than 200",
		`f(1, 2)`:                   "takes one value",
		`/* x`:                      "'/'",
	} {
		_, err := Value(text, now)
		if !errors.Is(err, ErrSyntax) || (!strings.Contains(err.Error(), want) && want != "'/'") {
			t.Errorf("Value(%.20q): %v, want %q", text, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Statement
	}{
		{``, Statement{}},
		{`show dbs`, Statement{Words: []string{"show", "dbs"}}},
		{`use my-data;`, Statement{Words: []string{"use", "my-data"}}},
		{`db`, Statement{Words: []string{"db"}}},
		{`db.flights.find({a: 1}, {b: 0}).sort({a: -1}).limit(5);`, Statement{Collection: "flights", Calls: []Call{
			{"find", []string{`{"a":1}`, `{"b":0}`}}, {"sort", []string{`{"a":-1}`}}, {"limit", []string{"5"}}}}},
		{`db.fs.files.find()`, Statement{Collection: "fs.files", Calls: []Call{{"find", nil}}}},
		{`db["odd name"].drop()`, Statement{Collection: "odd name", Calls: []Call{{"drop", nil}}}},
		{`db.getCollection('x').count()`, Statement{Collection: "x", Calls: []Call{{"count", nil}}}},
		{"db.a\n  .find()\n  .count()", Statement{Collection: "a", Calls: []Call{{"find", nil}, {"count", nil}}}},
		{`db.dropDatabase()`, Statement{Calls: []Call{{"dropDatabase", nil}}}},
	} {
		got, err := Parse(c.text, now)
		if err != nil {
			t.Errorf("Parse(%s): %v", c.text, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("Parse(%s): %s", c.text, diff)
		}
	}
	for _, text := range []string{`db.`, `db.a`, `db.a.find(`, `db.a.find() x`, `db[1].find()`, `db.a.find().sort`, `1 + 1 =`, `show (x)`} {
		if s, err := Parse(text, now); !errors.Is(err, ErrSyntax) {
			t.Errorf("Parse(%s) = %+v, %v", text, s, err)
		}
	}
}

func TestOpen(t *testing.T) {
	for text, want := range map[string]bool{
		"db.a.find({": true, "db.a.find({})": false, "db.a.find({x: '}'": true, "db.a.find({x: '}'})": false, "db.a.find().": true, "show dbs": false,
		`db.a.find({x: /\(/})`: false, `db.a.find({x: /O'Brien/i})`: false, `db.a.find({x: /[/(]\/"/})`: false, `db.a.find({x: /[\]/]/`: true,
		"db.a.find() // (see below": false, "db.a.find({ // it's\n": true, "// a, b,": false, "/* it's": true, "/* ( */": false, "/* * /": true,
		"db.a.find({x: /(/": true, "db.a.find({x: 'a\\'(\\\n'})": false, "db.a.find(/* ) */": true, "use a/b": false,
	} {
		if Open(text) != want {
			t.Errorf("Open(%s) is not %v", text, want)
		}
	}
}

// What is a whole statement is never taken for open, whatever stands in its strings, patterns and comments.
func TestStatementsAreNotOpen(t *testing.T) {
	for _, text := range []string{
		`db.people.find({name: /^\(/}).sort({a: 1})`, `db.people.find({name: /O'Brien/})`, "db.people.find({name: 'x'}) // the first (of two", "/* one\n(two */ show dbs",
	} {
		if _, err := Parse(text, now); err != nil || Open(text) {
			t.Errorf("%s: open %v, %v", text, Open(text), err)
		}
	}
}

// A value grows with its text only: what stands in constructors that stand in each other is not escaped once more at each level.
func TestConstructorsInEachOther(t *testing.T) {
	const levels = 16
	for _, name := range []string{"RegExp", "ObjectId", "UUID", "Date", "NumberLong", "NumberDecimal", "Double"} {
		text := strings.Repeat(name+"(", levels) + `"a"` + strings.Repeat(")", levels)
		got, err := Value(text, now)
		if n := len(got); n > 100*len(text) {
			t.Errorf("%s: %d bytes became %d", name, len(text), n)
		}
		if err != nil && len(err.Error()) > 100*len(text) {
			t.Errorf("%s: %d bytes became an error of %d", name, len(text), len(err.Error()))
		}
	}
}

// FuzzParse: whatever is typed, the answer is a statement whose arguments are JSON, or an error of syntax.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`db.a.find({x: {$in: [1, 'b', /c/i]}}).sort({y: -1})`, `use "x"`, `db['a'].f(ObjectId(), new Date(0), NumberLong("1"))`, `db.a.f(.5e-3, 0x1, "\u{1F600}\x00")`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = Open(text) // whatever comes must not make it panic
		s, err := Parse(text, now)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, c := range s.Calls {
			for _, a := range c.Args {
				if !json.Valid([]byte(a)) {
					t.Fatalf("%s became %s", text, a)
				}
			}
		}
	})
}
