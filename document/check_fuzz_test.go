package document

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/codec"
)

// FuzzCheckBSON looks for documents that the door lets in and that others then cannot read.
func FuzzCheckBSON(f *testing.F) {
	for _, d := range []bson.D{
		{}, {{Key: "a", Value: 1}}, {{Key: "a", Value: bson.A{1.5, "x", nil, true}}, {Key: "b", Value: bson.D{{Key: "c", Value: bson.NewObjectID()}}}},
		{{Key: "r", Value: bson.Regex{Pattern: "a", Options: "i"}}, {Key: "b", Value: bson.Binary{Subtype: 2, Data: []byte{1, 2}}}},
		{{Key: "s", Value: bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "x", Value: 1}}}}, {Key: "d", Value: bson.NewDecimal128(1, 2)}},
	} {
		raw, err := bson.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkBSON(b) != nil {
			return
		}
		if err := bson.Raw(b).Validate(); err != nil {
			t.Fatalf("%x: %v", b, err)
		}
		var d bson.D
		if err := bson.Unmarshal(b, &d); err != nil {
			t.Fatalf("%x: %v", b, err)
		}
	})
}

// FuzzProvenDocuments looks for a document that encoding by a template proves valid, and that is not.
func FuzzProvenDocuments(f *testing.F) {
	for _, d := range []bson.D{
		{{Key: "_id", Value: 1}, {Key: "text", Value: "some text"}, {Key: "on", Value: true}, {Key: "at", Value: bson.DateTime(5)}},
		{{Key: "a", Value: bson.A{"x", "y"}}, {Key: "in", Value: bson.D{{Key: "b", Value: bson.A{bson.D{{Key: "c", Value: "z"}}, bson.D{{Key: "c", Value: "z"}}}}}}},
		{{Key: "r", Value: bson.Regex{Pattern: "a", Options: "i"}}, {Key: "b", Value: bson.Binary{Subtype: 2, Data: []byte{1, 2}}}, {Key: "n", Value: nil}},
		{{Key: "s", Value: bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "x", Value: 1}}}}, {Key: "d", Value: bson.NewDecimal128(1, 2)}},
	} {
		raw, err := bson.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(raw), uint16(len(raw)/2), byte(0xff))
	}
	f.Fuzz(func(t *testing.T, known []byte, at uint16, with byte) {
		if checkBSON(known) != nil {
			return
		}
		c, err := codec.New(codec.Template, make(memory))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := c.Encode(nil, known); err != nil {
				t.Fatal(err)
			}
		}
		unseen := bytes.Clone(known)
		unseen[int(at)%len(unseen)] = with
		record, proven, err := c.EncodeUnseen(nil, unseen)
		if err != nil || proven && checkBSON(unseen) != nil {
			t.Fatalf("%x, proven %v: %v", unseen, proven, errors.Join(err, checkBSON(unseen)))
		}
		if len(record) > 0 && checkBSON(unseen) == nil {
			if back, err := c.Decode(nil, record); err != nil || !bytes.Equal(back, unseen) {
				t.Fatalf("%x comes back as %x, %v", unseen, back, err)
			}
		}
	})
}

// memory keeps templates.
type memory map[uint32][]byte

func (m memory) Definitions() codec.Definitions {
	return &inMemory{m, slices.Sorted(maps.Keys(m))}
}

// inMemory reads what a memory keeps.
type inMemory struct {
	m    memory
	rest []uint32
}

func (d *inMemory) Next() (number uint32, definition []byte, ok bool) {
	if len(d.rest) == 0 {
		return 0, nil, false
	}
	number, d.rest = d.rest[0], d.rest[1:]
	return number, d.m[number], true
}

func (d *inMemory) Close() error { return nil }

func (m memory) Store(number uint32, definition []byte) error {
	m[number] = bytes.Clone(definition)
	return nil
}
