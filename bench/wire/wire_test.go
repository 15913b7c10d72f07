package wire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuick runs every workload at small scale: on Pando as it is in this repository, and on the mongod that PANDO_MONGOD names.
func TestQuick(t *testing.T) {
	o := Options{Sizes: Quick(), Rounds: 1, Servers: []string{pandoName}, Mongod: os.Getenv("PANDO_MONGOD"), Dir: t.TempDir(), Progress: t.Logf}
	if o.Mongod != "" {
		o.Servers = append(o.Servers, mongodName)
	}
	for _, standalone := range []bool{false, true} {
		o.Standalone = standalone
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Failures(); err != nil {
			t.Error(err)
		}
		want := len(workloads())
		if standalone {
			want-- // no transactions
		}
		if want *= len(o.Servers); len(r.Cells) != want {
			t.Errorf("%d cells, want %d", len(r.Cells), want)
		}
		for _, c := range r.Cells {
			if c.Failed == "" && (c.Ops == 0 || c.P50 == 0 || c.Peak == 0 || c.Disk == 0) {
				t.Errorf("%s, %s: a number is missing: %+v", c.Server, c.Workload, c)
			}
		}
		name := filepath.Join(t.TempDir(), "run.json")
		if err := r.Save(name); err != nil {
			t.Fatal(err)
		}
		again, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if page := Report([]*Result{again}, "A remark."); !strings.Contains(page, "| YCSB E | pando |") || !strings.Contains(page, "A remark.") {
			t.Errorf("the report lacks something:\n%s", page)
		}
	}
}

func TestVerdict(t *testing.T) {
	cell := func(server string, perSecond, cpuMicros, p99 int64) Cell {
		const ops = 1000
		return Cell{Server: server, Workload: "YCSB A", Ops: ops, Wall: ops * 1e9 / perSecond, User: ops * cpuMicros * 1e3, P99: p99}
	}
	for _, x := range []struct {
		name string
		ours Cell
		met  bool
	}{
		{"three times the throughput", cell(pandoName, 3000, 90, 5), true},
		{"a third of the processor time", cell(pandoName, 1000, 30, 5), true},
		{"neither", cell(pandoName, 2000, 40, 5), false},
		{"a worse p99", cell(pandoName, 9000, 10, 50), false},
	} {
		r := Result{Cells: []Cell{x.ours, cell(mongodName, 1000, 90, 10)}}
		if _, _, _, met := verdict(r.figures(pandoName, "YCSB A"), r.figures(mongodName, "YCSB A")); met != x.met {
			t.Errorf("%s: met is %v", x.name, met)
		}
		if table := Table(&r); strings.Contains(table, "**missed**") == x.met {
			t.Errorf("%s:\n%s", x.name, table)
		}
	}
}

func TestRecordsAreVerified(t *testing.T) {
	doc := (&thread{}).record(7)
	if err := checkRecord([]byte(doc), 7); err != nil {
		t.Error(err)
	}
	if err := checkRecord([]byte(doc), 8); err == nil {
		t.Error("record 7 passes for record 8")
	}
	doc[len(doc)-9] ^= 1
	if err := checkRecord([]byte(doc), 7); err == nil {
		t.Error("a changed record passes")
	}
}
