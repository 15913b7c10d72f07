package report

import (
	"strings"
	"testing"

	"github.com/pandodb/pando/bench/workload"
)

// Targets are shares of a rival, of the floor, of another cell, amounts, and bytes a record; what the run cannot tell is left out, and
// so is what was cut short.
func TestTargets(t *testing.T) {
	cell := func(w, name, engine string, cpu int64) workload.Cell {
		return workload.Cell{Workload: w, Name: name, Engine: engine, Class: "relaxed", Ops: 1_000_000, User: cpu * 1_000_000}
	}
	amount := func(w, name string, mb float64) workload.Cell {
		return workload.Cell{Workload: w, Name: name, Engine: "pando", Class: "relaxed", Value: mb, Unit: "MB"}
	}
	cut := cell("large", "large: get right after the load", "lmdb", 9000)
	cut.Cut = "half"
	r := &Result{Cells: []workload.Cell{
		cell("lmdb-micro", "get", "pando", 60), cell("lmdb-micro", "get", "lmdb", 100), cell("lmdb-micro", "get", "bbolt", 90),
		cell("lmdb-micro", "random update", "pando", 34), cell("lmdb-micro", "random update", "bbolt", 100),
		cell("kvstore-bench", "single put, 64 B", "pando", 500),
		cell("lmdb-micro-100k", "100 KB: delete", "pando", 501),
		cell("open", "open after a clean close", "pando", 4_999_999),
		cell("space", "random: load", "pando", 1), amount("space", "random: disk as loaded", 122), amount("space", "disk compacted", 121.5),
		cell("large", "large: get right after the load", "pando", 1), cut,
	}}
	var b strings.Builder
	writeTargets(&b, Rows(r))
	for _, want := range []string{
		"something else: 3 of 6.",
		"| lmdb-micro | get | 60 (0.60 of lmdb) | 60 | yes |",
		"| lmdb-micro | random update | 33.3 (0.33 of the best, bbolt) | 34 | **no** |",
		`| lmdb-micro-100k | 100 KB: delete | 500 (as "single put, 64 B") | 501 | **no** |`,
		"| open | open after a clean close | 5,000,000 | 4,999,999 | yes |",
		"| space | random: disk as loaded, MB | 122 (122 bytes a record) | 122 | yes |",
		"| space | disk compacted, MB | 121 (121 bytes a record) | 122 | **no** |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(b.String(), "right after") || strings.Contains(b.String(), "single put, 64 B |") {
		t.Error("a target that the run cannot tell of")
	}
	if t.Failed() {
		t.Log(b.String())
	}
	b.Reset()
	if writeTargets(&b, Rows(sample())); b.Len() > 0 {
		t.Errorf("targets of cells that there are not: %s", b.String())
	}
}
