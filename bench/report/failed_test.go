package report

import (
	"strings"
	"testing"

	"github.com/pandodb/pando/bench/workload"
)

// broken is a run in which the workload of an engine has failed in one of two rounds, or in both.
func broken(engine string, rounds ...int) *Result {
	r := &Result{Rounds: 2, Workloads: []Family{{"lmdb-micro", "a family"}}, Engines: []Engine{{Name: "pando"}, {Name: "bbolt"}, {Name: "lmdb"}}}
	for round := range 2 {
		for i, e := range []string{"pando", "bbolt", "lmdb"} {
			c := workload.Cell{Workload: "lmdb-micro", Name: "get", Engine: e, Class: "relaxed", Round: round, Ops: 1, User: int64(10 * (i + 1))}
			for _, failed := range rounds {
				if e == engine && failed == round {
					c = workload.Cell{Workload: "lmdb-micro", Engine: e, Class: "relaxed", Round: round, Failed: "record 7: wrong value\nand more"}
				}
			}
			r.Cells = append(r.Cells, c)
		}
	}
	return r
}

// A cell that Pando has failed in is lost, and its target missed; a rival that has failed is none. The page tells of both.
func TestFailuresAreShown(t *testing.T) {
	page := func(r *Result) string {
		rows := Rows(r)
		return document(r, chapters(r, rows), nil, "")
	}
	for _, c := range []struct {
		run   *Result
		ratio float64
		shown []string
	}{
		{broken("pando", 0, 1), lost, []string{"1 of 1 cells.", "| lmdb-micro | get | **>** | failed | bbolt: 20 |", "0 of 1.", "| 18 (0.60 of lmdb) | failed | **no** |",
			"- pando in round 1 of lmdb-micro: record 7: wrong value\n- pando in round 2"}},
		{broken("pando", 1), 0.5, []string{"10 (0) (failed in a round)", "- pando in round 2 of lmdb-micro: record 7: wrong value\n"}},
		{broken("bbolt", 0, 1), 10.0 / 30, []string{"| failed |", "- bbolt in round 1 of lmdb-micro: record 7: wrong value\n"}},
		{broken(""), 0.5, nil},
	} {
		if got := Rows(c.run)[0].Ratio(); got != c.ratio {
			t.Errorf("ratio %v, want %v", got, c.ratio)
		}
		text := page(c.run)
		for _, want := range c.shown {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		if (c.shown == nil) == strings.Contains(text, "## What failed") {
			t.Errorf("the page tells of failures: %v", c.shown == nil)
		}
	}
}

// One failure is told once, though all cells of its stage have no numbers for it.
func TestFailuresAreToldOnce(t *testing.T) {
	r := broken("bbolt", 0)
	r.Cells = append(r.Cells, workload.Cell{Workload: "lmdb-micro", Name: "put", Engine: "bbolt", Class: "relaxed", Failed: "record 7: wrong value\nand more"},
		workload.Cell{Workload: "lmdb-micro", Name: "walk", Engine: "bbolt", Class: "relaxed", Failed: "not supported by this engine"})
	if err := r.Failures(); err == nil || strings.Count(err.Error(), "wrong value") != 1 || strings.Contains(err.Error(), "supported") {
		t.Errorf("%v", err)
	}
}

// A line of which no engine has a point, since none did all of the work or the system does not tell the amount, has no chart.
func TestLinesWithoutPoints(t *testing.T) {
	cell := workload.Cell{Workload: "growth", Name: "load", Engine: "pando", Class: "relaxed", Size: 10_000, Ops: 1, User: 1, Cut: "half"}
	amount := workload.Cell{Workload: "growth", Name: "write amplification", Engine: "pando", Class: "relaxed", Size: 10_000, Unit: "bytes"}
	point := workload.Cell{Workload: "growth", Name: "get", Engine: "pando", Class: "relaxed", Size: 10_000, Ops: 1, User: 5}
	r := &Result{Workloads: []Family{{"growth", "lines"}}, Engines: []Engine{{Name: "pando"}}, Cells: []workload.Cell{cell, amount, point}}
	var names []string
	for _, d := range drawings(chapters(r, Rows(r))) {
		names = append(names, d.name)
	}
	if got := strings.Join(names, " "); got != "growth-get.svg" {
		t.Errorf("%s", got)
	}
}
