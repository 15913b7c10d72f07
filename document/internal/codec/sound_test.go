package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// allSound goes down into a document as those do who believe the lengths in it, by way of the driver.
func allSound(doc bsoncore.Document) bool {
	elements, err := doc.Elements()
	if err != nil || doc.Validate() != nil || len(doc) != int(binary.LittleEndian.Uint32(doc)) {
		return false
	}
	for _, e := range elements {
		v := e.Value()
		ok := v.Validate() == nil
		switch v.Type {
		case bsoncore.TypeString:
			_, ok = v.StringValueOK()
		case bsoncore.TypeBinary:
			_, _, ok = v.BinaryOK()
		case bsoncore.TypeArray, bsoncore.TypeEmbeddedDocument:
			ok = allSound(v.Data)
		case bsoncore.TypeCodeWithScope:
			var scope bsoncore.Document
			_, scope, ok = v.CodeWithScopeOK()
			ok = ok && allSound(scope)
		}
		if !ok {
			return false
		}
	}
	return true
}

// unsound are documents in the depth of which something is wrong, by what that is.
func unsound() map[string]bsoncore.Document {
	inner := func(name string, typ bsoncore.Type, data ...byte) bsoncore.Document {
		deep := bsoncore.NewDocumentBuilder().AppendValue("x", bsoncore.Value{Type: typ, Data: data}).Build()
		return bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).AppendInt32("n", 1).AppendDocument(name, deep).Build()
	}
	all := map[string]bsoncore.Document{
		"an element behind the end":            inner("a", bsoncore.TypeEmbeddedDocument, 9, 0, 0, 0, 0x10, 'n', 0, 1, 0),
		"an array that is longer":              inner("a", bsoncore.TypeArray, 200, 0, 0, 0, 0),
		"an array shorter than any":            inner("a", bsoncore.TypeArray, 3, 0, 0, 0, 0),
		"a string without an end":              inner("a", bsoncore.TypeString, 2, 0, 0, 0, 'a', 'b'),
		"code whose scope is longer":           inner("a", bsoncore.TypeCodeWithScope, 14, 0, 0, 0, 1, 0, 0, 0, 0, 6, 0, 0, 0, 0),
		"code that is longer than all":         inner("a", bsoncore.TypeCodeWithScope, 14, 0, 0, 0, 9, 0, 0, 0, 0, 5, 0, 0, 0, 0),
		"old binary data with another length":  inner("a", bsoncore.TypeBinary, 5, 0, 0, 0, bson.TypeBinaryBinaryOld, 7, 0, 0, 0, 1),
		"a value of no type":                   inner("a", 0x77, 1, 2, 3),
		"a reference whose text does not end":  inner("a", bsoncore.TypeDBPointer, append([]byte{1, 0, 0, 0, 'a'}, make([]byte, 12)...)...),
		"a length that is not that of the all": append(inner("a", bsoncore.TypeNull), 1, 2, 3),
	}
	deep := bsoncore.NewDocumentBuilder().Build()
	for range maxSound + maxFlattened + 10 { // a template takes some of them
		deep = bsoncore.NewDocumentBuilder().AppendDocument("", deep).Build()
	}
	all["more documents in each other than anybody makes"] = bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).AppendInt32("n", 1).AppendDocument("a", deep).Build()
	return all
}

// forgeries are records of a document that nobody has checked, in each of the ways in which it may lie in one as it is.
func forgeries(t *testing.T, c *Codec, doc bsoncore.Document) map[string][]byte {
	t.Helper()
	wrap := func(v bsoncore.Value) []byte { // as the only element of a mixed array
		top := bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).AppendValue("list", bsoncore.Value{Type: bsoncore.TypeArray, Data: v.Data}).Build()
		record, err := c.Encode(nil, top)
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	array := bsoncore.NewArrayBuilder().AppendDocument(doc).Build()
	return map[string][]byte{
		"as BSON":     append([]byte{tagBSON}, doc...),
		"in an array": wrap(bsoncore.Value{Type: bsoncore.TypeArray, Data: array}),
	}
}

// TestRecordOfWhatIsNoBSON: a record whose checksum is right may have been made by a faulty program, or on purpose. Who reads the document trusts
// the lengths in it.
func TestRecordOfWhatIsNoBSON(t *testing.T) {
	c := open(t, Template, newMemory())
	shape := document(bson.D{{Key: "_id", Value: int32(1)}, {Key: "list", Value: bson.A{}}})
	for range 3 { // so that arrays are packed
		if _, err := c.Encode(nil, shape); err != nil {
			t.Fatal(err)
		}
	}
	for what, doc := range unsound() {
		if Sound(doc) {
			t.Errorf("%s: the document is sound", what)
		}
		for how, record := range forgeries(t, c, doc) {
			if what == "a length that is not that of the all" && how != "as BSON" {
				continue // there is no such length
			}
			if _, err := c.Decode(nil, record); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, %s: decoded: %v", what, how, err)
			}
			v := c.NewView()
			if err := v.Reset(record); err == nil {
				_, a := v.Lookup("a")
				_, list := v.Lookup("list")
				if a || list || !errors.Is(v.Err(), ErrCorrupt) {
					t.Errorf("%s, %s: a view shows it: %v", what, how, v.Err())
				}
				if _, err := v.Document(nil); !errors.Is(err, ErrCorrupt) {
					t.Errorf("%s, %s: the document of a view: %v", what, how, err)
				}
			} else if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, %s: a view: %v", what, how, err)
			}
		}
	}
}

// TestFieldsBesideWhatIsNoBSON: a view shows what lies in front of it, and does not take the rest for missing.
func TestFieldsBesideWhatIsNoBSON(t *testing.T) {
	c := open(t, BSON, nil)
	for what, doc := range unsound() {
		v := c.NewView()
		if err := v.Reset(append([]byte{tagBSON}, doc...)); err != nil {
			continue
		}
		if n, ok := v.Lookup("n"); !ok || n.Int32() != 1 || v.Err() != nil {
			t.Errorf("%s: %v, %v, %v", what, n, ok, v.Err())
		}
	}
	cut := []byte("\x00\x00\x00\x00\x00\x10n\x00\x01\x00\x00\x00\x10cut\x00")
	binary.LittleEndian.PutUint32(cut[1:], uint32(len(cut)-1))
	v := c.NewView()
	if err := v.Reset(cut); err != nil {
		t.Fatal(err)
	}
	if _, ok := v.Lookup("cut"); ok || !errors.Is(v.Err(), ErrCorrupt) {
		t.Errorf("a field that is cut is missing: %v", v.Err())
	}
}

// TestWhatIsSound: what the driver makes is.
func TestWhatIsSound(t *testing.T) {
	docs := append(goldenDocuments(), append(flights(3), packages(3)...)...)
	docs = append(docs, document(bson.D{{Key: "c", Value: bson.CodeWithScope{Code: "x", Scope: bson.D{{Key: "n", Value: 1}}}},
		{Key: "p", Value: bson.DBPointer{DB: "d", Pointer: bson.ObjectID{}}}, {Key: "r", Value: bson.Regex{Pattern: "a", Options: "i"}},
		{Key: "b", Value: bson.Binary{Subtype: bson.TypeBinaryBinaryOld, Data: []byte("old")}}}))
	for i, doc := range docs {
		if !Sound(doc) || !allSound(doc) {
			t.Errorf("document %d: %v", i, doc)
		}
		for n := range doc {
			if Sound(doc[:n]) {
				t.Errorf("document %d: %s", i, fmt.Sprint(n, " bytes of it are sound"))
			}
		}
	}
}
