package aggregate

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/test/wellformed"
)

// FuzzParse parses pipelines of any content, and runs what it can over a few documents: errors, never a panic.
func FuzzParse(f *testing.F) {
	readAll(f, func(g *golden) {
		f.Add(append([]byte(nil), array(values(g)...).Data...))
	})
	m := numbers(5)
	f.Fuzz(func(t *testing.T, data []byte) {
		list, ok := wellformed.Document(data)
		if !ok || len(data) > 4096 {
			return
		}
		stages, err := pipelineOf(value{Type: bsoncore.TypeArray, Data: list})
		if err != nil {
			return
		}
		o := options()
		o.MemoryBytes = 10_000
		docs, err := m.run(stages, o)
		if err != nil {
			return
		}
		for _, doc := range docs {
			if err := doc.Validate(); err != nil {
				t.Fatalf("%s: result %x: %v", bsoncore.Array(list), []byte(doc), err)
			}
		}
	})
}

// readAll calls each with one case in 40 of the golden files.
func readAll(t testing.TB, each func(g *golden)) {
	n := 0
	for _, file := range []string{"testdata/basic.jsonl.gz", "testdata/errors.jsonl.gz", "testdata/stages.jsonl.gz"} {
		readGolden(t, file, func(_ int, g *golden, _ *memory) {
			if n++; n%40 == 0 {
				each(g)
			}
		})
	}
}

func values(g *golden) []value {
	var list []value
	for _, stage := range g.Pipeline {
		list = append(list, documentValue(document(stage)))
	}
	return list
}
