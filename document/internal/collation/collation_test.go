package collation

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

func parse(t testing.TB, spec string) (*Collation, error) {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(spec), false, &d); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	doc, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(doc)
}

func mustParse(t testing.TB, spec string) *Collation {
	t.Helper()
	c, err := parse(t, spec)
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return c
}

// orders has strings in ascending order, groups of equal ones, as a MongoDB server sorts them with the specification.
//
//go:embed testdata/orders.jsonl
var orders []byte

func TestOrderIsThatOfMongoDB(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for line := range bytes.Lines(orders) {
		var want struct {
			Spec   json.RawMessage
			Groups [][]string
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		c := mustParse(t, string(want.Spec))
		var words []string
		var group []int
		for i, g := range want.Groups {
			for _, w := range g {
				words, group = append(words, w), append(group, i)
			}
		}
		for i, a := range words {
			for j, b := range words {
				got, expected := c.Compare(a, b), sign(group[i]-group[j])
				if got != expected {
					t.Errorf("%s: %q with %q: %d, want %d", want.Spec, a, b, got, expected)
				}
				if keys := bytes.Compare(c.AppendKey(nil, a), c.AppendKey(nil, b)); keys != got {
					t.Errorf("%s: keys of %q and %q: %d, want %d", want.Spec, a, b, keys, got)
				}
			}
		}
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func TestDefaults(t *testing.T) {
	for _, test := range []struct{ spec, want string }{
		{`{"locale": "en"}`, `{"locale": "en","caseLevel": false,"caseFirst": "off","strength": {"$numberInt":"3"},"numericOrdering": false,"alternate": "non-ignorable","maxVariable": "punct","normalization": false,"backwards": false,"version": "57.1"}`},
		{`{"locale": "fr_CA", "strength": 2.7, "caseLevel": true, "caseFirst": "upper", "numericOrdering": true, "alternate": "shifted", "maxVariable": "space", "normalization": true}`,
			`{"locale": "fr_CA","caseLevel": true,"caseFirst": "upper","strength": {"$numberInt":"2"},"numericOrdering": true,"alternate": "shifted","maxVariable": "space","normalization": true,"backwards": true,"version": "57.1"}`},
		{`{"locale": "fr_CA", "backwards": false, "strength": {"$numberDecimal": "1"}, "caseFirst": null, "version": "57.1"}`, `{"locale": "fr_CA","caseLevel": false,"caseFirst": "off","strength": {"$numberInt":"1"},"numericOrdering": false,"alternate": "non-ignorable","maxVariable": "punct","normalization": false,"backwards": false,"version": "57.1"}`},
		{`{"locale": "simple", "strength": 1}`, `{"locale": "simple"}`},
		{`{}`, `{"locale": "simple"}`},
	} {
		c := mustParse(t, test.spec)
		if got := c.Document().String(); got != test.want {
			t.Errorf("%s became\n%s, want\n%s", test.spec, got, test.want)
		}
		again := mustParse(t, c.Document().String())
		if !again.Equal(c) || !c.Equal(again) {
			t.Errorf("%s: the complete specification means something else", test.spec)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		spec string
		code mongoerror.Code
		want string
	}{
		{`{"strength": 1}`, 40414, "missing"},
		{`{"locale": null}`, 40414, "missing"},
		{`{"locale": 5}`, mongoerror.TypeMismatch, "BSON field 'collation.locale' is the wrong type 'int', expected type 'string'"},
		{`{"locale": ""}`, mongoerror.BadValue, "cannot be the empty string"},
		{`{"locale": "en\u0000x"}`, mongoerror.BadValue, "null byte"},
		{`{"locale": "xx"}`, mongoerror.BadValue, "Field 'locale' is invalid"},
		{`{"locale": "en_GB"}`, mongoerror.BadValue, "Did you mean 'en'?"},
		{`{"locale": "EN"}`, mongoerror.BadValue, "invalid"},
		{`{"locale": "en@collation=phonebook"}`, mongoerror.BadValue, "Did you mean 'en'?"},
		{`{"locale": "en", "strength": 0}`, mongoerror.BadValue, "'collation.strength'"},
		{`{"locale": "en", "strength": {"$numberDouble": "NaN"}}`, mongoerror.BadValue, "'collation.strength'"},
		{`{"locale": "en", "strength": 6}`, 51024, "<= 5, actual value '6'"},
		{`{"locale": "en", "strength": -1}`, 51024, ">= 0"},
		{`{"locale": "en", "strength": "1"}`, mongoerror.TypeMismatch, "expected types '[long, int, decimal, double']"},
		{`{"locale": "en", "caseLevel": 1}`, mongoerror.TypeMismatch, "'bool'"},
		{`{"locale": "en", "caseFirst": "x"}`, mongoerror.BadValue, "Enumeration value 'x' for field 'collation.caseFirst' is not a valid value."},
		{`{"locale": "en", "caseFirst": ""}`, mongoerror.BadValue, "Enumeration value ''"},
		{`{"locale": "en", "caseFirst": "upper", "strength": 2}`, mongoerror.BadValue, "'caseFirst' is invalid unless"},
		{`{"locale": "en", "alternate": "x"}`, mongoerror.BadValue, "Enumeration"},
		{`{"locale": "en", "maxVariable": "x"}`, mongoerror.BadValue, "Enumeration"},
		{`{"locale": "en", "numericOrdering": 1}`, mongoerror.TypeMismatch, "bool"},
		{`{"locale": "en", "normalization": 1}`, mongoerror.TypeMismatch, "bool"},
		{`{"locale": "en", "backwards": "x"}`, mongoerror.TypeMismatch, "Field 'backwards' should be a boolean value, but found: string"},
		{`{"locale": "en", "backwards": true, "strength": 1}`, mongoerror.BadValue, "'backwards' is invalid"},
		{`{"locale": "fr_CA", "strength": 1}`, mongoerror.BadValue, "'backwards' is invalid"},
		{`{"locale": "en", "version": "1"}`, mongoerror.IncompatibleCollationVersion, "Requested collation version 1"},
		{`{"locale": "en", "version": 1}`, mongoerror.TypeMismatch, "string"},
		{`{"locale": "simple", "nope": 1}`, 40415, "BSON field 'collation.nope' is an unknown field."},
	} {
		_, err := parse(t, test.spec)
		if !errors.Is(err, test.code) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %v with %q", test.spec, err, test.code, test.want)
		}
	}
}

// TestEveryLocaleWorks makes a collator of every locale and variant that is accepted.
func TestEveryLocaleWorks(t *testing.T) {
	names := strings.Split(locales, " ")
	for _, v := range strings.Split(variants, " ") {
		names = append(names, strings.Replace(v, "@", "@collation=", 1))
	}
	for _, name := range names {
		for _, more := range []string{``, `, "alternate": "shifted", "strength": 5`, `, "caseLevel": true, "numericOrdering": true`} {
			if c := mustParse(t, `{"locale": "`+name+`"`+more+`}`); c.Compare("m", "n") >= 0 || c.Compare("a1", "a1") != 0 {
				t.Errorf("%s%s does not sort", name, more)
			}
		}
	}
}

// TestKeysAreShort holds what index keys take: two bytes for a letter.
func TestKeysAreShort(t *testing.T) {
	c := mustParse(t, `{"locale": "en"}`)
	for s, want := range map[string]int{"": 0, "abc": 6, "Abc": 6 + 4 + 1, "ab\u00e9": 6 + 2 + 8} {
		if got := len(c.AppendKey(nil, s)); got != want {
			t.Errorf("the key of %q has %d bytes, want %d", s, got, want)
		}
	}
}

func TestNilIsTheSimpleCollation(t *testing.T) {
	var c *Collation
	if c.Compare("B", "a") >= 0 || string(c.AppendKey([]byte("x"), "y")) != "xy" || !c.Equal(nil) || c.Equal(mustParse(t, `{"locale": "en"}`)) {
		t.Error("nil does not compare byte by byte")
	}
}

// TestManyAtOnce is for the race detector: collators keep state.
func TestManyAtOnce(t *testing.T) {
	c := mustParse(t, `{"locale": "en", "strength": 1}`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if c.Compare("caf\u00e9", "CAFE") != 0 || c.Compare("a", "b") >= 0 {
					t.Error("wrong order")
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkCompare(b *testing.B) {
	c := mustParse(b, `{"locale": "en", "strength": 2}`)
	b.ReportAllocs()
	for b.Loop() {
		c.Compare("Benjamin Franklin", "benjamin harrison")
	}
}
