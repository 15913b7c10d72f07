package expression

import (
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

func parse(t testing.TB, s string, o *Options) *Expression {
	t.Helper()
	e, err := Parse(value(t, s), o)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return e
}

func TestConstantsAndPaths(t *testing.T) {
	for s, want := range map[string]string{
		`{"$add": [1, 2]}`: `int {"$numberInt":"3"}`, `{"a": [1, {"$concat": ["x", "y"]}]}`: `object {"a": [{"$numberInt":"1"},"xy"]}`,
		`"$$NOW"`: `date {"$date":{"$numberLong":"5"}}`, `"$$REMOVE"`: `missing`, `{"$literal": "$x"}`: `string "$x"`, `"$$given.a"`: `int {"$numberInt":"1"}`,
		`{"$ifNull": [null, "x", "$a"]}`: `string "x"`, `{"$ifNull": [null, "$a", "x"]}`: "",
		`"$a"`: "", `{"$rand": {}}`: "", `"$$open"`: "", `{"$add": [{"$rand": {}}, 1]}`: "",
	} {
		o := &Options{Now: time.UnixMilli(5), Let: []Variable{{"given", value(t, `{"a": 1}`)}, {Name: "open"}}}
		v, ok := parse(t, s, o).Constant()
		if got := outcome(v, nil); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %v %s, want %s", s, ok, got, want)
		}
	}
	if path, ok := parse(t, `"$a.b"`, nil).FieldPath(); !ok || path != "a.b" {
		t.Errorf("%q %v", path, ok)
	}
	for _, s := range []string{`"$$ROOT"`, `{"$abs": "$a"}`, `"x"`} {
		if path, ok := parse(t, s, nil).FieldPath(); ok {
			t.Errorf("%s is taken for the path %s", s, path)
		}
	}
}

func TestFields(t *testing.T) {
	for _, test := range []struct {
		expression string
		want       []string
		whole      bool
	}{
		{`{"$add": ["$a.b", "$c", "$a.b", 1]}`, []string{"a.b", "c"}, false},
		{`{"$map": {"input": "$list", "in": {"$add": ["$$this.x", "$y"]}}}`, []string{"list", "y"}, false},
		{`{"$mergeObjects": ["$$ROOT", {"x": "$a"}]}`, []string{"a"}, true},
		{`{"$let": {"vars": {"v": "$a"}, "in": {"$cond": [true, "$b", "$$v.c"]}}}`, []string{"a", "b"}, false},
		{`{"$getField": "x"}`, nil, true},
		{`{"$reduce": {"input": "$a", "initialValue": "$b", "in": "$c"}}`, []string{"a", "c", "b"}, false},
		{`{"$switch": {"branches": [{"case": "$a", "then": "$b"}]}}`, []string{"a", "b"}, false},
		{`{"$zip": {"inputs": ["$a"], "useLongestLength": true, "defaults": ["$b"]}}`, []string{"a", "b"}, false},
		{`{"$meta": "textScore"}`, nil, false},
	} {
		paths, whole := parse(t, test.expression, nil).Fields()
		if !slices.Equal(paths, test.want) || whole != test.whole {
			t.Errorf("%s: %v %v", test.expression, paths, whole)
		}
	}
}

// TestNullEndsUnions: what is behind a null does not count, nor does it fail.
func TestNullEndsUnions(t *testing.T) {
	for _, s := range []string{
		`{"$setUnion": ["$none", {"$firstN": {"n": 1, "input": "$none"}}]}`, `{"$setIntersection": [["a"], "$none", {"$firstN": {"n": 1, "input": "$none"}}]}`,
	} {
		if got := outcome(parse(t, s, nil).Eval(value(t, `{}`).Data)); got != "null null" {
			t.Errorf("%s: %s", s, got)
		}
	}
}

func TestVariables(t *testing.T) {
	o := &Options{Let: []Variable{{Name: "open"}, {Name: "other"}}}
	e := parse(t, `[{"$add": ["$$open", "$a"]}, {"$type": "$$other"}]`, o)
	v, err := e.EvalWith(value(t, `{"a": 1}`).Data, []Variable{{"open", number.Int32(5).Value()}, {"unknown", number.Int32(6).Value()}})
	if got := outcome(v, err); got != `array [{"$numberInt":"6"},"missing"]` {
		t.Error(got)
	}
	v, err = e.Eval(value(t, `{"a": 1}`).Data) // what an evaluation was given does not stay
	if got := outcome(v, err); got != `array [null,"missing"]` {
		t.Error(got)
	}
	if _, err := Parse(value(t, `"$$NOW"`), nil); mongoerror.CodeOf(err) != 51144 {
		t.Error(err)
	}
}

func TestMeta(t *testing.T) {
	e := parse(t, `{"$multiply": [{"$meta": "textScore"}, 2]}`, &Options{Meta: func(kind string) bsoncore.Value {
		return number.Double(float64(len(kind))).Value()
	}})
	v, err := e.EvalWith(value(t, `{}`).Data, []Variable{{MetaVariable("textScore"), number.Double(1.5).Value()}})
	if got := outcome(v, err); got != `double {"$numberDouble":"3.0"}` {
		t.Error(got)
	}
	v, err = e.Eval(value(t, `{}`).Data)
	if got := outcome(v, err); got != `double {"$numberDouble":"18.0"}` || !slices.Equal(e.Metas(), []string{"textScore"}) {
		t.Error(got, e.Metas())
	}
}

func TestRedact(t *testing.T) {
	const document = `{"level": 1, "a": {"level": 5, "x": 1}, "b": [{"level": 1, "c": {"level": 9}}, {"level": 7}, 3, [{"level": 8}]], "keep": 2}`
	for _, test := range []struct{ expression, want string }{
		{`{"$cond": [{"$gt": ["$level", 3]}, "$$PRUNE", "$$DESCEND"]}`,
			`{"level": {"$numberInt":"1"},"b": [{"level": {"$numberInt":"1"}},{"$numberInt":"3"},[]],"keep": {"$numberInt":"2"}}`},
		{`{"$cond": [{"$eq": ["$level", 5]}, "$$KEEP", {"$cond": [{"$eq": ["$$ROOT.keep", 2]}, "$$DESCEND", "$$PRUNE"]}]}`, value(t, document).Document().String()},
		{`"$$PRUNE"`, ``},
		{`"$$KEEP"`, value(t, document).Document().String()},
		{`"$level"`, `error 17053`},
	} {
		d, keep, err := parse(t, test.expression, &Options{Redact: true}).Redact(value(t, document).Data, nil)
		got := d.String()
		if err != nil {
			got = outcome(bsoncore.Value{}, err)
		}
		if got != test.want || keep != (test.want != "" && err == nil) {
			t.Errorf("%s: %v %s, want %s", test.expression, keep, got, test.want)
		}
	}
	if _, _, err := parse(t, `"$a"`, nil).Redact(value(t, document).Data, nil); err == nil {
		t.Error("an expression that was not parsed for $redact")
	}
	if _, err := Parse(value(t, `"$$KEEP"`), nil); mongoerror.CodeOf(err) != 17276 {
		t.Error(err)
	}
}
