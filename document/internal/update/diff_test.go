package update

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/test/wellformed"
)

func fromText(t testing.TB, text string) bsoncore.Document {
	t.Helper()
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), false, &raw); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return bsoncore.Document(raw)
}

func TestDiffs(t *testing.T) {
	const doc = `{"_id": 1, "l": [1, {"x": 1}, 3], "o": {"a": 1, "b": 2}, "x": 1}`
	for _, c := range []struct{ diff, want string }{
		{`{}`, doc},
		{`{"u": {"x": 2}}`, `{"_id": 1, "l": [1, {"x": 1}, 3], "o": {"a": 1, "b": 2}, "x": 2}`},
		{`{"u": {"new": 2}}`, `{"_id": 1, "l": [1, {"x": 1}, 3], "o": {"a": 1, "b": 2}, "x": 1, "new": 2}`},
		{`{"i": {"o": 2, "z": 3}}`, `{"_id": 1, "l": [1, {"x": 1}, 3], "x": 1, "o": 2, "z": 3}`},
		{`{"d": {"o": false, "gone": false}}`, `{"_id": 1, "l": [1, {"x": 1}, 3], "x": 1}`},
		{`{"so": {"u": {"a": 3}, "d": {"b": false}}}`, `{"_id": 1, "l": [1, {"x": 1}, 3], "o": {"a": 3}, "x": 1}`},
		{`{"sl": {"a": true, "l": 2}}`, `{"_id": 1, "l": [1, {"x": 1}], "o": {"a": 1, "b": 2}, "x": 1}`},
		{`{"sl": {"a": true, "s1": {"i": {"y": 2}}, "u4": 5}}`, `{"_id": 1, "l": [1, {"x": 1, "y": 2}, 3, null, 5], "o": {"a": 1, "b": 2}, "x": 1}`},
		{`{"sl": {"u": {"x": 1}}, "sgone": {"u": {"x": 1}}}`, `{"_id": 1, "l": null, "o": {"a": 1, "b": 2}, "x": 1}`},
		{`{"so": {"a": true, "u0": 1}}`, `{"_id": 1, "l": [1, {"x": 1}, 3], "o": null, "x": 1}`},
	} {
		u, err := ParseDiff(fromText(t, c.diff))
		if err != nil {
			t.Fatalf("%s: %v", c.diff, err)
		}
		out, changed, err := u.Apply(nil, fromText(t, doc), false, -1)
		if err != nil || string(out) != string(fromText(t, c.want)) || changed != (c.want != doc) {
			t.Errorf("%s makes %s, %v, %v", c.diff, bsoncore.Document(out), changed, err)
		}
		again, _, err := u.Apply(nil, out, false, -1)
		if err != nil || string(again) != string(out) {
			t.Errorf("%s a second time makes %s, %v", c.diff, bsoncore.Document(again), err)
		}
	}
}

func TestDiffsThatAreNone(t *testing.T) {
	for _, c := range []struct {
		diff string
		code mongoerror.Code
	}{
		{`{"z": {"a": 1}}`, codeDiffSection}, {`{"u": 5}`, codeDiffSection}, {`{"": {}}`, codeDiffSection}, {`{"so": {"q": {}}}`, codeDiffSection},
		{`{"sl": {"a": true, "u": 1}}`, codeDiffSection}, {`{"sl": {"a": true, "ux": 1}}`, codeDiffSection}, {`{"sl": {"a": true, "u01": 1}}`, codeDiffSection},
		{`{"sl": {"a": true, "l": -1}}`, codeDiffSection}, {`{"sl": {"a": true, "s0": 1}}`, codeDiffSection},
		{`{"sl": {"a": true, "u99999999": 1}}`, mongoerror.CannotBackfillArray}, {`{"u": {"_id": 2}}`, mongoerror.ImmutableField},
		{`{"d": {"_id": false}}`, mongoerror.ImmutableField},
	} {
		u, err := ParseDiff(fromText(t, c.diff))
		if err == nil {
			_, _, err = u.Apply(nil, fromText(t, `{"_id": 1, "l": [1], "o": {}}`), false, -1)
		}
		var e *mongoerror.Error
		if !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s: %v", c.diff, err)
		}
	}
}

// FuzzDiff applies whatever is a valid document as a diff: nothing may panic, and what comes out is a valid document.
func FuzzDiff(f *testing.F) {
	for _, s := range []string{
		`{"x": {"u": {"a": 1}, "i": {"b": 2}, "d": {"c": false}, "so": {"u": {"p": 1}}}, "d": {"_id": 1, "a": 0, "c": 1, "o": {"p": 2}}}`,
		`{"x": {"sl": {"a": true, "l": 2, "u5": 1, "s0": {"i": {"z": 1}}}}, "d": {"_id": 1, "l": [{}, 2, 3]}}`,
	} {
		f.Add([]byte(fromText(f, s)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, ok := wellformed.Document(data)
		if !ok || len(data) > 1<<12 {
			return
		}
		diff, ok := whole.Lookup("x").DocumentOK()
		doc, ok2 := whole.Lookup("d").DocumentOK()
		if !ok || !ok2 {
			return
		}
		u, err := ParseDiff(diff)
		if err != nil {
			return
		}
		if out, _, err := u.Apply(nil, doc, false, -1); err == nil && !valid(out, 0) {
			t.Fatalf("%s makes %x of %s", diff, out, doc)
		}
	})
}
