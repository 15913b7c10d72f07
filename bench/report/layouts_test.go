package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pandodb/pando/bench/workload"
)

// cellsOf are cells of one name in workload w, "engine number", with a * behind what was cut short. A name that ends in "/s" is a rate.
func cellsOf(name string, numbers ...string) (cells []workload.Cell) {
	for _, n := range numbers {
		c := workload.Cell{Workload: "w", Name: name, Class: "relaxed", Ops: 1}
		whole := strings.TrimSuffix(n, "*")
		if n != whole {
			c.Cut = "half"
		}
		fmt.Sscan(whole, &c.Engine, &c.User)
		if strings.HasSuffix(name, more) {
			c.Value, c.Unit, c.Ops = float64(c.User), "records/s", 0
		}
		cells = append(cells, c)
	}
	return cells
}

// twoLayouts is a run in which Pando has both layouts.
func twoLayouts() *Result {
	r := &Result{Rounds: 1, Workloads: []Family{{"w", "a family"}}, Engines: []Engine{{Name: "pando"}, {Name: "pando-hash"}, {Name: "bbolt"}}}
	for _, cells := range [][]workload.Cell{
		cellsOf("get", "pando 100", "pando-hash 50", "bbolt 80"),
		cellsOf("put", "pando 60", "pando-hash 70", "bbolt 50"),
		cellsOf("scan", "pando 30", "bbolt 40"),
		cellsOf("rate/s", "pando 10", "pando-hash 40", "bbolt 20"),
		cellsOf("own", "pando 5", "pando-hash 3"),
		cellsOf("half of the hash", "pando 9", "pando-hash 1*", "bbolt 18"),
		cellsOf("half of the tree", "pando 1*", "pando-hash 9", "bbolt 18"),
		cellsOf("half of both", "pando 9*", "pando-hash 1*", "bbolt 18"),
		cellsOf("only hash", "pando-hash 7", "bbolt 14"),
	} {
		r.Cells = append(r.Cells, cells...)
	}
	r.Cells = append(r.Cells, workload.Cell{Workload: "w", Name: "scan", Engine: "pando-hash", Class: "relaxed", Failed: "not supported by this engine"})
	return r
}

// A cell's number is that of the better layout that did all of the work; the other one is no rival.
func TestTheBetterLayoutCounts(t *testing.T) {
	want := map[string]string{
		"get": "0.62 (hash) bbolt", "put": "**1.20** (tree) bbolt", "scan": "0.75 bbolt", "rate/s": "0.50 (hash) bbolt", "own": " ",
		"half of the hash": "0.50 (tree) bbolt", "half of the tree": "0.50 (hash) bbolt", "half of both": "**>** (tree) bbolt",
		"only hash": "0.50 (hash) bbolt",
	}
	for _, row := range Rows(twoLayouts()) {
		best, _ := row.Best()
		if got := ratioCell(row) + " " + best; got != want[row.Cell] {
			t.Errorf("%s: %q, want %q", row.Cell, got, want[row.Cell])
		}
	}
}

// The page says which layout each number is of, what one alone comes to, and shows both.
func TestThePageNamesLayouts(t *testing.T) {
	dir := t.TempDir()
	if err := Write(twoLayouts(), Options{Dir: dir, Details: true}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 of 8 cells.", "| w | put | **1.20** | 60 (tree) | bbolt: 50 |",
		"With one layout throughout Pando is behind with tree in 5 of 7, with hash in 3 of 7; of cells that need an order there are none with hash.",
		"| cell | ratio | pando | pando-hash | bbolt |", "| get | 0.62 (hash) | 100 (0) | 50 (0) | **80 (0)** |", "| scan | 0.75 | 30 (0) | - | **40 (0)** |",
		"Who uses a keyspace picks one layout for it", "Pando is never compared with itself",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("benchmarks.md lacks %q", want)
		}
	}
	if table := Table(twoLayouts()); !strings.Contains(table, "| w | get | 0.62 (hash) |") {
		t.Errorf("the table names no layout:\n%s", table)
	}
	for _, name := range []string{"w.svg", "details.md"} {
		if text, err := os.ReadFile(filepath.Join(dir, "benchmarks", name)); err != nil || !strings.Contains(string(text), "pando-hash") {
			t.Errorf("%s does not show both layouts: %v", name, err)
		}
	}
}

// Where there is one layout only, nothing is said of layouts.
func TestOneLayoutNeedsNoName(t *testing.T) {
	r := sample()
	rows := Rows(r)
	page := document(r, chapters(r, rows), nil, "")
	for _, word := range []string{"layout", "(tree)", "hash"} {
		if strings.Contains(page, word) {
			t.Errorf("the page says %q", word)
		}
	}
}

// Targets that were set for the tree are judged by it, the others by the better layout, and a target that is another cell's number by
// that number of the same layout.
func TestTargetsOfLayouts(t *testing.T) {
	cells := func(w, name string, numbers ...string) []workload.Cell {
		list := cellsOf(name, numbers...)
		for i := range list {
			list[i].Workload = w
		}
		return list
	}
	r := &Result{}
	for _, list := range [][]workload.Cell{
		cells("lmdb-micro", "get", "pando 70", "pando-hash 20", "lmdb 100"),
		cells("lmdb-micro", "get inside a snapshot", "pando-hash 20", "lmdb 100"),
		cells("lmdb-micro", "random update", "pando 34", "pando-hash 33", "bbolt 100"),
		cells("kvstore-bench", "single put, 64 B", "pando 500", "pando-hash 400", "bbolt 1200"),
		cells("lmdb-micro-100k", "100 KB: delete", "pando 460", "pando-hash 450"),
	} {
		r.Cells = append(r.Cells, list...)
	}
	var b strings.Builder
	writeTargets(&b, Rows(r))
	for _, want := range []string{
		"something else: 2 of 4.",
		"| lmdb-micro | get | 60 (0.60 of lmdb) | 70 (tree) | **no** |",
		"| lmdb-micro | random update | 33.3 (0.33 of the best, bbolt) | 33 (hash) | yes |",
		"| kvstore-bench | single put, 64 B | 400 (0.33 of the best, bbolt) | 400 (hash) | yes |",
		`| lmdb-micro-100k | 100 KB: delete | 400 (as "single put, 64 B") | 450 (hash) | **no** |`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() || strings.Contains(b.String(), "snapshot") {
		t.Error(b.String())
	}
}
