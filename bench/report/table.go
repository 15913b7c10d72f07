package report

import (
	"fmt"
	"math"
	"strings"
)

// Table is the run in Markdown, a line per cell: what decides it for every engine, and the ratio.
func Table(r *Result) string {
	var b strings.Builder
	names := engineNames(r)
	b.WriteString("| workload | cell | Pando / best |")
	for _, n := range names {
		b.WriteString(" " + n + " |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(names)) + "\n")
	for _, row := range Rows(r) {
		fmt.Fprintf(&b, "| %s | %s | %s |", row.Workload, cellName(row), ratioCell(row))
		best, _ := row.Best()
		for _, n := range names {
			b.WriteString(" " + entryText(row, n, n == best) + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func engineNames(r *Result) []string {
	var names []string
	for _, e := range r.Engines {
		names = append(names, e.Name)
	}
	return names
}

func unitOf(row *Row) string {
	switch {
	case row.Unit != "":
		return ", " + row.Unit
	case row.ByWall():
		return ", ns wall (CPU)"
	}
	return ""
}

func ratioText(x float64) string {
	switch {
	case x == 0:
		return ""
	case x > 1e6:
		return "**>**"
	case x > 1:
		return fmt.Sprintf("**%.2f**", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// cutMark stands behind numbers of an engine that did not get everything done.
const cutMark = "(part)"

// failedMark stands in place of numbers that there are not since something went wrong.
const failedMark = "failed"

// entryText is "CPU (wall)" of an engine, or the amount.
func entryText(row *Row, name string, best bool) string {
	e := row.Engines[name]
	if e == nil {
		return ""
	}
	if row.Judged(e).Rounds == 0 {
		if isFailure(e.Failed) {
			return failedMark
		}
		return "-"
	}
	var s string
	switch {
	case row.Unit != "":
		s = number(e.Value.Median)
	case row.ByWall():
		s = number(e.Wall.Median) + " (" + number(e.CPU.Median) + ")"
	default:
		s = number(e.CPU.Median) + " (" + number(e.Wall.Median) + ")"
	}
	if e.Cut != "" {
		s += " " + cutMark
	}
	if isFailure(e.Failed) {
		s += " (" + failedMark + " in a round)"
	}
	if best {
		s = "**" + s + "**"
	}
	return s
}

// number prints three or more digits.
func number(x float64) string {
	switch {
	case x == math.Trunc(x) && x < 1e15 || x >= 100:
		return thousands(int64(math.Round(x)))
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
