package index

import (
	"bytes"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// document reads extended JSON.
func document(t testing.TB, text string) bsoncore.Document {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	doc, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func parse(t testing.TB, spec string) *Definition {
	t.Helper()
	d, err := Parse(document(t, spec), nil)
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return d
}

// recorded are keys as a MongoDB server makes them: after each index, documents with the number of keys that they have in it, the
// lowest and the highest of them where the server tells, or the code of the error.
//
//go:embed testdata/keys.jsonl
var recorded []byte

func TestKeysAreThoseOfMongoDB(t *testing.T) {
	var d *Definition
	var spec string
	var e Entries
	for line := range bytes.Lines(recorded) {
		var r struct {
			Index, Doc json.RawMessage
			N          int
			Keys       []string
			Code       mongoerror.Code
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Index != nil {
			spec = string(r.Index)
			d = parse(t, spec)
			continue
		}
		doc := document(t, string(r.Doc))
		err := d.Append(&e, path.Document(doc))
		n := len(e.Keys)
		if d.kind == wild {
			n += len(arrayPaths(d, doc)) // the server notes these paths in the index itself
		}
		if mongoerror.CodeOf(err) != r.Code || n != r.N {
			t.Errorf("%s: %s has %d keys (%v), want %d (%d)", spec, r.Doc, n, err, r.N, r.Code)
			continue
		}
		if len(r.Keys) == 0 {
			continue
		}
		for i, at := range []int{0, len(e.Keys) - 1} {
			if want := encoded(t, d, r.Keys[i]); !bytes.Equal(e.Keys[at], want) {
				t.Errorf("%s: key %d of %s is %x, want %x for %s", spec, at, r.Doc, e.Keys[at], want, r.Keys[i])
			}
		}
	}
}

// encoded makes an entry key of the values of a document, given in hexadecimal: extended JSON has no undefined.
func encoded(t testing.TB, d *Definition, values string) (key []byte) {
	doc, err := hex.DecodeString(values)
	if err != nil {
		t.Fatal(err)
	}
	elements := path.ElementsOf(doc)
	for i := range d.Components {
		_, v, _ := elements.Next()
		key = d.AppendValue(key, i, v)
	}
	return key
}

// arrayPaths returns the paths of arrays that a wildcard component takes in.
func arrayPaths(d *Definition, doc []byte) map[string]bool {
	if w := d.wildcard; w.fields != nil {
		doc = w.fields.apply(nil, doc, w.fields.root, !w.id)
	}
	paths := map[string]bool{}
	var walk func(v bsoncore.Value, at string, inArray bool)
	walk = func(v bsoncore.Value, at string, inArray bool) {
		isArray := v.Type == bsoncore.TypeArray
		if isArray && inArray || !isArray && v.Type != bsoncore.TypeEmbeddedDocument {
			return
		}
		if isArray {
			paths[at] = true
		}
		elements := path.ElementsOf(v.Data)
		for name, element, ok := elements.Next(); ok; name, element, ok = elements.Next() {
			below := at
			if !isArray {
				below = join(at, string(name))
			}
			walk(element, below, isArray)
		}
	}
	walk(valueOf(bsoncore.TypeEmbeddedDocument, doc), "", false)
	return paths
}
