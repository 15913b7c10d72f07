package main

import (
	"strings"
	"testing"

	"github.com/pandodb/pando/bench/confine"
	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/report"
	"github.com/pandodb/pando/bench/workload"
)

// order is who would be measured with what, in the order of the run.
func order(p *plan, have *report.Result) string {
	var list []string
	for _, j := range p.jobs("dir", have) {
		list = append(list, j.spec.Workload+":"+j.spec.Engine)
	}
	return strings.Join(list, " ")
}

func TestEnginesTakeTurns(t *testing.T) {
	p, out, err := parseRun(strings.Fields("--quick --engines pando,bbolt,raw --workloads yoga,durable --rounds 2 --append none.json"))
	if err != nil || !out.keep {
		t.Fatalf("%+v, %v", out, err)
	}
	const want = "yoga:pando yoga:bbolt durable:pando durable:bbolt durable:raw " +
		"yoga:bbolt yoga:pando durable:raw durable:bbolt durable:pando"
	if got := order(p, &report.Result{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestARunGoesOnWhereAnEarlierOneStopped(t *testing.T) {
	p, _, err := parseRun(strings.Fields("--quick --engines pando,bbolt --workloads yoga --rounds 2"))
	if err != nil {
		t.Fatal(err)
	}
	have := &report.Result{}
	for i, j := range p.jobs("dir", have) {
		if i == 0 || i == 2 { // Pando's first round, and bbolt's second
			have.Cells = append(have.Cells, workload.Cell{Workload: "yoga", Engine: j.spec.Engine, Class: j.spec.Class, Round: j.spec.Round, Scale: j.spec.Scale})
		}
	}
	if got, want := order(p, have), "yoga:bbolt yoga:pando"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	have.Cells[0].Scale = "1,000,000 records" // another measurement
	if got, want := order(p, have), "yoga:pando yoga:bbolt yoga:pando"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Of a time, or with a limit, other than before it is another measurement.
func TestTimesAndLimitsArePartOfTheScale(t *testing.T) {
	const flags = "--quick --engines pando --workloads mixed,large,growth,yoga --load-limit "
	first, _, err := parseRun(strings.Fields(flags + "30s"))
	if err != nil {
		t.Fatal(err)
	}
	have := &report.Result{}
	for _, j := range first.jobs("dir", have) {
		c := workload.Cell{Workload: j.spec.Workload, Engine: j.spec.Engine, Class: j.spec.Class, Scale: j.spec.Scale}
		if j.workload.Largest != nil {
			c.Size = int64(j.workload.Largest(first.sizes))
		}
		have.Cells = append(have.Cells, c)
	}
	if got := order(first, have); got != "" {
		t.Errorf("%q is measured again", got)
	}
	limited, _, err := parseRun(strings.Fields(flags + "60s"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := order(limited, have), "large:pando growth:pando"; got != want {
		t.Errorf("with another limit %q is measured, want %q", got, want)
	}
	longer := *first
	longer.sizes.Millis *= 10
	if got, want := order(&longer, have), "mixed:pando"; got != want {
		t.Errorf("for another time %q is measured, want %q", got, want)
	}
}

// A round that failed is measured again, and what it leaves then takes the place of the failure.
func TestFailedRoundsAreMeasuredAgain(t *testing.T) {
	p, _, err := parseRun(strings.Fields("--quick --engines pando,bbolt --workloads yoga"))
	if err != nil {
		t.Fatal(err)
	}
	have := &report.Result{}
	cell := func(j job, failed string) workload.Cell {
		return workload.Cell{Workload: "yoga", Engine: j.spec.Engine, Class: j.spec.Class, Scale: j.spec.Scale, Failed: failed}
	}
	jobs := p.jobs("dir", have)
	have.Add([]workload.Cell{cell(jobs[0], ""), cell(jobs[0], "stopped after 20m0s")})
	have.Add([]workload.Cell{cell(jobs[1], workload.CannotGive)})
	if got, want := order(p, have), "yoga:pando"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	have.Add([]workload.Cell{cell(jobs[0], "")})
	if got := order(p, have); got != "" || len(have.Cells) != 2 || have.Failures() != nil {
		t.Errorf("%q is to be measured, %d cells, %v", got, len(have.Cells), have.Failures())
	}
}

// Shorter lines are not those that are asked for, longer ones have them in them. An engine that got no further does not get any further again.
func TestLinesAreMeasuredAsFarAsIsAskedFor(t *testing.T) {
	p, _, err := parseRun(strings.Fields("--size medium --engines pando --workloads growth --rounds 1 --growth 1000000"))
	if err != nil {
		t.Fatal(err)
	}
	scale := p.jobs("dir", &report.Result{})[0].spec.Scale
	for _, c := range []struct {
		cell workload.Cell
		want string
	}{
		{workload.Cell{Size: 100_000}, "growth:pando"},
		{workload.Cell{Size: 1_000_000}, ""},
		{workload.Cell{Size: 10_000_000}, ""},
		{workload.Cell{Size: 100_000, Cut: "3 of 100,000 records in 1s"}, ""},
		{workload.Cell{Failed: workload.CannotGive}, ""},
	} {
		c.cell.Workload, c.cell.Engine, c.cell.Class, c.cell.Scale = "growth", "pando", "relaxed", scale
		if got := order(p, &report.Result{Cells: []workload.Cell{c.cell}}); got != c.want {
			t.Errorf("%+v: %q is to be measured, want %q", c.cell, got, c.want)
		}
	}
}

// A class is measured whatever there is of another one.
func TestClassesAreMeasuredApart(t *testing.T) {
	p, _, err := parseRun(strings.Fields("--quick --engines pando --workloads yoga --class durable"))
	if err != nil {
		t.Fatal(err)
	}
	have := &report.Result{}
	j := p.jobs("dir", have)[0]
	have.Cells = []workload.Cell{{Workload: "yoga", Engine: "pando", Class: "relaxed", Scale: j.spec.Scale}}
	if got, want := order(p, have), "yoga:pando"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if have.Cells[0].Class = "durable"; order(p, have) != "" {
		t.Error("what there is is measured again")
	}
}

func TestTheLimitOfMemoryIsPartOfTheScale(t *testing.T) {
	large, err := choose(workload.All(), "large", func(w workload.Workload) string { return w.Name })
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{sizes: workload.Sizes{Large: 20_000_000}, memoryOf: confine.Limit}
	j := p.job(large[0], engine.Driver{Name: "pando"}, 0)
	if want := "20,000,000 records, budget of 553 MiB, memory limited to 691 MiB"; j.spec.Scale != want || j.memory>>20 != 691 {
		t.Errorf("scale %q, want %q; %d bytes", j.spec.Scale, want, j.memory)
	}
}

func TestCommandsNameNoPlaces(t *testing.T) {
	_, out, err := parseRun(strings.Fields("--quick --dir /somewhere --json /else --data /data --workloads yoga"))
	if want := "pandobench run --data DATA --quick --workloads yoga --append numbers.json"; err != nil || out.command != want {
		t.Errorf("%q, %v, want %q", out.command, err, want)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range []string{"--size huge", "--engines nobody", "--workloads nothing*", "--memory-limit much", "yoga"} {
		if _, _, err := parseRun(strings.Fields(args)); err == nil {
			t.Errorf("%s: passes", args)
		}
	}
}

func TestChooseTakesPrefixes(t *testing.T) {
	names := []string{"open", "open-killed", "yoga"}
	got, err := choose(names, "open*,yoga,open,y*", func(s string) string { return s })
	if err != nil || strings.Join(got, " ") != "open open-killed yoga" {
		t.Errorf("%v, %v", got, err)
	}
}

// Pando's hash table is measured wherever Pando is, but for documents, which need an order.
func TestTheHashTableIsMeasuredBesidePando(t *testing.T) {
	p, _, err := parseRun(strings.Fields("--quick --workloads yoga,durable,documents"))
	if err != nil {
		t.Fatal(err)
	}
	got := order(p, &report.Result{})
	for _, want := range []string{"yoga:pando yoga:pando-hash ", "durable:pando durable:pando-hash ", "documents:pando "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not among %s", want, got)
		}
	}
	if strings.Contains(got, "documents:pando-hash") {
		t.Errorf("documents are asked of a hash table: %s", got)
	}
}
