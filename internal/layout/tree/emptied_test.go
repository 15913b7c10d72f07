package tree

import (
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
)

// TestLeafThatWasEmptiedPieceByPiece: leaves that are not in memory lose all of their records by deltas, none of which takes most of them.
// When somebody has brought them into the cache, which have no record then, they change like any others.
func TestLeafThatWasEmptiedPieceByPiece(t *testing.T) {
	const records = 1000
	o := layout.ApplyOptions{LeafBytes: 4000}
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	changes := rows(0, records, 1)
	for i := range changes {
		changes[i].Record = layouttest.Inline(strings.Repeat("v", 200))
	}
	w.Apply(nil, changes, o)
	for third := range 3 {
		w.Root = w.Reload() // nothing is in memory
		var gone []layout.Change
		for i := third; i < records; i += 3 {
			gone = append(gone, layout.Change{Key: row(i)})
		}
		w.Apply(nil, gone, o)
	}
	if s := w.Layout.Stats(w.Root); s.Leaves < 2 || s.Deltas < 3*s.Leaves {
		t.Fatalf("the leaves were written anew: %+v", s)
	}
	var s layout.Scratch
	for range 3 { // the cache takes what is asked for again
		for i := range records {
			if _, found, err := w.Root.GetRead(&s, record.Hash(layouttest.Keyspace, row(i)), row(i)); found || err != nil {
				t.Fatalf("row %d: %v, %v", i, found, err)
			}
		}
	}
	w.Apply(nil, rows(records/2, records/2+1, 1), o)
	w.Verify(w.Root, w.Model, w.Now)
	w.Check(w.Root)
	w.Audit()
}
