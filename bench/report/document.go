package report

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options says what Write writes.
type Options struct {
	Dir     string // for benchmarks.md and benchmarks/*.svg
	Notes   string // Markdown that is put below the list of cells in which Pando is behind
	Details bool   // every number of every engine, in benchmarks/details.md
}

// Write writes the report.
func Write(r *Result, o Options) error {
	charts := filepath.Join(o.Dir, "benchmarks")
	if err := os.MkdirAll(charts, 0o755); err != nil {
		return err
	}
	rows := Rows(r)
	files := drawings(r, rows)
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(charts, f.name), []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	if o.Details {
		if err := os.WriteFile(filepath.Join(charts, "details.md"), []byte(Details(r)), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(o.Dir, "benchmarks.md"), []byte(document(r, rows, files, o.Notes)), 0o644)
}

// drawing is a chart in a file.
type drawing struct{ name, title, workload, text string }

// drawings makes a bar chart for every workload, and a line chart for every cell that has sizes.
func drawings(r *Result, rows []*Row) []drawing {
	var list []drawing
	for _, w := range r.Workloads {
		var bars []*Row
		lines := map[string][]*Row{}
		var names []string
		for _, row := range rows {
			switch {
			case row.Workload != w.Name:
			case row.Size == 0:
				bars = append(bars, row)
			default:
				if lines[row.Cell] == nil {
					names = append(names, row.Cell)
				}
				lines[row.Cell] = append(lines[row.Cell], row)
			}
		}
		if len(bars) > 0 {
			list = append(list, drawing{fileName(w.Name) + ".svg", w.Name, w.Name, barChart(w.Name, bars)})
		}
		for _, n := range names {
			list = append(list, drawing{fileName(w.Name+" "+n) + ".svg", n, w.Name, lineChart(n, lines[n])})
		}
	}
	return list
}

// fileName keeps letters, digits and dashes.
func fileName(s string) string {
	clean := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(s))
	return strings.Trim(clean, "-")
}

func document(r *Result, rows []*Row, files []drawing, notes string) string {
	var b strings.Builder
	b.WriteString(`# Benchmarks: Pando beside other engines

This page is made by the benchmark itself; only the reasons below the first list are written by hand. Less is better
everywhere except where a unit ends in "/s". The ratio is Pando over the best other engine of the same durability: **below 1
Pando is ahead**; above 1 it is in bold, and the cell is on the first list.

`)
	fmt.Fprintf(&b, "    %s\n    pandobench report *.json --out docs --notes bench/notes.md\n\n", r.Command)
	fmt.Fprintf(&b, "`pandobench` is `go run ./cmd/pandobench` in `bench/`; engines in C need `-tags cgo_rivals,lmdb,rocksdb` and Debian's liblmdb-dev and librocksdb-dev. %s\n\n", machineText(r))
	behind(&b, rows)
	if notes != "" {
		b.WriteString(strings.TrimSpace(notes) + "\n\n")
	}
	summary(&b, rows)
	method(&b, r)
	b.WriteString("## All cells\n\nEach entry is nanoseconds of processor time per operation, of the whole process with its background work, and in brackets of wall time; where a unit is named, the amount. Synced cells show wall time first. The best other engine is bold. Medians over the rounds.\n\n")
	for _, w := range r.Workloads {
		family(&b, r, rows, files, w)
	}
	return b.String()
}

func machineText(r *Result) string {
	m := r.Machine
	text := fmt.Sprintf("The machine: %d cores (%s), %.0f GiB of memory, %s/%s, %s", m.Cores, cmp.Or(m.Processor, "processor unknown"), m.MemoryGiB, m.OS, m.Arch, m.Go)
	if m.Kernel != "" {
		text += ", kernel " + m.Kernel
	}
	return text + fmt.Sprintf(". The run took %.0f minutes; sizes: %s records, %s in `large`, values of 100 KB: %s, budget %d MiB.",
		r.Seconds/60, thousands(int64(r.Sizes.Records)), thousands(int64(r.Sizes.Large)), thousands(int64(r.Sizes.Long)), r.Sizes.MemoryMB)
}

// behind lists the cells in which Pando is not ahead, the worst first.
func behind(b *strings.Builder, rows []*Row) {
	var list []*Row
	for _, row := range rows {
		if row.Ratio() > 1 {
			list = append(list, row)
		}
	}
	slices.SortStableFunc(list, func(x, y *Row) int { return cmp.Compare(y.Ratio(), x.Ratio()) })
	fmt.Fprintf(b, "## Where Pando is behind\n\n%d of %d cells.\n\n| workload | cell | ratio | Pando | best other | spread of Pando, of the other |\n|---|---|---|---|---|---|\n", len(list), compared(rows))
	for _, row := range list {
		best, s := row.Best()
		mine := row.Judged(row.Engines[Subject])
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s: %s | %.0f %%, %.0f %% |\n", row.Workload, cellName(row), ratioText(row.Ratio()),
			number(mine.Median), best, number(s.Median), mine.Spread(), s.Spread())
	}
	b.WriteString("\n")
}

// compared counts the rows in which there is something to compare.
func compared(rows []*Row) int {
	n := 0
	for _, row := range rows {
		if row.Ratio() > 0 {
			n++
		}
	}
	return n
}

func cellName(row *Row) string {
	name := row.Cell
	if row.Size > 0 {
		name += fmt.Sprintf(" (%s records)", thousands(row.Size))
	}
	return name + unitOf(row)
}

// summary counts how the cells fall.
func summary(b *strings.Builder, rows []*Row) {
	limits := []float64{0.33, 0.5, 0.8, 1, 1e300}
	names := []string{"to 0.33", "to 0.5", "to 0.8", "to 1", "above 1"}
	counts := make([]int, len(limits))
	for _, row := range rows {
		if x := row.Ratio(); x > 0 {
			i, _ := slices.BinarySearch(limits, x)
			counts[i]++
		}
	}
	b.WriteString("| ratio |")
	for _, n := range names {
		b.WriteString(" " + n + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(names)) + "\n| cells |")
	for _, n := range counts {
		fmt.Fprintf(b, " %d |", n)
	}
	b.WriteString("\n\n")
}

func method(b *strings.Builder, r *Result) {
	b.WriteString(`## Method

- Every engine gets a fresh process and a fresh directory for every workload. Engines take turns within a round, in reverse
  order in every other round. Shown are medians; the spread is the range over the rounds in per cent of the median.
- Keys and values are the same for all, made by a generator that costs a few nanoseconds. Every value read is checked; of
  values above 4 KB one word in 31; scans check all keys' order, their number, and one whole value in 64. What an engine
  acknowledged has to be there after kill -9, or its cell fails.
- Processor time is that of the process (getrusage), background threads and garbage collection included. What an engine puts
  off is charged by the cells "..., settled": the same work until the engine is idle again. (Badger and goleveldb cannot be
  asked to flush; what is still in their memtables then is not charged to them.)
- Bytes written are what went through write calls or what dirtied pages of mappings, whichever is more.
- Durability: "none" promises nothing, "relaxed" survives a killed process, "durable" a power cut. Only equals are compared.

| engine | version | what it is | settings | relaxed | durable |
|---|---|---|---|---|---|
`)
	for _, e := range r.Engines {
		relaxed := e.Classes["relaxed"]
		if weak := e.Weaker["relaxed"]; weak != "" {
			relaxed += " (nearly: " + weak + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", e.Name, e.Version, e.Kind, e.Settings, relaxed, e.Classes["durable"])
	}
	b.WriteString("\n")
}

// family writes the table and the charts of one workload.
func family(b *strings.Builder, r *Result, rows []*Row, files []drawing, w Family) {
	var mine []*Row
	for _, row := range rows {
		if row.Workload == w.Name {
			mine = append(mine, row)
		}
	}
	if len(mine) == 0 {
		return
	}
	names := engineNames(r)
	rounds := 0
	for _, e := range mine[0].Engines {
		rounds = max(rounds, e.CPU.Rounds)
	}
	fmt.Fprintf(b, "### %s\n\n%s. Class %s, %d rounds.\n\n| cell | ratio |", w.Name, w.About, mine[0].Class, rounds)
	for _, n := range names {
		b.WriteString(" " + n + " |")
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(names)) + "\n")
	for _, row := range mine {
		fmt.Fprintf(b, "| %s | %s |", cellName(row), ratioText(row.Ratio()))
		best, _ := row.Best()
		for _, n := range names {
			b.WriteString(" " + entryText(row, n, n == best) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, f := range files {
		if f.workload == w.Name {
			fmt.Fprintf(b, "![%s](benchmarks/%s)\n", f.title, f.name)
		}
	}
	b.WriteString("\n")
}
