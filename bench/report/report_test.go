package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pandodb/pando/bench/workload"
)

// sample is a run of two rounds: Pando ahead in one cell, behind in another, and one that a rival cannot do.
func sample() *Result {
	cell := func(engine, name string, round int, cpu int64) workload.Cell {
		return workload.Cell{Workload: "w", Name: name, Engine: engine, Class: "relaxed", Round: round, Ops: 10, User: cpu, Wall: 2 * cpu}
	}
	r := &Result{Rounds: 2, Workloads: []Family{{"w", "a family"}}, Engines: []Engine{{Name: "pando"}, {Name: "bbolt"}, {Name: "raw"}}}
	for round := range 2 {
		shift := int64(round * 100)
		r.Cells = append(r.Cells,
			cell("pando", "get", round, 1000+shift), cell("bbolt", "get", round, 4000+shift), cell("raw", "get", round, 1),
			cell("pando", "scan", round, 3000), cell("bbolt", "scan", round, 2000))
		for _, size := range []int64{10_000, 100_000} {
			c := cell("pando", "growth", round, size)
			c.Size = size
			r.Cells = append(r.Cells, c)
		}
		r.Cells = append(r.Cells, workload.Cell{Workload: "w", Name: "rate", Engine: "pando", Class: "relaxed", Value: 50, Unit: "records/s"},
			workload.Cell{Workload: "w", Name: "rate", Engine: "bbolt", Class: "relaxed", Value: 100, Unit: "records/s"})
	}
	r.Cells = append(r.Cells, workload.Cell{Workload: "w", Name: "scan", Engine: "raw", Class: "relaxed", Failed: "not supported by this engine"})
	return r
}

func TestRatios(t *testing.T) {
	want := map[string]float64{"get": 1050.0 / 4050, "scan": 1.5, "rate": 2, "growth": 0}
	for _, row := range Rows(sample()) {
		if got := row.Ratio(); got != want[row.Cell] {
			t.Errorf("%s: ratio %v, want %v", row.Cell, got, want[row.Cell])
		}
		if best, _ := row.Best(); best == "raw" {
			t.Errorf("%s: the floor is no rival", row.Cell)
		}
	}
}

func TestSampleOf(t *testing.T) {
	if s := sampleOf([]float64{3, 1, 2, 10}); s.Median != 2.5 || s.Low != 1 || s.High != 10 || s.Rounds != 4 || s.Spread() != 360 {
		t.Errorf("%+v, spread %v", s, s.Spread())
	}
	if s := sampleOf(nil); s.Rounds != 0 || s.Spread() != 0 {
		t.Errorf("%+v", s)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(sample(), Options{Dir: dir, Notes: "Because.", Details: true}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 of 3 cells", "| w | scan | **1.50** |", "Because.", "![w](benchmarks/w.svg)", "![growth](benchmarks/w-growth.svg)"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("benchmarks.md lacks %q", want)
		}
	}
	for _, name := range []string{"w.svg", "w-growth.svg", "details.md"} {
		if b, err := os.ReadFile(filepath.Join(dir, "benchmarks", name)); err != nil || len(b) < 100 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

func TestFailuresAreThoseThatMatter(t *testing.T) {
	r := sample()
	if err := r.Failures(); err != nil {
		t.Errorf("an operation that an engine has not is no failure: %v", err)
	}
	r.Cells = append(r.Cells, workload.Cell{Engine: "pando", Failed: "record 7: wrong value"})
	if r.Failures() == nil {
		t.Error("a wrong answer passes")
	}
}
