package report

import (
	"cmp"
	"slices"

	"github.com/pandodb/pando/bench/workload"
)

// floorEngine is no engine, and no rival.
const floorEngine = "raw"

// Sample is the median of a number over the rounds, and its range.
type Sample struct {
	Median, Low, High float64
	Rounds            int
}

// Spread is the range in per cent of the median.
func (s Sample) Spread() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.High - s.Low) / s.Median * 100
}

func sampleOf(list []float64) Sample {
	if len(list) == 0 {
		return Sample{}
	}
	slices.Sort(list)
	mid := len(list) / 2
	median := list[mid]
	if len(list)%2 == 0 {
		median = (list[mid-1] + list[mid]) / 2
	}
	return Sample{Median: median, Low: list[0], High: list[len(list)-1], Rounds: len(list)}
}

// Row is one cell of the benchmark over all engines.
type Row struct {
	// Workload is the name of the workload, with the scale behind it where the measurement has several.
	Workload                 string
	Scale, Cell, Class, Unit string
	Size                     int64
	Info                     bool // no ratio
	Engines                  map[string]*Entry
}

// Entry is one engine's part of a row.
type Entry struct {
	CPU, Wall      Sample // nanoseconds per operation
	Value          Sample // of cells that are an amount
	User, Sys      Sample // nanoseconds per operation
	P50, P99, P999 Sample // nanoseconds
	Read, Write    Sample // bytes in total
	Disk, Peak     Sample // bytes
	Amplification  Sample // bytes written per byte of keys and values; where it is known
	Ops            int64
	Failed         string // why the rounds that have no number have none
	Cut            string // what was done of what there was to do, when time ran out: not to be compared
}

type rowKey struct {
	workload, scale, cell, class string
	size                         int64
}

// Rows groups the cells of a run by workload and scale, in the order in which they were first met.
func Rows(r *Result) []*Row {
	index := map[rowKey]*Row{}
	groups := map[*Row]map[string][]workload.Cell{}
	var rows []*Row
	for _, c := range r.Cells {
		if c.Name == "" {
			continue // a workload that failed as a whole: see below
		}
		k := rowKey{c.Workload, c.Scale, c.Name, c.Class, c.Size}
		row := index[k]
		if row == nil {
			row = &Row{Workload: c.Workload, Scale: c.Scale, Cell: c.Name, Class: c.Class, Size: c.Size, Engines: map[string]*Entry{}}
			index[k], groups[row] = row, map[string][]workload.Cell{}
			rows = append(rows, row)
		}
		if c.Unit != "" {
			row.Unit = c.Unit
		}
		row.Info = row.Info || c.Info
		groups[row][c.Engine] = append(groups[row][c.Engine], c)
	}
	for _, c := range r.failed() {
		for _, row := range rows {
			if c.Name == "" && row.of(c) && !slices.ContainsFunc(groups[row][c.Engine], func(x workload.Cell) bool { return x.Round == c.Round }) {
				groups[row][c.Engine] = append(groups[row][c.Engine], c) // it would have come to this one
			}
		}
	}
	order(rows, r.Workloads)
	for _, row := range rows {
		for name, cells := range groups[row] {
			row.Engines[name] = entryOf(cells)
		}
	}
	return rows
}

// of reports whether a cell is of the same workload, scale and class.
func (r *Row) of(c workload.Cell) bool {
	return r.Workload == c.Workload && r.Scale == c.Scale && r.Class == c.Class
}

// order sorts rows by workload, scale and class, and names those apart that have one workload at several scales, or in several classes.
func order(rows []*Row, workloads []Family) {
	at, scales, classes := map[string]int{}, map[string][]string{}, map[string][]string{}
	for i, w := range workloads {
		at[w.Name] = i
	}
	note := func(list map[string][]string, name, value string) {
		if !slices.Contains(list[name], value) {
			list[name] = append(list[name], value)
		}
	}
	for _, row := range rows {
		note(scales, row.Workload, row.Scale)
		note(classes, row.Workload, row.Class)
	}
	slices.SortStableFunc(rows, func(a, b *Row) int {
		s, c := scales[a.Workload], classes[a.Workload]
		return cmp.Or(cmp.Compare(at[a.Workload], at[b.Workload]), cmp.Compare(slices.Index(s, a.Scale), slices.Index(s, b.Scale)),
			cmp.Compare(slices.Index(c, a.Class), slices.Index(c, b.Class)))
	})
	for _, row := range rows {
		name := row.Workload
		if len(scales[name]) > 1 {
			row.Workload += ", " + row.Scale
		}
		if len(classes[name]) > 1 {
			row.Workload += ", " + row.Class
		}
	}
}

func entryOf(cells []workload.Cell) *Entry {
	pick := func(f func(c workload.Cell) float64) Sample {
		var list []float64
		for _, c := range cells {
			if c.Failed == "" {
				list = append(list, f(c))
			}
		}
		return sampleOf(list)
	}
	per := func(n int64, c workload.Cell) float64 { return float64(n) / float64(max(c.Ops, 1)) }
	e := &Entry{
		CPU:   pick(func(c workload.Cell) float64 { return per(c.User+c.Sys, c) }),
		User:  pick(func(c workload.Cell) float64 { return per(c.User, c) }),
		Sys:   pick(func(c workload.Cell) float64 { return per(c.Sys, c) }),
		Wall:  pick(func(c workload.Cell) float64 { return per(c.Wall, c) }),
		Value: pick(func(c workload.Cell) float64 { return c.Value }),
		P50:   pick(func(c workload.Cell) float64 { return float64(c.P50) }),
		P99:   pick(func(c workload.Cell) float64 { return float64(c.P99) }),
		P999:  pick(func(c workload.Cell) float64 { return float64(c.P999) }),
		Read:  pick(func(c workload.Cell) float64 { return float64(c.Read) }),
		Write: pick(func(c workload.Cell) float64 { return float64(c.Write) }),
		Disk:  pick(func(c workload.Cell) float64 { return float64(c.Disk) }),
		Peak:  pick(func(c workload.Cell) float64 { return float64(c.Peak) }),
		Amplification: pick(func(c workload.Cell) float64 {
			return float64(c.Write) / float64(max(c.Data, 1))
		}),
	}
	for _, c := range cells {
		e.Ops = max(e.Ops, c.Ops)
		if c.Failed != "" {
			e.Failed = c.Failed
		}
		if c.Cut != "" {
			e.Cut = c.Cut
		}
		if c.Data == 0 && c.Failed == "" {
			e.Amplification = Sample{}
		}
	}
	return e
}

// ByWall reports whether the row is judged by wall time: where operations wait for the disk, processor time says little.
func (r *Row) ByWall() bool { return r.Class == "durable" }

// Judged is the number by which the row is decided: an amount, or time per operation. Less is better, except where the unit
// says "per second".
func (r *Row) Judged(e *Entry) Sample {
	switch {
	case r.Unit != "":
		return e.Value
	case r.ByWall():
		return e.Wall
	}
	return e.CPU
}

// Best returns the best rival among those that did all of the work.
func (r *Row) Best() (name string, s Sample) {
	for n, e := range r.Engines {
		if isSubject(n) || n == floorEngine {
			continue
		}
		v := r.Judged(e)
		if v.Rounds == 0 || e.Cut != "" {
			continue
		}
		if name == "" || r.better(v.Median, s.Median) || v.Median == s.Median && n < name {
			name, s = n, v
		}
	}
	return name, s
}

// more marks units of which more is better.
const more = "/s"

func (r *Row) better(a, b float64) bool {
	if len(r.Unit) >= len(more) && r.Unit[len(r.Unit)-len(more):] == more {
		return a > b
	}
	return a < b
}

// lost is the ratio where the other one is better beyond measure: it did what Pando did not, or for nothing.
const lost = 1e9

// Ratio is Pando, with the better of its layouts, over the best rival, such that below 1 is ahead; 0 when there is nothing to compare.
func (r *Row) Ratio() float64 {
	engine, _ := r.Mine()
	return r.RatioOf(engine)
}

// RatioOf is the ratio of one layout of Pando.
func (r *Row) RatioOf(engine string) float64 {
	e := r.Engines[engine]
	name, best := r.Best()
	switch {
	case e == nil || name == "" || r.Info:
		return 0
	case r.Judged(e).Rounds == 0 && !isFailure(e.Failed):
		return 0
	case r.Judged(e).Rounds == 0 || e.Cut != "":
		return lost
	}
	mine := r.Judged(e).Median
	if r.better(2, 1) { // more is better
		mine, best.Median = best.Median, mine
	}
	if best.Median == 0 {
		if mine == 0 {
			return 1
		}
		return lost
	}
	return mine / best.Median
}
