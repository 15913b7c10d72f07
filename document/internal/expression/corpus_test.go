package expression

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// example is a line of the corpus: an expression, the document it was evaluated on, and what a MongoDB server gave: a value, the
// code of an error, or neither when the result was missing.
type example struct {
	Expression bson.RawValue `bson:"e"`
	Document   bson.RawValue `bson:"d"`
	Value      bson.RawValue `bson:"v"`
	Code       int32         `bson:"c"`
	Newer      bool          `bson:"7"` // by the documentation of MongoDB 7, which the server that was asked is older than
}

func coreValue(v bson.RawValue) bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value}
}

// evaluate parses and evaluates as the server that made the corpus did.
func evaluate(expression, document bsoncore.Value) (bsoncore.Value, error) {
	e, err := Parse(expression, &Options{Now: time.UnixMilli(1_700_000_000_000)})
	if err != nil {
		return bsoncore.Value{}, err
	}
	return e.Eval(document.Data)
}

// outcome writes a result or an error in a form that can be compared.
func outcome(v bsoncore.Value, err error) string {
	if err != nil {
		return fmt.Sprintf("error %d", mongoerror.CodeOf(err))
	}
	if v.Type == 0 {
		return "missing"
	}
	return fmt.Sprintf("%s %s", typeName(v), v)
}

// TestCorpus replays results of a real server.
func TestCorpus(t *testing.T) {
	name := "testdata/corpus.jsonl"
	if other := os.Getenv("PANDO_EXPRESSION_CORPUS"); other != "" {
		name = other
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<24)
	wrong, all := 0, 0
	for lines.Scan() {
		var x example
		if err := bson.UnmarshalExtJSON(lines.Bytes(), true, &x); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all++
		v, err := evaluate(coreValue(x.Expression), coreValue(x.Document))
		got := outcome(v, err)
		want := outcome(coreValue(x.Value), nil)
		if x.Code != 0 {
			want = fmt.Sprintf("error %d", x.Code)
		}
		if got == want || err == nil && near(v, coreValue(x.Value)) {
			continue
		}
		wrong++
		if err != nil {
			got += " (" + err.Error() + ")"
		}
		t.Errorf("%s\n  on %s\n  got  %s\n  want %s", coreValue(x.Expression), coreValue(x.Document), got, want)
	}
	if wrong > 0 {
		t.Errorf("%d of %d are wrong", wrong, all)
	}
}

// TestCollations replays a server's results under collations, over one document.
func TestCollations(t *testing.T) {
	const document = `{"a": "Abc", "b": "abc", "arr": ["a", "A", "b", "B", "\u00e9", "e"], "d": [{"x": "b"}, {"x": "A"}, {"x": "a"}], "num": ["10", "9", "2"]}`
	b, err := os.ReadFile("testdata/collation.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var x struct {
			Collation  bson.Raw      `bson:"l"`
			Expression bson.RawValue `bson:"e"`
			Value      bson.RawValue `bson:"v"`
		}
		if err := bson.UnmarshalExtJSON(lines.Bytes(), true, &x); err != nil {
			t.Fatal(err)
		}
		c, err := collation.Parse(bsoncore.Document(x.Collation))
		if err != nil {
			t.Fatal(err)
		}
		e, err := Parse(coreValue(x.Expression), &Options{Collation: c})
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Eval(value(t, document).Data)
		if got, want := outcome(v, err), outcome(coreValue(x.Value), nil); got != want {
			t.Errorf("%s under %s: got %s, want %s", coreValue(x.Expression), x.Collation, got, want)
		}
	}
}

// near reports whether two results differ only by rounding of transcendental functions: in the last bits of a double, in the last
// digit of a decimal.
func near(a, b bsoncore.Value) bool {
	x, first := number.Of(a)
	y, second := number.Of(b)
	if !first || !second || x.Type() != y.Type() {
		return false
	}
	if !x.IsDecimal() {
		return math.Abs(x.Float64()-y.Float64()) <= 4e-16*math.Abs(y.Float64())
	}
	difference, _ := number.Subtract(x, y).Decimal().Abs().Divide(y.Decimal().Abs()).Float64(), 0
	return difference < 1e-32 || x.Decimal().Compare(y.Decimal()) == 0
}

// value makes a value of extended JSON.
func value(t testing.TB, s string) bsoncore.Value {
	t.Helper()
	var d struct{ V bson.RawValue }
	if err := bson.UnmarshalExtJSON([]byte(`{"v": `+strings.TrimSpace(s)+`}`), false, &d); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return coreValue(d.V)
}
