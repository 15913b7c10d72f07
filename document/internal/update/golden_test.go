package update

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/test/recorded"
)

// golden is a line of testdata/*.jsonl: what a MongoDB server answered to an update. Missing: Result, when nothing was modified.
type golden struct {
	Doc      bson.Raw      `bson:"d"`
	Update   bson.RawValue `bson:"u"`
	Filters  []bson.Raw    `bson:"f"`
	Position *int          `bson:"p"`
	Result   bson.Raw      `bson:"r"`
	Error    int32         `bson:"e"`
	Message  string        `bson:"m"`
}

// The moment that stands for the server's in the files.
var goldenNow = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

func (g *golden) options() *Options {
	o := &Options{Now: goldenNow, Timestamp: goldenTimestamp}
	for _, f := range g.Filters {
		o.ArrayFilters = append(o.ArrayFilters, bsoncore.Document(f))
	}
	return o
}

func (g *golden) update() bsoncore.Value {
	return bsoncore.Value{Type: bsoncore.Type(g.Update.Type), Data: g.Update.Value}
}

func (g *golden) apply() (bsoncore.Document, bool, error) {
	u, err := Parse(g.update(), g.options())
	if err != nil {
		return nil, false, err
	}
	position := -1
	if g.Position != nil {
		position = *g.Position
	}
	return u.Apply(nil, bsoncore.Document(g.Doc), false, position)
}

// TestGolden replays what a MongoDB server answered, byte for byte.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/update*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		messages, wrong := 0, 0
		recorded.Lines(t, file, func(line int, g *golden) {
			out, changed, err := g.apply()
			want := bsoncore.Document(g.Result)
			if want == nil {
				want = bsoncore.Document(g.Doc)
			}
			switch {
			case g.Error != 0:
				var e *mongoerror.Error
				if !errors.As(err, &e) || int32(e.Code) != g.Error {
					t.Errorf("%s:%d: %s <- %s: got %v %s, want error %d %s", file, line, g.Doc, g.Update, err, out, g.Error, g.Message)
				} else if e.Message != g.Message {
					wrong++
					t.Logf("%s:%d: message %q, want %q", file, line, e.Message, g.Message)
				}
				messages++
			case err != nil:
				t.Errorf("%s:%d: %s <- %s %v: got %v, want %s", file, line, g.Doc, g.Update, g.Filters, err, want)
			case !bytes.Equal(out, want):
				t.Errorf("%s:%d: %s <- %s %v:\n got %s\nwant %s", file, line, g.Doc, g.Update, g.Filters, out, want)
			case changed != (g.Result != nil):
				t.Errorf("%s:%d: %s <- %s: changed %v", file, line, g.Doc, g.Update, changed)
			}
		})
		t.Logf("%s: %d of %d messages differ", file, wrong, messages)
	}
}

// upsertGolden is a line of testdata/upsert.jsonl: the document that an upsert inserted.
type upsertGolden struct {
	Query   bson.Raw      `bson:"q"`
	Update  bson.RawValue `bson:"u"`
	Filters []bson.Raw    `bson:"f"`
	Result  bson.Raw      `bson:"r"`
	Error   int32         `bson:"e"`
	Message string        `bson:"m"`
}

// TestGoldenUpserts replays what a MongoDB server inserted. A generated _id is all zeros.
func TestGoldenUpserts(t *testing.T) {
	zeros := bsoncore.Value{Type: bsoncore.TypeObjectID, Data: make([]byte, 12)}
	recorded.Lines(t, "testdata/upsert.jsonl", func(line int, g *upsertGolden) {
		out, err := func() (bsoncore.Document, error) {
			f, err := query.Parse(bsoncore.Document(g.Query), nil)
			if err != nil {
				return nil, err
			}
			one := golden{Update: g.Update, Filters: g.Filters}
			u, err := Parse(one.update(), one.options())
			if err != nil {
				return nil, err
			}
			return u.Upsert(f, func() bsoncore.Value { return zeros })
		}()
		switch {
		case g.Error != 0:
			if int32(mongoerror.CodeOf(err)) != g.Error {
				t.Errorf("upsert.jsonl:%d: %s <- %s: got %v %s, want error %d %s", line, g.Query, g.Update, err, out, g.Error, g.Message)
			}
		case err != nil || !bytes.Equal(out, g.Result):
			t.Errorf("upsert.jsonl:%d: %s <- %s: error %v\n got %s\nwant %s", line, g.Query, g.Update, err, out, g.Result)
		}
	})
}

func goldenTimestamp() uint64 { return 1715000000<<32 | 7 }
