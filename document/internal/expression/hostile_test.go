package expression

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// What is in this file took minutes or hours where it took time by the square of something: such a test shows it by ending.

// TestLargeSets: the difference of large sets, in whatever order, is found in the time that it takes to sort them.
func TestLargeSets(t *testing.T) {
	for expression, want := range map[string]string{
		`{"$size": {"$setDifference": [{"$reverseArray": {"$range": [0, 300000]}}, [1, 2, 300000]]}}`: `int {"$numberInt":"299998"}`,
		`{"$setDifference": [[3, 1, 3, 2, 1.0, "x", 5, "x"], [2, 5.0, 7]]}`:                           `array [{"$numberInt":"3"},{"$numberInt":"1"},"x"]`,
		`{"$setDifference": [[], [1]]}`:         `array []`,
		`{"$setDifference": [[null, 1], []]}`:   `array [null,{"$numberInt":"1"}]`,
		`{"$setDifference": [[[1], [1]], [1]]}`: `array [[{"$numberInt":"1"}]]`,
	} {
		v, err := evaluate(value(t, expression), value(t, `{}`))
		if got := outcome(v, err); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%s: %.200s, want %s", expression, got, want)
		}
	}
}

// TestLoopsReclaim: what each round of a loop leaves behind is little, and given back all the same.
func TestLoopsReclaim(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine and much memory: little for the race detector")
	}
	// Of 128 KiB in each round a thousand rounds make more than there may be at once.
	const garbage = `{"$strLenBytes": {"$concat": ["$text", "$text"]}}`
	doc := bsoncore.BuildDocument(nil, bsoncore.AppendStringElement(nil, "text", strings.Repeat("x", 64<<10)))
	for _, test := range []struct{ expression, want string }{
		{`{"$sum": {"$map": {"input": {"$range": [0, 1000]}, "in": ` + garbage + `}}}`, `int {"$numberInt":"131072000"}`},
		{`{"$size": {"$filter": {"input": {"$range": [0, 1000]}, "cond": ` + garbage + `}}}`, `int {"$numberInt":"1000"}`},
		{`{"$reduce": {"input": {"$range": [0, 1000]}, "initialValue": 0, "in": {"$add": ["$$value", ` + garbage + `]}}}`, `int {"$numberInt":"131072000"}`},
		{`{"$last": {"$map": {"input": {"$range": [0, 1000]}, "in": {"$concat": [{"$toString": "$$this"}, {"$toString": ` + garbage + `}]}}}}`, `string "999131072"`},
		{`{"$last": {"$map": {"input": {"$range": [0, 300]}, "in": {"$slice": [{"$range": ["$$this", 30000]}, 2]}}}}`, `array [{"$numberInt":"299"},{"$numberInt":"300"}]`},
		{`{"$last": {"$map": {"input": {"$range": [0, 400]}, "as": "x", "in": {"$map": {"input": {"$range": [0, 3]}, "as": "y", "in": {"$add": ["$$x", "$$y", ` + garbage + `]}}}}}}`,
			`array [{"$numberInt":"131471"},{"$numberInt":"131472"},{"$numberInt":"131473"}]`},
	} {
		v, err := evaluate(value(t, test.expression), bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc})
		if got := outcome(v, err); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(test.want, " ", "") {
			t.Errorf("%s: %.200s, want %s", test.expression, got, test.want)
		}
	}
}

// TestRedactReclaims: nor do the many documents in a document use up what an evaluation may build.
func TestRedactReclaims(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	e := parse(t, `{"$cond": [{"$gt": [{"$size": {"$range": [{"$ifNull": ["$zero", 0]}, 3000]}}, 5]}, "$$DESCEND", "$$PRUNE"]}`, &Options{Redact: true})
	inner := bsoncore.BuildDocument(nil, bsoncore.AppendInt32Element(nil, "a", 1))
	at, list := bsoncore.AppendArrayElementStart(nil, "list")
	for i := range 5000 {
		list = bsoncore.AppendDocumentElement(list, strconv.Itoa(i), inner)
	}
	list, err := bsoncore.AppendArrayEnd(list, at)
	if err != nil {
		t.Fatal(err)
	}
	doc := bsoncore.BuildDocument(nil, list)
	out, keep, err := e.Redact(doc, nil)
	if err != nil || !keep || string(out) != string(doc) {
		t.Errorf("%d bytes of %d, %v, %v", len(out), len(doc), keep, err)
	}
}

// listed makes an array of many elements.
func listed(n int, element func(b []byte, name string, i int) []byte) bsoncore.Value {
	var b []byte
	for i := range n {
		b = element(b, strconv.Itoa(i), i)
	}
	return bsoncore.Value{Type: bsoncore.TypeArray, Data: bsoncore.BuildDocument(nil, b)}
}

// TestLongExpressions: parsing takes time by the length of an expression.
func TestLongExpressions(t *testing.T) {
	const many = longExpression
	name := func(i int) string { return fmt.Sprintf("v%06d", i) }
	var elements []byte
	for i := range many {
		elements = bsoncore.AppendStringElement(elements, name(i), "$a")
	}
	fields := bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: bsoncore.BuildDocument(nil, elements)}
	uses := listed(many, func(b []byte, at string, i int) []byte { return bsoncore.AppendStringElement(b, at, "$$"+name(i)) })
	words := listed(many, func(b []byte, at string, i int) []byte {
		return bsoncore.AppendStringElement(b, at, []string{"x", "y", "$a"}[i%3])
	})
	let := bsoncore.BuildDocument(nil, bsoncore.AppendValueElement(nil, "vars", fields), bsoncore.AppendValueElement(nil, "in", uses))
	one := func(operator string, v bsoncore.Value) bsoncore.Value {
		return bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: bsoncore.BuildDocument(nil, bsoncore.AppendValueElement(nil, operator, v))}
	}
	doc := value(t, `{"a": "z"}`)
	for what, e := range map[string]bsoncore.Value{
		"an object":   fields,
		"variables":   one("$let", bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: let}),
		"a long text": one("$strLenCP", one("$concat", words)),
	} {
		v, err := evaluate(e, doc)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if what == "a long text" && v.AsInt64() != many {
			t.Errorf("%s: %s", what, v)
		}
	}
}

// TestVariablesHideOthers: an inner variable hides one of its name, and gives it back, also where there are many.
func TestVariablesHideOthers(t *testing.T) {
	var vars []string
	for i := range 40 {
		vars = append(vars, fmt.Sprintf(`"v%d": %d`, i, i))
	}
	expression := `{"$let": {"vars": {` + strings.Join(vars, ", ") + `, "a": "$x"}, "in": ["$$v7", {"$let": {"vars": {"v7": "$x"}, "in": ["$$v7", "$$v8"]}}, "$$v7",
		{"$map": {"input": [5], "as": "v8", "in": {"$add": ["$$v8", "$$v7", {"$ifNull": ["$x", 0]}]}}}, "$$v8", {"$map": {"input": ["$x"], "in": "$$this"}}]}}`
	v, err := evaluate(value(t, expression), value(t, `{"x": 100}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(v); strings.NewReplacer(`{"$numberInt":"`, "", `"}`, "", " ", "").Replace(got) != "[7,[100,8],7,[112],8,[100]]" {
		t.Error(got)
	}
	if _, err := Parse(value(t, `[{"$let": {"vars": {`+strings.Join(vars, ", ")+`}, "in": 1}}, "$$v7"]`), nil); err == nil {
		t.Error("a variable is known outside of its $let")
	}
}

// TestManyMatches: finding all matches takes time by the length of the text and their number, and not by the product.
func TestManyMatches(t *testing.T) {
	const many = 100_000
	doc := bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: bsoncore.BuildDocument(nil, bsoncore.AppendStringElement(nil, "s", strings.Repeat("\u00e4b", many)))}
	for _, pattern := range []string{"b", "b(?!x)"} {
		e := `{"$let": {"vars": {"all": {"$regexFindAll": {"input": "$s", "regex": "` + pattern + `"}}}, "in": [{"$size": "$$all"}, {"$last": "$$all.idx"}, {"$first": "$$all.idx"}]}}`
		v, err := evaluate(value(t, e), doc)
		if got := outcome(v, err); strings.ReplaceAll(got, " ", "") != `array[{"$numberInt":"100000"},{"$numberInt":"199999"},{"$numberInt":"1"}]` {
			t.Errorf("%s: %.200s", pattern, got)
		}
	}
}

// TestLongTrims: what is trimmed may be long, and so may be what it is trimmed of.
func TestLongTrims(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	doc := bsoncore.BuildDocument(nil, bsoncore.AppendStringElement(nil, "s", long+"x"+long),
		bsoncore.AppendStringElement(nil, "c", strings.Repeat("b", 1<<20)+"\u00e4a"))
	v, err := evaluate(value(t, `{"$trim": {"input": "$s", "chars": "$c"}}`), bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc})
	if got := outcome(v, err); got != `string "x"` {
		t.Errorf("%.200s", got)
	}
}

// TestComputedConstantsAreBounded: a call does not keep long constants without end that short expressions stand for.
func TestComputedConstantsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	call, kept := new(Call), 0
	text := bsoncore.BuildArray(nil, bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, strings.Repeat("x", 1<<20))},
		bsoncore.Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, "y")})
	concat := bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: bsoncore.BuildDocument(nil, bsoncore.AppendArrayElement(nil, "$concat", text))}
	for range maxFolded>>20 + 8 { // of which the last do not fit into the bound
		e, err := Parse(concat, &Options{Call: call})
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := e.Constant(); ok {
			kept += len(v.Data)
		}
		v, err := e.Eval(bsoncore.Document{5, 0, 0, 0, 0})
		if err != nil || len(v.Data) < 1_000_000 {
			t.Fatal(len(v.Data), err)
		}
	}
	if kept == 0 || kept > maxFolded {
		t.Errorf("constants of %d bytes", kept)
	}
	if _, ok := parse(t, `{"$add": [1, 2]}`, &Options{Call: call}).Constant(); !ok {
		t.Error("short constants are not computed any more")
	}
	call.Rewind(0)
	if _, ok := parse(t, `{"$range": [0, 100000]}`, &Options{Call: call}).Constant(); !ok {
		t.Error("what was given back cannot be used again")
	}
}

// TestComputingConstantsEnds: while a message is parsed nobody looks whether anybody waits for it. So of a million constants that take long most
// are left to the evaluation.
func TestComputingConstantsEnds(t *testing.T) {
	const many = 3000
	list := strings.Repeat(`, {"$sqrt": {"$numberDecimal": "2"}}`, many)[2:]
	call := new(Call)
	e := parse(t, `[`+list+`]`, &Options{Call: call})
	if _, ok := e.Constant(); ok || call.spent > maxFoldedWork+callWork {
		t.Errorf("all is computed: %v, with work of %d", ok, call.spent)
	}
	v, err := e.Eval(bsoncore.Document{5, 0, 0, 0, 0})
	values, _ := v.Array().Values()
	if err != nil || len(values) != many || !values[0].Equal(values[many-1]) {
		t.Errorf("%d values, %v", len(values), err)
	}
	call.Rewind(0)
	if _, ok := parse(t, `{"$sqrt": 2}`, &Options{Call: call}).Constant(); !ok {
		t.Error("what is parsed anew is not computed any more")
	}
}

// TestWorkEndsWithTheCall: an evaluation ends soon when nobody waits for it any more, also where a few rounds of a loop are all the work.
func TestWorkEndsWithTheCall(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	call := new(Call)
	of := func(text string) *Expression {
		call.By(context.Background())
		defer call.By(ctx)
		return parse(t, text, &Options{Call: call})
	}
	list := `{"$map": {"input": {"$range": ["$zero", 3000]}, "in": "some text that is not so short as to be nothing"}}`
	doc := bsoncore.Document(value(t, `{"zero": 0, "text": "aaaaaaaaaaaaaaa!", "half": {"$numberDecimal": "0.5"}}`).Data)
	for _, work := range []string{
		`{"$size": {"$range": ["$zero", 100000]}}`, `{"$in": ["x", "$$list"]}`, `{"$indexOfArray": ["$$list", "x"]}`, `{"$setUnion": ["$$list", []]}`, `{"$last": "$$list"}`,
		`{"$max": "$$list"}`, `{"$concatArrays": ["$$list", "$$list"]}`, `{"$strLenCP": {"$reduce": {"input": [1], "initialValue": "", "in": {"$toString": {"$size": "$$list"}}}}}`,
		`{"$regexMatch": {"input": "$text", "regex": "^(?=(a+)+b)"}}`,
	} {
		e := of(`{"$let": {"vars": {"list": ` + list + `}, "in": {"$size": {"$map": {"input": {"$range": [0, 500]}, "in": ` + work + `}}}}}`)
		if _, err := e.Eval(doc); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", work, err)
		}
	}
	for _, function := range []string{
		`{"$exp": "$half"}`, `{"$ln": "$half"}`, `{"$log10": "$half"}`, `{"$log": ["$half", 3]}`, `{"$pow": ["$half", "$half"]}`, `{"$sqrt": "$half"}`,
		`{"$sin": "$half"}`, `{"$atanh": "$half"}`, `{"$atan2": ["$half", 1]}`,
	} {
		e := of(`{"$size": {"$map": {"input": {"$range": [0, 20]}, "in": ` + function + `}}}`)
		if _, err := e.Eval(doc); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", function, err)
		}
	}
	if _, err := Parse(value(t, `[{"$ln": 2}, {"$ln": 3}]`), &Options{Call: call}); !errors.Is(err, context.Canceled) {
		t.Errorf("constants are computed for nobody: %v", err)
	}
	e := of(`{"$size": ` + list + `}`)
	call.By(context.Background())
	if v, err := e.Eval(doc); err != nil || v.AsInt64() != 3000 {
		t.Error(v, err)
	}
}
