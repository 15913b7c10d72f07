package report

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pandodb/pando/bench/workload"
)

// measured is what one invocation leaves: an engine's cells of one workload at one scale, with these processor times round by round.
func measured(engine, scale string, times ...int64) *Result {
	r := &Result{Command: "pandobench run " + engine, Seconds: 1, Rounds: len(times),
		Workloads: []Family{{"large", "much"}}, Engines: []Engine{{Name: engine}}, Machine: Machine{Cores: 2}}
	for round, cpu := range times {
		r.Cells = append(r.Cells, workload.Cell{Workload: "large", Scale: scale, Name: "get", Engine: engine, Class: "relaxed", Round: round, Ops: 1, User: cpu})
	}
	return r
}

func TestMergeMakesFurtherRounds(t *testing.T) {
	all, err := Merge(measured("pando", "1,000 records", 10, 30), measured("pando", "1,000 records", 20), measured("bbolt", "1,000 records", 40),
		measured("pando", "20 records", 1), measured("bbolt", "20 records", 2))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range Rows(all) {
		mine := row.Judged(row.Engines["pando"])
		got = append(got, fmt.Sprintf("%s: %v of %d rounds, spread %v, ratio %v", row.Workload, mine.Median, mine.Rounds, mine.Spread(), row.Ratio()))
	}
	want := "large, 1,000 records: 20 of 3 rounds, spread 100, ratio 0.5\nlarge, 20 records: 1 of 1 rounds, spread 0, ratio 0.5"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if len(all.Engines) != 2 || len(all.Workloads) != 1 || all.Command != "pandobench run pando\n    pandobench run bbolt" || all.Seconds != 5 {
		t.Errorf("engines %v, workloads %v, command %q, %v seconds", all.Engines, all.Workloads, all.Command, all.Seconds)
	}
	has := func(scale string, round int) bool { return all.Has("large", scale, "relaxed", "pando", round, 0) }
	if !has("1,000 records", 2) || has("1,000 records", 3) || has("20 records", 1) {
		t.Error("the rounds are not numbered on")
	}
}

func TestMergeKeepsMachinesApart(t *testing.T) {
	other := measured("pando", "", 1)
	other.Machine.Cores = 64
	if _, err := Merge(measured("pando", "", 1), other); err == nil {
		t.Error("measurements of two machines were joined")
	}
}

func TestContinueKeepsWhatThereIs(t *testing.T) {
	name := filepath.Join(t.TempDir(), "numbers.json")
	if err := measured("pando", "", 1, 2).Save(name); err != nil {
		t.Fatal(err)
	}
	earlier, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	again := measured("pando", "")
	if err := again.Continue(earlier); err != nil || len(again.Cells) != 2 || strings.Contains(again.Command, "\n") {
		t.Errorf("%d cells, command %q, %v", len(again.Cells), again.Command, err)
	}
}

func TestWhatWasCutShortIsNotCompared(t *testing.T) {
	ratio := func(cutOff string, pando, bbolt int64) float64 {
		all, err := Merge(measured("pando", "", pando), measured("bbolt", "", bbolt), measured("lmdb", "", 100))
		if err != nil {
			t.Fatal(err)
		}
		for i := range all.Cells {
			if all.Cells[i].Engine == cutOff {
				all.Cells[i].Cut = "3 of 20 records in 1s"
			}
		}
		row := Rows(all)[0]
		if text := entryText(row, cutOff, false); !strings.HasSuffix(text, cutMark) {
			t.Errorf("%s: %q is not marked", cutOff, text)
		}
		return row.Ratio()
	}
	if got := ratio("bbolt", 50, 10); got != 0.5 {
		t.Errorf("ratio %v: bbolt, which stored less, was compared", got)
	}
	if got := ratio("pando", 10, 50); got != lost {
		t.Errorf("ratio %v: Pando, which stored less, was not the loser", got)
	}
}

func TestMergeKeepsVersionsApart(t *testing.T) {
	other := measured("bbolt", "", 1)
	other.Engines[0].Version = "v2"
	if _, err := Merge(measured("bbolt", "", 1), other); err == nil {
		t.Error("measurements of two versions were joined")
	}
}

// A workload in two classes is two chapters, and no cell is compared with one of the other class.
func TestClassesAreShownApart(t *testing.T) {
	durable := measured("pando", "", 30)
	durable.Cells[0].Class = "durable"
	all, err := Merge(measured("pando", "", 10), durable, measured("bbolt", "", 20))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range chapters(all, Rows(all)) {
		got = append(got, fmt.Sprintf("%s: %s, %v", c.name, c.rows[0].Class, c.rows[0].Ratio()))
	}
	if want := "large, relaxed: relaxed, 0.5; large, durable: durable, 0"; strings.Join(got, "; ") != want {
		t.Errorf("%s, want %s", strings.Join(got, "; "), want)
	}
}
