package codec

import (
	"bytes"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"
)

// excerptOf is what an excerpt of a document has to be.
func excerptOf(doc bsoncore.Document, names []string) bsoncore.Document {
	at, out := bsoncore.AppendDocumentStart(nil)
	for pos := 4; pos < len(doc)-1; {
		e, _ := readElement(doc, pos)
		if slices.Contains(names, bsoncore.Element(doc[pos:e.next]).Key()) {
			out = append(out, doc[pos:e.next]...)
		}
		pos = e.next
	}
	out, _ = bsoncore.AppendDocumentEnd(out, at)
	return out
}

// TestExcerpt: an excerpt has the fields of the document in their order, whatever the order of the names, and from one template to the
// next, and in the other formats.
func TestExcerpt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]Format{Template, Template, BSON, JSON}).Draw(t, "format")
		c, err := New(f, newMemory())
		if err != nil {
			t.Fatal(err)
		}
		shapes := []*shape{drawShape(t, 2), drawShape(t, 2)}
		names := append([]string{"no such field"}, append(slices.Clone(shapes[0].names), shapes[1].names...)...)
		names = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 6, rapid.ID[string]).Draw(t, "names")
		e, v := NewExcerpt(names), c.NewView()
		for i := range 6 {
			doc := shapes[i%2].draw(t)
			record, err := c.Encode(nil, doc)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Reset(record); err != nil {
				t.Fatal(err)
			}
			out, ok, err := e.Append([]byte("front"), v)
			if err != nil || !ok && (f != Template || string(out) != "front") {
				t.Fatalf("%v, %v of %v", ok, err, doc)
			}
			if want := excerptOf(doc, names); ok && !bytes.Equal(out[5:], want) {
				t.Fatalf("%q of %v: %v, want %v", names, doc, bsoncore.Document(out[5:]), want)
			}
		}
	})
}
