package expression

import (
	"bufio"
	"bytes"
	"os"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// seeds gives f every so many examples of the corpus.
func seeds(f *testing.F, step int, add func(x *example)) {
	b, err := os.ReadFile("testdata/corpus.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for i := 0; lines.Scan(); i++ {
		var x example
		if i%step != 0 {
			continue
		}
		if err := bson.UnmarshalExtJSON(lines.Bytes(), true, &x); err != nil {
			f.Fatal(err)
		}
		add(&x)
	}
}

// sound reports whether a value is BSON as the document layer lets it in: bsoncore looks neither at the ends of strings nor at
// everything in embedded documents.
func sound(v bsoncore.Value, depth int) bool {
	if v.Type == bsoncore.TypeMinKey || v.Type == bsoncore.TypeMaxKey {
		return len(v.Data) == 0
	}
	if depth > 100 || size(v.Type, v.Data) != len(v.Data) || v.Validate() != nil {
		return false
	}
	switch v.Type {
	case bsoncore.TypeString, bsoncore.TypeSymbol, bsoncore.TypeJavaScript:
		return len(v.Data) >= 5 && v.Data[len(v.Data)-1] == 0
	case bsoncore.TypeBoolean:
		return v.Data[0] <= 1
	case bsoncore.TypeCodeWithScope, bsoncore.TypeDBPointer:
		return false
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		it := elementsOf(v.Data)
		for {
			_, element, ok := it.next()
			if !ok {
				return len(it.rest) == 0 && len(v.Data) >= 5
			}
			if !sound(element, depth+1) {
				return false
			}
		}
	}
	return true
}

// FuzzParse: any valid BSON is an expression or a MongoDB error.
func FuzzParse(f *testing.F) {
	seeds(f, 5, func(x *example) { f.Add(byte(x.Expression.Type), x.Expression.Value) })
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		v := bsoncore.Value{Type: bsoncore.Type(kind), Data: data}
		if !sound(v, 0) {
			return
		}
		e, err := Parse(v, &Options{Now: time.UnixMilli(1)})
		if err != nil {
			if mongoerror.CodeOf(err) == 0 {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		e.Fields()
	})
}

// FuzzEval: whatever is evaluated on whatever document gives valid BSON or a MongoDB error, and leaves the document alone.
func FuzzEval(f *testing.F) {
	seeds(f, 5, func(x *example) { f.Add(byte(x.Expression.Type), x.Expression.Value, x.Document.Value) })
	f.Fuzz(func(t *testing.T, kind byte, data, document []byte) {
		v := bsoncore.Value{Type: bsoncore.Type(kind), Data: data}
		if !sound(v, 0) || !sound(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: document}, 0) {
			return
		}
		before := bytes.Clone(document)
		e, err := Parse(v, &Options{Now: time.UnixMilli(1)})
		if err != nil {
			return
		}
		result, err := e.Eval(document)
		switch {
		case err != nil && mongoerror.CodeOf(err) == 0:
			t.Fatalf("an error without a code: %v", err)
		case err == nil && result.Type != 0 && result.Validate() != nil:
			t.Fatalf("%s is no valid value: %v", result, result.Validate())
		case !bytes.Equal(before, document):
			t.Fatal("the document was changed")
		}
	})
}
