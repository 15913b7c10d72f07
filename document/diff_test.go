package document

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/update"
)

// many is a number of which the square is minutes.
const many = 60_000

// numbered makes a document of many fields, with a prefix before each number.
func numbered(prefix string, value int32) document {
	var b []byte
	for i := range many {
		b = bsoncore.AppendInt32Element(b, fmt.Sprint(prefix, i), value)
	}
	return bsoncore.BuildDocument(nil, b)
}

func parsedUpdate(t *testing.T, set document) *update.Update {
	t.Helper()
	u, err := update.Parse(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: bsoncore.NewDocumentBuilder().AppendDocument("$set", set).Build()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestDiffOfManyFields: to tell of one more field beside many takes time by their number.
func TestDiffOfManyFields(t *testing.T) {
	old := numbered("f", 0)
	now := bsoncore.BuildDocument(nil, bsoncore.AppendInt32Element(old[4:len(old)-1:len(old)-1], "new", 1))
	added := bsoncore.NewDocumentBuilder().AppendInt32("new", 1).Build()
	diff := document(appendDiff(nil, old, now, parsedUpdate(t, added).Targets(-1)))
	if want := bsoncore.NewDocumentBuilder().AppendDocument(diffInserted, added).Build(); diff.String() != want.String() {
		t.Errorf("%.200s, want %s", diff, want)
	}
}

// TestDiffOfManyElements: so it is with the elements of an array of which each has been named.
func TestDiffOfManyElements(t *testing.T) {
	array := func(value int32) document {
		return bsoncore.NewDocumentBuilder().AppendArray("a", bsoncore.Array(numbered("", value))).Build()
	}
	diff := document(appendDiff(nil, array(0), array(1), parsedUpdate(t, numbered("a.", 1)).Targets(-1)))
	if changed := elementsOf(diff.Lookup("sa").Document()); len(changed) != 1+many {
		t.Errorf("%d elements tell of %d changes: %.200s", len(changed), many, diff)
	}
}

// TestDiffOfPaddedPositions: a path may write the position of an element with zeros in front.
func TestDiffOfPaddedPositions(t *testing.T) {
	array := func(value string) document {
		v, err := toDocument(JSON(`{"a": [{"x": 0}, {"x": ` + value + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	set := bsoncore.NewDocumentBuilder().AppendInt32("a.01.x", 1).Build()
	diff := document(appendDiff(nil, array("0"), array("1"), parsedUpdate(t, set).Targets(-1)))
	if x, err := diff.LookupErr("sa", "s1", "u", "x"); err != nil || x.AsInt64() != 1 {
		t.Errorf("%s, want what is within the element", diff)
	}
}
