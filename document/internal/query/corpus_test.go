package query

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// answer is a line of the corpus: a document, or a filter with what a MongoDB server said to it.
type answer struct {
	Doc       json.RawMessage `json:"doc"`
	Filter    json.RawMessage `json:"filter"`
	Match     string          `json:"match"`     // a bit for each document, in hexadecimal
	Parsed    json.RawMessage `json:"parsed"`    // explain's parsedQuery
	Positions map[int]int     `json:"positions"` // by document: what the positional operator stood for, -1 for an error
	Error     mongoerror.Code `json:"error"`
	Message   string          `json:"message"` // the beginning of it
}

// readCorpus calls fn with each filter, and the documents before it.
func readCorpus(t *testing.T, name string, fn func(docs []bsoncore.Document, a *answer)) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var docs []bsoncore.Document
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		if a.Doc != nil {
			docs = append(docs, document(t, string(a.Doc)))
			continue
		}
		fn(docs, &a)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func document(t testing.TB, s string) bsoncore.Document {
	t.Helper()
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(s), true, &doc); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return bsoncore.Document(doc)
}

// TestCorpus replays filters on documents: the answers are those that a MongoDB server gave.
func TestCorpus(t *testing.T) {
	files := []string{"testdata/corpus.jsonl", "testdata/schemas.jsonl", "testdata/errors.jsonl", "testdata/geometry.jsonl", "testdata/patterns.jsonl"}
	if extra := os.Getenv("PANDO_QUERY_CORPUS"); extra != "" {
		files = strings.Split(extra, ",")
	}
	for _, name := range files {
		filters := 0
		readCorpus(t, name, func(docs []bsoncore.Document, a *answer) {
			filters++
			compareAnswer(t, docs, a)
		})
		t.Logf("%s: %d filters", name, filters)
	}
}

func compareAnswer(t *testing.T, docs []bsoncore.Document, a *answer) {
	f, err := Parse(document(t, string(a.Filter)), nil)
	if a.Error != 0 || err != nil {
		if mongoerror.CodeOf(err) != a.Error {
			t.Errorf("%s: %v, want %v %s", a.Filter, err, a.Error, a.Message)
		} else if !strings.HasPrefix(messageOf(err), a.Message) {
			t.Errorf("%s:\ngot  %s\nwant %s", a.Filter, messageOf(err), a.Message)
		}
		return
	}
	want, _ := new(big.Int).SetString(a.Match, 16)
	for i, doc := range docs {
		got, err := f.Match(path.Document(doc))
		if err != nil || got != (want.Bit(i) == 1) {
			t.Errorf("%s on document %d: %v, %v: %v", a.Filter, i, got, err, doc)
			return
		}
		position, expected := a.Positions[i]
		if !expected {
			continue
		}
		if _, at, err := f.MatchPosition(path.Document(doc)); err != nil || at != position {
			t.Errorf("%s on %v: position %d, %v, want %d", a.Filter, doc, at, err, position)
		}
	}
	if a.Parsed != nil {
		if want := document(t, string(a.Parsed)); !bytes.Equal(want, f.Document()) {
			t.Errorf("%s\nparsed %v\nwant   %v", a.Filter, f.Document(), want)
		}
	}
}
