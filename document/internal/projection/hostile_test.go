package projection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// spec makes a specification of many fields.
func spec(n int, field func(b []byte, name string, i int) []byte) bsoncore.Document {
	var b []byte
	for i := range n {
		b = field(b, fmt.Sprintf("f%06d", i), i)
	}
	return bsoncore.BuildDocument(nil, b)
}

// TestComputedDocumentsAreBounded: a short specification cannot make a document of any length.
func TestComputedDocumentsAreBounded(t *testing.T) {
	doc := bsoncore.BuildDocument(nil, bsoncore.AppendStringElement(nil, "s", strings.Repeat("x", 8<<20)), bsoncore.AppendValueElement(nil, "list", value(t, `[{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}]`)))
	computed := spec(13, func(b []byte, name string, _ int) []byte { return bsoncore.AppendStringElement(b, name, "$s") })
	for what, p := range map[string]func() (*Projection, error){
		"$project":   func() (*Projection, error) { return ParseProject(computed, nil) },
		"$addFields": func() (*Projection, error) { return ParseAddFields(computed, nil) },
		"find":       func() (*Projection, error) { return Parse(computed, nil) },
		"elements": func() (*Projection, error) {
			return ParseAddFields(bsoncore.Document(value(t, `{"list.s": "$s"}`).Data), nil)
		},
	} {
		parsed, err := p()
		if err != nil {
			t.Fatal(err)
		}
		if out, err := parsed.Apply(nil, doc); !errors.Is(err, mongoerror.BSONObjectTooLarge) {
			t.Errorf("%s: %d bytes, %v", what, len(out), err)
		}
	}
	parsed, err := ParseProject(computed, nil)
	if err != nil {
		t.Fatal(err)
	}
	short := bsoncore.BuildDocument(nil, bsoncore.AppendStringElement(nil, "s", "x"))
	if _, err := parsed.Apply(make([]byte, maxMade, maxMade+1000), short); err != nil {
		t.Errorf("a short document behind other bytes: %v", err)
	}
}

// TestWhatFindReturnsIsNoLongerThanADocument: what a client could not read is an error, as on a mongod.
func TestWhatFindReturnsIsNoLongerThanADocument(t *testing.T) {
	doc := bsoncore.BuildDocument(nil, bsoncore.AppendStringElement(nil, "s", strings.Repeat("x", 9<<20)))
	for text, want := range map[string]error{`{"a": "$s"}`: nil, `{"a": "$s", "b": "$s"}`: mongoerror.BSONObjectTooLarge, `{"s": 1, "a": "$s"}`: mongoerror.BSONObjectTooLarge} {
		p, err := Parse(value(t, text).Data, nil)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.Apply(nil, doc); !errors.Is(err, want) {
			t.Errorf("find, %s: %d bytes, %v", text, len(out), err)
		}
		if p, err = ParseProject(value(t, text).Data, nil); err != nil {
			t.Fatal(err)
		}
		if out, err := p.Apply(nil, doc); err != nil {
			t.Errorf("$project, %s: %d bytes, %v", text, len(out), err)
		}
	}
}

// then continues a sequence.
func then(t *testing.T, s *Sequence, p *Projection, err error) *Sequence {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	longer, ok := s.Then(p)
	if !ok {
		t.Fatal("the sequence cannot be continued")
	}
	return longer
}

// TestLongSequences: a long chain of stages takes time by its length. By its square it would be minutes.
func TestLongSequences(t *testing.T) {
	unset, err := ParseUnset(value(t, `"f000005"`))
	s := then(t, nil, unset, err)
	for stage := range 500 {
		set, err := ParseAddFields(spec(50, func(b []byte, name string, _ int) []byte {
			return bsoncore.AppendInt32Element(b, fmt.Sprintf("%s_%d", name, stage), 1)
		}), nil)
		s = then(t, s, set, err)
	}
	set, err := ParseAddFields(bsoncore.Document(value(t, `{"f000005": "again"}`).Data), nil)
	s = then(t, s, set, err)
	checkPlace(t, s, 100)
}

// TestPlacesInDocumentsOfManyFields: so it is with the fields of a document.
func TestPlacesInDocumentsOfManyFields(t *testing.T) {
	unset, err := ParseUnset(value(t, `"f000005"`))
	s := then(t, nil, unset, err)
	set, err := ParseAddFields(bsoncore.Document(value(t, `{"f000005": "again"}`).Data), nil)
	checkPlace(t, then(t, s, set, err), 200_000)
}

// checkPlace fails unless a sequence that removes the sixth of so many fields, and sets it again, leaves it where it was.
func checkPlace(t *testing.T, s *Sequence, many int) {
	t.Helper()
	doc := spec(many, func(b []byte, name string, i int) []byte { return bsoncore.AppendInt32Element(b, name, int32(i)) })
	out, err := s.Apply(nil, doc)
	if err != nil {
		t.Fatal(err)
	}
	elements, err := bsoncore.Document(out).Elements()
	if err != nil || len(elements) < many {
		t.Fatal(len(elements), err)
	}
	if e := elements[5]; e.Key() != "f000005" || e.Value().StringValue() != "again" {
		t.Errorf("%s is where f000005 was", e)
	}
}

// TestSequencesThatPart: a sequence may be continued in two ways.
func TestSequencesThatPart(t *testing.T) {
	parsed := func(p *Projection, err error) *Projection {
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var none *Sequence
	start, _ := none.Then(parsed(ParseUnset(value(t, `["a", "b.c"]`))))
	doc := bsoncore.Document(value(t, `{"a": 1, "b": {"c": 1, "d": 1}, "e": 1}`).Data)
	for _, c := range []struct{ set, want string }{
		{`{"a": 2}`, `{"a": 2, "b": {"d": 1}, "e": 1}`},
		{`{"b.c": 2}`, `{"b": {"c": 2, "d": 1}, "e": 1}`},
		{`{"x": 2}`, `{"b": {"d": 1}, "e": 1, "x": 2}`},
		{`{"a": 2, "b.c": 3}`, `{"a": 2, "b": {"c": 3, "d": 1}, "e": 1}`},
	} {
		s, ok := start.Then(parsed(ParseAddFields(value(t, c.set).Data, nil)))
		out, err := s.Apply(nil, doc)
		if want := value(t, c.want).Data; !ok || err != nil || string(out) != string(want) {
			t.Errorf("%s: %s, %v, want %s", c.set, bsoncore.Document(out), err, c.want)
		}
	}
}
