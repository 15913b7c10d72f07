package report

import (
	"cmp"
	"fmt"
	"math"
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
	list := chapters(r, rows)
	files := drawings(list)
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
	return os.WriteFile(filepath.Join(o.Dir, "benchmarks.md"), []byte(document(r, list, files, o.Notes)), 0o644)
}

// chapter is one workload at one scale.
type chapter struct {
	name, about string
	rows        []*Row
}

// chapters splits the rows, which are in order.
func chapters(r *Result, rows []*Row) []chapter {
	var list []chapter
	for _, row := range rows {
		if n := len(list); n > 0 && list[n-1].name == row.Workload {
			list[n-1].rows = append(list[n-1].rows, row)
			continue
		}
		c := chapter{name: row.Workload, rows: []*Row{row}}
		for _, w := range r.Workloads {
			if w.Name == row.Workload || strings.HasPrefix(row.Workload, w.Name+", ") {
				c.about = w.About
			}
		}
		if row.Scale != "" && c.name == row.Workload {
			c.about += "; " + row.Scale
		}
		list = append(list, c)
	}
	return list
}

// drawing is a chart in a file.
type drawing struct{ name, title, chapter, text string }

// drawings makes a bar chart for every workload, and a line chart for every cell that has sizes.
func drawings(list []chapter) []drawing {
	var files []drawing
	for _, c := range list {
		var bars []*Row
		lines := map[string][]*Row{}
		var names []string
		for _, row := range c.rows {
			if row.Size == 0 {
				bars = append(bars, row)
				continue
			}
			if lines[row.Cell] == nil {
				names = append(names, row.Cell)
			}
			lines[row.Cell] = append(lines[row.Cell], row)
		}
		if len(bars) > 0 {
			files = append(files, drawing{fileName(c.name) + ".svg", c.name, c.name, barChart(c.name, bars)})
		}
		for _, n := range names {
			if len(linesOf(lines[n])) == 0 {
				continue // nor are there axes to it
			}
			files = append(files, drawing{fileName(c.name+" "+n) + ".svg", n, c.name, lineChart(n, lines[n])})
		}
	}
	return files
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

func document(r *Result, list []chapter, files []drawing, notes string) string {
	var rows []*Row
	for _, c := range list {
		rows = append(rows, c.rows...)
	}
	var b strings.Builder
	b.WriteString(`# Benchmarks: Pando beside other engines

This page is made by the benchmark itself; only the reasons below the first list are written by hand. Less is better
everywhere except where a unit ends in "/s". The ratio is Pando over the best other engine of the same durability: **below 1
Pando is ahead**; above 1 it is in bold, and the cell is on the first list.

`)
	if severalLayouts(rows) {
		b.WriteString(layoutsIntroduction)
	}
	b.WriteString(`Two commands make such a page from a machine of your own, in minutes (without --quick, or with --size medium, in hours):

    cd bench && go run ./cmd/pandobench run --quick --append ../../numbers.json
    go run ./cmd/pandobench report ../../numbers.json --out ../../report

This one was made by

`)
	fmt.Fprintf(&b, "    %s\n    pandobench report bench/numbers/engines/*.json.gz --out docs --notes bench/notes.md\n\n", r.Command)
	fmt.Fprintf(&b, "Engines in C need `-tags cgo_rivals,lmdb,rocksdb` and Debian's liblmdb-dev and librocksdb-dev. %s\n\n", machineText(r))
	behind(&b, rows)
	if notes != "" {
		b.WriteString(strings.TrimSpace(notes) + "\n\n")
	}
	summary(&b, rows)
	writeFailures(&b, r)
	writeTargets(&b, rows)
	method(&b, r, rows)
	b.WriteString("## All cells\n\nEach entry is nanoseconds of processor time per operation, of the whole process with its background work, and in brackets of wall time; where a unit is named, the amount. Synced cells show wall time first. The best other engine is bold. Medians over the rounds.\n\n")
	for _, c := range list {
		family(&b, r, files, c)
	}
	return b.String()
}

func machineText(r *Result) string {
	m := r.Machine
	text := fmt.Sprintf("The machine: %d cores (%s), %.0f GiB of memory, %s/%s, %s", m.Cores, cmp.Or(m.Processor, "processor unknown"), m.MemoryGiB, m.OS, m.Arch, m.Go)
	if m.Kernel != "" {
		text += ", kernel " + m.Kernel
	}
	return text + fmt.Sprintf(". It took %.0f minutes.", r.Seconds/60)
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
		engine, e := row.Mine()
		mine, text := row.Judged(e), failedMark
		if mine.Rounds > 0 {
			text = number(mine.Median)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s%s | %s: %s | %.0f %%, %.0f %% |\n", row.Workload, cellName(row), ratioText(row.Ratio()),
			text, row.layoutMark(engine), best, number(s.Median), mine.Spread(), s.Spread())
	}
	b.WriteString("\n")
	alone(b, rows)
}

// alone writes what one layout of Pando alone comes to, where there are several.
func alone(b *strings.Builder, rows []*Row) {
	if text := withOneLayout(rows); text != "" {
		b.WriteString(text + "\n\n")
	}
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

// writeFailures lists what went wrong, if anything did.
func writeFailures(b *strings.Builder, r *Result) {
	list := r.failed()
	if len(list) == 0 {
		return
	}
	b.WriteString("## What failed\n\nThere are no numbers of these, and where they are Pando's its cells count as lost.\n\n")
	for _, c := range list {
		reason, _, _ := strings.Cut(c.Failed, "\n")
		fmt.Fprintf(b, "- %s in round %d of %s: %s\n", c.Engine, c.Round+1, strings.Trim(c.Workload+", "+c.Scale, ", "), reason)
	}
	b.WriteString("\n")
}

func method(b *strings.Builder, r *Result, rows []*Row) {
	fmt.Fprintf(b, `## Method

- Every engine gets a fresh process and a fresh directory for every workload. Engines take turns within a round, in reverse
  order in every other round. Shown are medians; the spread is the range over the rounds in per cent of the median.
- Keys and values are the same for all, made by a generator that costs a few nanoseconds. Every value read is checked; of
  values above 4 KB one word in 31; scans check all keys' order, their number, one whole record in 64, and of each value of 1 KB or more
  one word in every line of the processor's caches. "One value in 64" is a scan by keys that asks for no other values. After writes some of
  the records are looked at. What an engine acknowledged has to be there after kill -9, or its cell fails. Tests run every workload
  on engines that are wrong on purpose.
- Processor time is that of the process (getrusage), background threads and garbage collection included. What an engine puts
  off is charged by the cells "..., settled": the same work until the engine is idle again. (Badger and goleveldb cannot be
  asked to flush; what is still in their memtables then is not charged to them.)
- Where much is loaded there may be a limit of time (--load-limit). An engine that has not everything in by then goes on with what
  it has; its numbers are marked "(part)" and not compared, since less data is cheaper. If that engine is Pando, the cell counts as lost.
  The steps of a queue, and updates in transactions, have a limit of seconds: what an engine did until then is marked in the same way.
- Update transactions take turns, or are checked for conflicts, and read what they have written. Pebble has none, and those of RocksDB
  are batches with an index inside: both get such a batch, under a lock that a program has to have around it.
- "raw" is no engine: a write and an fdatasync, and in lines over the number of records one access to as much memory as the
  records take, which is what cache misses explain of their growth.
- Bytes written are what went through write calls or what dirtied pages of mappings, whichever is more.
- %s
- Durability: "none" promises nothing, "relaxed" survives a killed process, "durable" a power cut. Only equals are compared.%s

| engine | version | what it is | settings | relaxed | durable |
|---|---|---|---|---|---|
`, memoryText(r), layoutsText(rows))
	for _, e := range r.Engines {
		relaxed := e.Classes["relaxed"]
		if weak := e.Weaker["relaxed"]; weak != "" {
			relaxed += " (nearly: " + weak + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", e.Name, e.Version, e.Kind, e.Settings, relaxed, e.Classes["durable"])
	}
	b.WriteString("\n")
}

// memoryText says what memory the engines had.
func memoryText(r *Result) string {
	const budget = "Every engine is told the same budget for its caches and memtables"
	switch limited := strings.Contains(scalesOf(r), "memory limited"); {
	case limited:
		return budget + ".\n  Where \"memory limited\" is written, the process had no more than that from outside (a control group), page cache included."
	case r.Unlimited != "":
		return budget + ";\n  the page cache is outside of it, and is not limited here: " + r.Unlimited + "."
	}
	return budget + ";\n  the page cache is outside of it (--memory-limit auto puts it inside, where the system can)."
}

func scalesOf(r *Result) string {
	var b strings.Builder
	for _, c := range r.Cells {
		b.WriteString(c.Scale + "\n")
	}
	return b.String()
}

// family writes the table and the charts of one chapter.
func family(b *strings.Builder, r *Result, files []drawing, c chapter) {
	names := engineNames(r)
	fmt.Fprintf(b, "### %s\n\n%s. Class %s, %s.\n\n| cell | ratio |", c.name, c.about, c.rows[0].Class, roundsText(c.rows))
	for _, n := range names {
		b.WriteString(" " + n + " |")
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(names)) + "\n")
	for _, row := range c.rows {
		fmt.Fprintf(b, "| %s | %s |", cellName(row), ratioCell(row))
		best, _ := row.Best()
		for _, n := range names {
			b.WriteString(" " + entryText(row, n, n == best) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	alone(b, c.rows)
	cuts(b, names, c.rows)
	for _, f := range files {
		if f.chapter == c.name {
			fmt.Fprintf(b, "![%s](benchmarks/%s)\n", f.title, f.name)
		}
	}
	b.WriteString("\n")
}

// roundsText is how many rounds the engines have had.
func roundsText(rows []*Row) string {
	least, most := math.MaxInt, 0
	for _, row := range rows {
		for _, e := range row.Engines {
			if n := row.Judged(e).Rounds; n > 0 {
				least, most = min(least, n), max(most, n)
			}
		}
	}
	switch {
	case most == 1:
		return "1 round"
	case least < most:
		return fmt.Sprintf("%d to %d rounds", least, most)
	}
	return fmt.Sprintf("%d rounds", most)
}

// cuts says below a table which engines did not get everything done.
func cuts(b *strings.Builder, names []string, rows []*Row) {
	for _, n := range names {
		var seen []string
		for _, row := range rows {
			if e := row.Engines[n]; e != nil && e.Cut != "" && !slices.Contains(seen, e.Cut) {
				seen = append(seen, e.Cut)
			}
		}
		if len(seen) > 0 {
			fmt.Fprintf(b, "%s, %s: %s. Not compared.\n\n", n, cutMark, strings.Join(seen, "; "))
		}
	}
}
