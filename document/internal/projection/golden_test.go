package projection

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/test/recorded"
)

// golden is a line of testdata/*.jsonl: what a MongoDB server answered.
type golden struct {
	Kind    string        `bson:"k"` // a stage; find's projection when there is none
	Doc     bson.Raw      `bson:"d"`
	Spec    bson.RawValue `bson:"s"`
	Query   bson.Raw      `bson:"q"`
	Result  bson.Raw      `bson:"r"`
	Error   int32         `bson:"e"`
	Message string        `bson:"m"`
}

func (g *golden) parse() (*Projection, error) {
	spec := bsoncore.Value{Type: bsoncore.Type(g.Spec.Type), Data: g.Spec.Value}
	switch g.Kind {
	case "$project":
		return ParseProject(spec.Data, nil)
	case "$addFields":
		return ParseAddFields(spec.Data, nil)
	case "$unset":
		return ParseUnset(spec)
	case "$replaceWith":
		return ParseReplaceRoot(spec, nil)
	}
	o := new(Options)
	if g.Query != nil {
		var err error
		if o.Filter, err = query.Parse(bsoncore.Document(g.Query), nil); err != nil {
			return nil, err
		}
	}
	return Parse(spec.Data, o)
}

func (g *golden) apply() (out bsoncore.Document, err error) {
	p, err := g.parse()
	if err != nil {
		return nil, err
	}
	return p.Apply(nil, bsoncore.Document(g.Doc))
}

// TestGolden replays what a MongoDB server answered, byte for byte.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		messages, wrong := 0, 0
		recorded.Lines(t, file, func(line int, g *golden) {
			out, err := g.apply()
			switch {
			case g.Error != 0:
				var e *mongoerror.Error
				if !errors.As(err, &e) || int32(e.Code) != g.Error {
					t.Errorf("%s:%d: %s %s %s: got %v %s, want error %d %s", file, line, g.Doc, g.Kind, g.Spec, err, out, g.Error, g.Message)
				} else if len(e.Message) < len(g.Message) || e.Message[:len(g.Message)] != g.Message {
					wrong++
					t.Logf("%s:%d: message %q, want %q", file, line, e.Message, g.Message)
				}
				messages++
			case err != nil:
				t.Errorf("%s:%d: %s %s %s: got %v, want %s", file, line, g.Doc, g.Kind, g.Spec, err, g.Result)
			case !bytes.Equal(out, g.Result):
				t.Errorf("%s:%d: %s %s %s:\n got %s\nwant %s", file, line, g.Doc, g.Kind, g.Spec, out, g.Result)
			}
		})
		t.Logf("%s: %d of %d messages differ", file, wrong, messages)
	}
}
