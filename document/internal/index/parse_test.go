package index

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// specs are specifications with what a MongoDB server makes of them: what listIndexes shows, or the code and the cause of the error.
//
//go:embed testdata/specs.jsonl
var specs []byte

func TestSpecificationsAreReadAsByMongoDB(t *testing.T) {
	for line := range bytes.Lines(specs) {
		var r struct {
			Spec, Shown json.RawMessage
			Code        mongoerror.Code
			Message     string
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		d, err := Parse(document(t, string(r.Spec)), nil)
		switch {
		case r.Code != 0:
			if mongoerror.CodeOf(err) != r.Code || !strings.Contains(err.Error(), r.Message) {
				t.Errorf("%s: %v, want %d with %q", r.Spec, err, r.Code, r.Message)
			}
		case err != nil:
			t.Errorf("%s: %v", r.Spec, err)
		case r.Shown != nil:
			if want := document(t, string(r.Shown)); !bytes.Equal(d.Spec, want) {
				t.Errorf("%s is shown as\n%v, want\n%v", r.Spec, d.Spec, want)
			}
		}
	}
}

// TestBeyondTheServer has what differs from the server that made specs: what 7.0 has anew, and what is refused here.
func TestBeyondTheServer(t *testing.T) {
	for _, spec := range []string{
		`{"key": {"a": 1, "b.$**": -1}}`, `{"key": {"a": 1, "$**": 1}, "wildcardProjection": {"a": 0}}`, `{"key": {"$**": 1, "b": -1}, "wildcardProjection": {"c": 1}}`,
		`{"key": {"_id": 1, "$**": 1}, "wildcardProjection": {"a": 1}}`,
	} {
		if d := parse(t, spec); !strings.Contains(d.Name, "$**") {
			t.Errorf("%s is called %s", spec, d.Name)
		}
	}
	for _, test := range []struct {
		spec string
		code mongoerror.Code
		want string
	}{
		{`{"key": {"a": "text"}}`, mongoerror.CannotCreateIndex, "text indexes are not supported"},
		{`{"key": {"_fts": "text", "_ftsx": 1}, "weights": {"a": 1}}`, mongoerror.CannotCreateIndex, "text indexes are not supported"},
		{`{"key": {"a": "2d"}}`, mongoerror.CannotCreateIndex, "2d indexes are not supported"},
		{`{"key": {"a": 1, "$**": 1}, "wildcardProjection": {"a": 1}}`, mongoerror.CannotCreateIndex, "'a' is not left out"},
		{`{"key": {"a.b": 1, "$**": 1}, "wildcardProjection": {"a.b.c": 1}}`, mongoerror.CannotCreateIndex, "'a.b' is not left out"},
		{`{"key": {"a": 1, "a.$**": 1}}`, mongoerror.CannotCreateIndex, "'a' is not left out"},
		{`{"key": {"a.$**": 1, "b.$**": 1}}`, mongoerror.CannotCreateIndex, "only one wildcard"},
		{`{"key": {"a": "hashed", "b.$**": 1}}`, mongoerror.CannotCreateIndex, "do not allow hashed"},
	} {
		_, err := Parse(document(t, test.spec), nil)
		if mongoerror.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %d with %q", test.spec, err, test.code, test.want)
		}
	}
}

func TestNames(t *testing.T) {
	for spec, want := range map[string]string{
		`{"key": {"a": 1}}`: "a_1", `{"key": {"a.b": -1, "c": "hashed"}}`: "a.b_-1_c_hashed", `{"key": {"a": 1.0}}`: "a_1", `{"key": {"a": 1}, "name": "x"}`: "x",
	} {
		if d := parse(t, spec); d.Name != want {
			t.Errorf("%s is called %s, want %s", spec, d.Name, want)
		}
	}
}
