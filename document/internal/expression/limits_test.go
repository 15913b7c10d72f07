package expression

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// TestLimits: what explodes ends with an error before it has taken the memory.
func TestLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for _, test := range []struct {
		name, expression string
		code             mongoerror.Code
	}{
		{"a long range", `{"$range": [0, 2147483647]}`, mongoerror.ExceededMemoryLimit},
		{"strings that double", `{"$reduce": {"input": {"$range": [0, 60]}, "initialValue": "0123456789", "in": {"$concat": ["$$value", "$$value"]}}}`, mongoerror.ExceededMemoryLimit},
		{"arrays that double", `{"$reduce": {"input": {"$range": [0, 60]}, "initialValue": [1], "in": {"$concatArrays": ["$$value", "$$value"]}}}`, mongoerror.ExceededMemoryLimit},
		{"maps in maps", `{"$map": {"input": {"$range": [0, 10000]}, "in": {"$map": {"input": {"$range": [0, 10000]}, "in": ["$$this"]}}}}`, mongoerror.ExceededMemoryLimit},
		{"replacements", `{"$replaceAll": {"input": {"$reduce": {"input": {"$range": [0, 20]}, "initialValue": "aa", "in": {"$concat": ["$$value", "$$value"]}}}, "find": "a", "replacement": "0123456789012345678901234567890123456789012345678901234567890123456789"}}`, mongoerror.ExceededMemoryLimit},
		{"filters in filters", `{"$filter": {"input": {"$range": [0, 100000]}, "cond": {"$size": {"$filter": {"input": {"$range": [0, 100000]}, "cond": false}}}}}`, mongoerror.ExceededTimeLimit},
		{"a result beyond 16 MiB", `{"$map": {"input": {"$range": [0, 1500000]}, "in": 1.5}}`, mongoerror.BSONObjectTooLarge},
		{"a result that is too deep", `{"$reduce": {"input": {"$range": [0, 500]}, "initialValue": [], "in": ["$$value"]}}`, mongoerror.Overflow},
		{"a pattern that backtracks", `{"$regexMatch": {"input": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "regex": "^(?=(a|a)+$)(a|a|aa)+$"}}`, 0},
		{"a pattern that backtracks without end", `{"$regexMatch": {"input": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "regex": "^(a+)+(?<!b)$"}}`, 51156},
	} {
		_, err := evaluate(value(t, test.expression), value(t, `{}`))
		if got := mongoerror.CodeOf(err); got != test.code {
			t.Errorf("%s: code %d, want %d (%v)", test.name, got, test.code, err)
		}
	}
}

// TestLengthsOfManyOperands: the length of what would be built may be above 2^32, of which an int of 32 bits has what is left over.
func TestLengthsOfManyOperands(t *testing.T) {
	const length = 1 << 16
	part := strings.Repeat("a", length)
	again := []string{"$s"}
	for len(again) < 1<<32/(length+5)+1 {
		again = append(again, "$s")
	}
	doc, err := bson.Marshal(bson.D{
		{Key: "s", Value: part}, {Key: "concat", Value: bson.D{{Key: "$concat", Value: again}}},
		{Key: "replace", Value: bson.D{{Key: "$replaceAll", Value: bson.D{{Key: "input", Value: "$s"}, {Key: "find", Value: "a"}, {Key: "replacement", Value: "$s"}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	operand := bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}
	for _, name := range []string{"concat", "replace"} {
		if _, err := evaluate(bsoncore.Document(doc).Lookup(name), operand); mongoerror.CodeOf(err) != mongoerror.ExceededMemoryLimit {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReduceReclaims: a loop may leave more garbage than it may keep.
func TestReduceReclaims(t *testing.T) {
	expression := `{"$size": {"$reduce": {"input": {"$range": [0, 5000]}, "initialValue": [], "in": {"$concatArrays": ["$$value", [{"$add": ["$$this", 0.5]}]]}}}}`
	v, err := evaluate(value(t, expression), value(t, `{}`))
	if got := outcome(v, err); got != `int {"$numberInt":"5000"}` {
		t.Error(got)
	}
}

func TestDeepExpressions(t *testing.T) {
	v := value(t, `"$x"`)
	for range maxNesting + 1 {
		v = bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: bsoncore.BuildDocument(nil, bsoncore.AppendValueElement(nil, "$abs", v))}
	}
	if _, err := Parse(v, nil); mongoerror.CodeOf(err) != mongoerror.Overflow {
		t.Error(err)
	}
}

func TestDuplicateNames(t *testing.T) {
	d := bsoncore.BuildDocument(nil, bsoncore.AppendInt32Element(nil, "a", 1), bsoncore.AppendInt32Element(nil, "a", 2))
	if _, err := Parse(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: d}, nil); mongoerror.CodeOf(err) != 16406 {
		t.Error(err)
	}
}

// TestNamesEndAtAZeroByte: what makes a field by a text refuses one that BSON cannot hold.
func TestNamesEndAtAZeroByte(t *testing.T) {
	for text, code := range map[string]mongoerror.Code{
		`{"$setField": {"field": "a\u0000", "input": {}, "value": 1}}`:                  16411,
		`{"$setField": {"field": {"$const": "\u0000"}, "input": "$$ROOT", "value": 1}}`: 16411,
		`{"$arrayToObject": {"$literal": [["a\u0000", 1]]}}`:                            4940400,
		`{"$arrayToObject": {"$literal": [{"k": "a\u0000", "v": 1}]}}`:                  4940401,
	} {
		if _, err := evaluate(value(t, text), value(t, `{"a": 1}`)); mongoerror.CodeOf(err) != code {
			t.Errorf("%s: %v, not the code %d", text, err, code)
		}
	}
	got, err := evaluate(value(t, `{"$unsetField": {"field": "a\u0000", "input": "$$ROOT"}}`), value(t, `{"a": 1}`))
	if outcome(got, err) != `object {"a": {"$numberInt":"1"}}` {
		t.Error(outcome(got, err))
	}
}

// TestConcurrentUse: results stay as they are when the expression is evaluated again, from many goroutines.
func TestConcurrentUse(t *testing.T) {
	e, err := Parse(value(t, `{"s": {"$concat": ["$a", "-", "$a"]}, "z": {"$hour": {"date": "$t", "timezone": "$z"}}, "r": {"$regexMatch": {"input": "$a", "regex": "$a"}}, "b": {"$gt": ["$n", 5]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			name := strings.Repeat(string(rune('a'+i)), i+1)
			d, err := bson.Marshal(bson.D{{Key: "a", Value: name}, {Key: "n", Value: i}, {Key: "t", Value: bson.DateTime(0)}, {Key: "z", Value: "+0" + string(rune('0'+i))}})
			if err != nil {
				t.Error(err)
				return
			}
			first, err := e.Eval(d)
			if err != nil {
				t.Error(err)
				return
			}
			want := bytes.Clone(first.Data)
			for range 500 {
				if v, err := e.Eval(d); err != nil || !bytes.Equal(v.Data, want) || !bytes.Equal(first.Data, want) {
					t.Errorf("%s %v, want %s", v, err, first)
					return
				}
			}
		})
	}
	group.Wait()
}
