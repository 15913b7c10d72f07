package report

import (
	"fmt"
	"strings"
)

// target is what Pando set out to reach in a cell, where that is more than to be ahead, or something else.
type target struct {
	workload, cell string
	limit          limit
	layout         string // the engine that has to reach it: Subject, or anyLayout
}

// anyLayout is for targets that the better layout has to reach. The others were set for the tree, or need an order.
const anyLayout = ""

// limit returns the highest number that reaches a target, and says it in words; !ok: the run has not what it takes to tell. What has to
// reach it is the number of one engine, a layout of Pando.
type limit func(rows []*Row, row *Row, engine string) (most float64, text string, ok bool)

// targets is the list that the engine was designed against.
var targets = []target{
	{"lmdb-micro", "batched random inserts", ofBest(1.0 / 2), anyLayout},
	{"yoga", "21+21 B: batches of 1,000", ofBest(1.0 / 2), anyLayout},
	{"kvstore-bench", "single put, 64 B", ofBest(1.0 / 3), anyLayout},
	{"kvstore-bench", "single put, 512 B", ofBest(1.0 / 3), anyLayout},
	{"durable", "single synced puts", of(floorEngine, 1.1), anyLayout},
	{"durable", "flushes a single put", atMost(1), anyLayout},
	{"durable-16", "single synced puts", of("rocksdb", 0.7), anyLayout},
	{"durable-16", "flushes a single put", atMost(0.1), anyLayout},
	{"lmdb-micro", "get", of("lmdb", 0.6), Subject},
	{"lmdb-micro", "get inside a snapshot", ofBest(0.6), Subject},
	{"lmdb-micro", "full scan, as loaded", of("bbolt", 1.0/2), Subject},
	{"lmdb-micro", "full scan", of("bbolt", 1.0/2), Subject},
	{"lmdb-micro", "full scan backwards", of("bbolt", 1.0/2), Subject},
	{"lmdb-micro", "seek + 100 records", of("bbolt", 1.0/2), Subject},
	{"lmdb-micro", "random update", ofBest(1.0 / 3), anyLayout},
	{"lmdb-micro", "random delete", ofBest(1.0 / 3), anyLayout},
	{"lmdb-micro-100k", "100 KB: set", ofBest(0.7), anyLayout},
	{"lmdb-micro-100k", "100 KB: delete", ofCell("kvstore-bench", "single put, 64 B"), anyLayout},
	{"lmdb-micro", "zipfian, half writes, 2 goroutines", ofBest(1.0 / 2), anyLayout},
	{"lmdb-micro", "zipfian, 5 % writes, 2 goroutines", ofBest(0.6), anyLayout},
	{"open", "open after a clean close", atMost(5e6), anyLayout},
	{"open-killed", "open after kill -9", atMost(100e6), anyLayout},
	{"space", "random: disk as loaded", perRecord("random: load", 122), anyLayout},
	{"space", "disk compacted", perRecord("random: load", 121), anyLayout},
	{"space-json", "JSON: disk compacted", perRecord("JSON: load", 50), anyLayout},
	{"space-json", "JSON: load", ofBest(1.0 / 2), anyLayout},
	{"memory", "anonymous memory after reads", atMost(64), anyLayout},
	{"large", "large: load", ofBest(1.0 / 2), anyLayout},
	{"large", "large: get right after the load", of("lmdb", 1), anyLayout},
	{"large", "large: write amplification of random updates", atMost(6), anyLayout},
	{"growth", "budget of a quarter: write amplification of random updates", atMost(6), anyLayout},
}

// ofBest is a share of the best rival's number.
func ofBest(share float64) limit {
	return func(_ []*Row, row *Row, _ string) (float64, string, bool) {
		name, s := row.Best()
		return share * s.Median, shareText(share, "the best, "+name), name != ""
	}
}

// of is a share of one rival's number.
func of(rival string, share float64) limit {
	return func(_ []*Row, row *Row, _ string) (float64, string, bool) {
		e := row.Engines[rival]
		if e == nil || e.Cut != "" || row.Judged(e).Rounds == 0 {
			return 0, "", false
		}
		return share * row.Judged(e).Median, shareText(share, rival), true
	}
}

// ofCell is the number of the same layout in another cell.
func ofCell(workload, cell string) limit {
	return func(rows []*Row, _ *Row, engine string) (float64, string, bool) {
		other := find(rows, workload, cell, engine)
		if other == nil {
			return 0, "", false
		}
		s := other.Judged(other.Engines[engine])
		return s.Median, fmt.Sprintf("as %q", cell), s.Rounds > 0
	}
}

// atMost is an amount, in the unit of the cell, or nanoseconds.
func atMost(most float64) limit {
	return func([]*Row, *Row, string) (float64, string, bool) { return most, "", true }
}

// perRecord is an amount in MB, of so many bytes for each record of a load.
func perRecord(load string, bytes float64) limit {
	return func(rows []*Row, row *Row, engine string) (float64, string, bool) {
		loaded := find(rows, row.Workload, load, engine)
		if loaded == nil {
			return 0, "", false
		}
		return bytes * float64(loaded.Engines[engine].Ops) / 1e6, fmt.Sprintf("%.0f bytes a record", bytes), true
	}
}

func shareText(share float64, of string) string {
	if share == 1 {
		return of
	}
	return fmt.Sprintf("%.2f of %s", share, of)
}

// find returns the row of a cell that an engine did all of; nil: there is none.
func find(rows []*Row, workload, cell, engine string) *Row {
	for _, row := range rows {
		if e := row.Engines[engine]; row.Workload == workload && row.Cell == cell && e != nil && e.Cut == "" {
			return row
		}
	}
	return nil
}

// of reports whether a row is one that the target is about: a workload may have been measured at several scales.
func (t target) of(row *Row) bool {
	return row.Cell == t.cell && (row.Workload == t.workload || strings.HasPrefix(row.Workload, t.workload+", "))
}

// judged is the layout of Pando that has to reach the target, and what it has done.
func (t target) judged(row *Row) (engine string, e *Entry) {
	if t.layout != anyLayout {
		return t.layout, row.Engines[t.layout]
	}
	return row.Mine()
}

// writeTargets lists what was aimed for, and what came of it.
func writeTargets(b *strings.Builder, rows []*Row) {
	var list strings.Builder
	reached, known := 0, 0
	for _, t := range targets {
		for _, row := range rows {
			if !t.of(row) {
				continue
			}
			engine, e := t.judged(row)
			if e == nil || e.Cut != "" || row.Judged(e).Rounds == 0 && !isFailure(e.Failed) {
				continue
			}
			most, text, ok := t.limit(rows, row, engine)
			if !ok {
				continue
			}
			known++
			mine, shown, answer := row.Judged(e), failedMark, "**no**"
			if mine.Rounds > 0 {
				shown = number(mine.Median)
			}
			if mine.Rounds > 0 && mine.Median <= most {
				reached, answer = reached+1, "yes"
			}
			if text != "" {
				text = " (" + text + ")"
			}
			fmt.Fprintf(&list, "| %s | %s | %s%s | %s%s | %s |\n", row.Workload, cellName(row), number(most), text, shown, row.layoutMark(engine), answer)
		}
	}
	if known == 0 {
		return
	}
	fmt.Fprintf(b, "## Targets\n\nWhat the engine was designed to reach, where that is more than to be ahead, or something else: %d of %d.\n\n"+
		"| workload | cell | at most | Pando | reached |\n|---|---|---|---|---|\n%s\n", reached, known, list.String())
}
