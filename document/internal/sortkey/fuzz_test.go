package sortkey

import (
	"bytes"
	"testing"

	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/test/wellformed"
)

// FuzzParse parses whatever a client can send as a sort specification, and sorts by it: nothing may panic, and the key of a document is
// the same each time, behind whatever it is appended to.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"s": {"a.b": 1, "c": -1}, "d": {"a": [{"b": 2}, {"b": [3, null]}], "c": "x"}}`,
		`{"s": {"a.0": 1, "a": {"$meta": "textScore"}}, "d": {"a": [[1, 2], []]}}`,
		`{"s": {"a.b": 1, "c.d": 1}, "d": {"a": [{"b": 1}], "c": [{"d": 2}]}}`,
		`{"s": {"_id": -1, "a.0.0": 1}, "d": {"_id": [], "a": {"0": [1, 2]}}}`,
	} {
		f.Add([]byte(document(f, s)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, whole := wellformed.Document(data)
		if !whole || len(data) > 1<<12 {
			return
		}
		spec, ok := doc.Lookup("s").DocumentOK()
		d, there := doc.Lookup("d").DocumentOK()
		if !ok || !there {
			return
		}
		p, err := Parse(spec, nil)
		if err != nil {
			return
		}
		key, err := p.Append(nil, path.Document(d))
		if err != nil {
			return
		}
		again, err := p.Append([]byte("before"), path.Document(d))
		if err != nil || !bytes.Equal(again, append([]byte("before"), key...)) {
			t.Fatalf("sorted by %s, %s has the key %x, and then %x, %v", spec, d, key, again, err)
		}
	})
}
