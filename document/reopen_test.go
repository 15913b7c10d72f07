package document_test

import (
	"bytes"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// TestReopenedTemplates: what the template format has learned about strings (entries of dictionaries, and patterns around numbers)
// is the same after the store was opened again, also read-only.
func TestReopenedTemplates(t *testing.T) {
	dir := t.TempDir()
	s, err := document.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var docs []bson.Raw
	for i := range 8000 {
		var names bson.A
		for j := range 3 {
			n := (3*i + j) % 2000 // texts around the number: enough of them that definitions are long values
			names = append(names, fmt.Sprintf("library-%c%c%c-%d-package", 'a'+n%26, 'a'+n/26%26, 'a'+n/26/26, i), fmt.Sprintf("kind::%c", 'a'+i%26))
		}
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: i}, {Key: "names", Value: names}, {Key: "state", Value: fmt.Sprintf("state %c", 'a'+i%9)}})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	for at := 0; at < len(docs); at += 500 {
		if _, err := s.Database("test").Lookup("c").InsertMany(t.Context(), docs[at:at+500], nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = document.Open(dir, &document.Options{Storage: pando.Options{ReadOnly: true, MustExist: true}, TTLInterval: -1}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	for doc, err := range s.Database("test").Lookup("c").Find(t.Context(), nil, &document.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}}) {
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(doc, docs[n]) {
			t.Fatalf("document %d came back as %s, want %s", n, doc, docs[n])
		}
		n++
	}
	if n != len(docs) {
		t.Fatalf("%d documents came back, want %d", n, len(docs))
	}
}
