package aggregate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/vfs/memfs"
)

// What a function over a window has found in a document of a partition that lies in a file is still there when the others have looked at
// theirs, each somewhere else in the file.
func TestChosenDocumentsOfSpilledPartitions(t *testing.T) {
	const docs, far, outputs = 1000, 100, 8
	name := func(i int) string { return fmt.Sprintf("%04d%s", i, strings.Repeat("x", 1000)) }
	m := &memory{collections: map[string][]document{}}
	for i := range docs {
		m.collections["c"] = append(m.collections["c"], fields("_id", int32Value(int32(i)), "s", text(name(i))))
	}
	output, start := begin(nil)
	for k := range outputs {
		shift := object("output", text("$s"), "by", int32Value(int32(k*far)), "default", text("none"))
		output = appendField(output, fmt.Sprintf("o%d", k), object("$shift", shift))
	}
	stage := object("sortBy", object("_id", int32Value(1)), "output", documentValue(end(output, start)))
	space, err := scratch.Open(memfs.New(), "scratch", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	o := options()
	o.Scratch, o.MemoryBytes = space, 64<<10
	list, err := m.run([]document{fields("$setWindowFields", stage)}, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != docs {
		t.Fatalf("%d documents, want %d", len(list), docs)
	}
	for i, doc := range list {
		for k := range outputs {
			want := "none"
			if at := i + k*far; at < docs {
				want = name(at)
			}
			if got, _ := doc.Lookup(fmt.Sprintf("o%d", k)).StringValueOK(); got != want {
				t.Fatalf("document %d has from %d behind it %.8q, want %.8q", i, k*far, got, want)
			}
		}
	}
}
