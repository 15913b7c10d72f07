package aggregate

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/vfs/memfs"
)

// golden is a line of testdata/*.jsonl.gz: a set of collections, or what a MongoDB server answered to a pipeline over a set's
// collection "c".
type golden struct {
	Set         string                `bson:"set"`
	Collections map[string][]bson.Raw `bson:"collections"`

	Over      string     `bson:"s"`
	Pipeline  []bson.Raw `bson:"p"`
	Collation bson.Raw   `bson:"c"`
	Result    []bson.Raw `bson:"r"`
	Error     int32      `bson:"e"`
	Message   string     `bson:"m"`
	Unordered bool       `bson:"u"` // the documents
	Sets      bool       `bson:"a"` // the elements of arrays too
	Fields    bool       `bson:"f"` // the fields of documents too
}

var goldenNow = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

func readGolden(t testing.TB, file string, each func(line int, g *golden, m *memory)) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<22)
	sets := map[string]*memory{}
	for n := 1; lines.Scan(); n++ {
		g := new(golden)
		if err := bson.UnmarshalExtJSON(lines.Bytes(), false, g); err != nil {
			t.Fatalf("%s:%d: %v", file, n, err)
		}
		if g.Set != "" {
			m := &memory{collections: map[string][]document{}}
			for name, docs := range g.Collections {
				m.collections[name] = documents(docs)
			}
			sets[g.Set] = m
			continue
		}
		each(n, g, sets[g.Over])
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func documents(list []bson.Raw) []document {
	var docs []document
	for _, doc := range list {
		docs = append(docs, document(doc))
	}
	return docs
}

func (g *golden) options(t testing.TB) *Options {
	o := &Options{Database: "test", Collection: "c", Now: goldenNow}
	if g.Collation != nil {
		var err error
		if o.Collation, err = collation.Parse(document(g.Collation)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// TestGolden replays what a MongoDB server answered.
func TestGolden(t *testing.T) {
	forEachGolden(t, func(where string, _ int, g *golden, m *memory) { g.replay(t, where, m, g.options(t)) })
}

// TestGoldenSpilled replays it with so little memory that everything is spilled.
func TestGoldenSpilled(t *testing.T) {
	fsys := memfs.New()
	space, err := scratch.Open(fsys, "scratch", 0)
	if err != nil {
		t.Fatal(err)
	}
	forEachGolden(t, func(where string, line int, g *golden, m *memory) {
		sizes := spilledSizes(line)
		if testing.Short() {
			sizes = sizes[:1] // the race detector has nothing to find here
		}
		for _, memory := range sizes {
			o := g.options(t)
			o.Scratch, o.MemoryBytes = space, memory
			g.replay(t, where, m, o)
		}
	})
	if names, err := fsys.List("scratch"); err != nil || len(names) > 0 || space.Used() != 0 {
		t.Errorf("left behind: %v %v, %d bytes", names, err, space.Used())
	}
}

// TestGoldenShared replays it with memory for a stage or two of those that a pipeline has, and looks whether all of it is given back. Stages
// that cannot spill may fail with that, and succeed with some more.
func TestGoldenShared(t *testing.T) {
	fsys := memfs.New()
	space, err := scratch.Open(fsys, "scratch", 0)
	if err != nil {
		t.Fatal(err)
	}
	little, more := scratch.NewMemory(1000, 1), scratch.NewMemory(10_000, 1)
	forEachGolden(t, func(where string, _ int, g *golden, m *memory) {
		o := g.options(t)
		o.Scratch, o.MemoryBytes, o.Shared = space, 600, little
		docs, err := m.run(documents(g.Pipeline), o)
		if code := mongoerror.CodeOf(err); code == 6007200 || code == 40099 {
			o.Shared = more
			docs, err = m.run(documents(g.Pipeline), o)
		}
		if problem := g.compare(docs, err); problem != "" {
			t.Errorf("%s: %s\n%s", where, g.Pipeline, problem)
		}
	})
	if names, err := fsys.List("scratch"); err != nil || len(names) > 0 || little.Held() != 0 || more.Held() != 0 {
		t.Errorf("left behind: %v %v, %d and %d bytes of memory", names, err, little.Held(), more.Held())
	}
}

func forEachGolden(t *testing.T, each func(where string, line int, g *golden, m *memory)) {
	files, err := filepath.Glob("testdata/*.jsonl.gz")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		cases := 0
		readGolden(t, file, func(line int, g *golden, m *memory) {
			cases++
			each(fmt.Sprintf("%s:%d", file, line), line, g, m)
		})
		t.Logf("%s: %d cases", file, cases)
	}
}

func (g *golden) replay(t *testing.T, where string, m *memory, o *Options) {
	t.Helper()
	if problem := g.compare(m.run(documents(g.Pipeline), o)); problem != "" {
		t.Errorf("%s, %d bytes of memory: %s\n%s", where, o.MemoryBytes, g.Pipeline, problem)
	}
}

// compare says what is wrong with a result.
func (g *golden) compare(got []document, err error) string {
	if g.Error != 0 {
		var e *mongoerror.Error
		if !errors.As(err, &e) || int32(e.Code) != g.Error {
			return fmt.Sprintf(" got %v %v\nwant error %d %s", err, got, g.Error, g.Message)
		}
		return ""
	}
	if err != nil {
		return fmt.Sprintf(" got %v\nwant %s", err, g.Result)
	}
	a, b := g.show(got), g.show(documents(g.Result))
	for i := range max(len(a), len(b)) {
		x, y := "nothing more", "nothing more"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("document %d: got %s\n           want %s", i, x, y)
		}
	}
	return ""
}

func (g *golden) show(docs []document) []string {
	list := []string{}
	for _, doc := range docs {
		list = append(list, show(documentValue(doc), g.Sets, !g.Fields))
	}
	if g.Unordered {
		slices.Sort(list)
	}
	return list
}

// show writes a value; doubles are rounded, because a server adds them in another order.
func show(v value, sets, ordered bool) string {
	switch v.Type {
	case bsoncore.TypeDouble:
		f := v.Double()
		if f == 0 && math.Signbit(f) {
			return "-0.0"
		}
		return fmt.Sprintf("%.13gd", f)
	case bsoncore.TypeInt64:
		return fmt.Sprintf("%dL", v.Int64())
	case bsoncore.TypeInt32:
		return fmt.Sprint(v.Int32())
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
	default:
		return v.String()
	}
	var list []string
	it := path.ElementsOf(v.Data)
	for name, v, ok := it.Next(); ok; name, v, ok = it.Next() {
		list = append(list, string(name)+": "+show(v, sets, ordered))
	}
	if v.Type == bsoncore.TypeEmbeddedDocument {
		if !ordered {
			slices.Sort(list)
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	for i := range list {
		_, list[i], _ = strings.Cut(list[i], ": ")
	}
	if sets {
		slices.Sort(list)
	}
	return "[" + strings.Join(list, ", ") + "]"
}
