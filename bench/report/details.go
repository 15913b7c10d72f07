package report

import (
	"fmt"
	"strings"
)

// Details is every number of every engine in every cell.
func Details(r *Result) string {
	var b strings.Builder
	b.WriteString("# Benchmarks: every number\n\nTimes in ns, per operation except the percentiles; sizes in MB. Medians over the rounds; the spread is that of what decides the cell.\n\n")
	b.WriteString("| workload | cell | engine | ops | ops/s | wall | user | system | p50 | p99 | p99.9 | written | write amplification | read | disk | peak memory | spread |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range Rows(r) {
		for _, name := range engineNames(r) {
			e := row.Engines[name]
			if e == nil {
				continue
			}
			if row.Judged(e).Rounds == 0 {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.Workload, cellName(row), name, e.Failed)
				continue
			}
			if row.Unit != "" {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | | | | | | | | | | | | | %.0f %% |\n", row.Workload, cellName(row), name, number(e.Value.Median), e.Value.Spread())
				continue
			}
			perSecond := 0.0
			if e.Wall.Median > 0 {
				perSecond = 1e9 / e.Wall.Median
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.0f %% |\n",
				row.Workload, cellName(row), name, thousands(e.Ops), number(perSecond), number(e.Wall.Median),
				number(e.User.Median), number(e.Sys.Median), known(e.P50), known(e.P99), known(e.P999),
				megabytes(e.Write), known(e.Amplification), megabytes(e.Read), megabytes(e.Disk), megabytes(e.Peak), row.Judged(e).Spread())
		}
	}
	return b.String()
}

// known prints what was measured, and nothing for what was not.
func known(s Sample) string {
	if s.Median == 0 {
		return ""
	}
	return number(s.Median)
}

func megabytes(s Sample) string {
	if s.Median == 0 {
		return ""
	}
	return number(s.Median / 1e6)
}
