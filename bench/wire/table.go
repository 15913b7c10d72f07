package wire

import (
	"fmt"
	"slices"
	"strings"
)

// figure is a server's medians in a workload.
type figure struct {
	rounds              int
	rate, server        float64 // operations per second; processor microseconds of the server per operation
	spread              float64 // of server over the rounds: the range, in per cent of the median
	client              float64
	p50, p99, p999      float64 // microseconds
	peakMiB, diskMiB    float64
	failed              string
	rateLeast, rateMost float64
}

// figures takes the medians of a server's rounds in a workload.
func (r *Result) figures(server, workload string) figure {
	var f figure
	var rate, cpu, client, p50, p99, p999, peak, disk []float64
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Server != server || c.Workload != workload {
			continue
		}
		if c.Failed != "" {
			f.failed = c.Failed
			continue
		}
		rate, cpu, client = append(rate, c.rate()), append(cpu, c.serverMicros()), append(client, c.clientMicros())
		p50, p99, p999 = append(p50, float64(c.P50)/1e3), append(p99, float64(c.P99)/1e3), append(p999, float64(c.P999)/1e3)
		peak, disk = append(peak, float64(c.Peak)/(1<<20)), append(disk, float64(c.Disk)/(1<<20))
	}
	if f.rounds = len(rate); f.rounds == 0 {
		return f
	}
	f.rateLeast, f.rateMost = slices.Min(rate), slices.Max(rate)
	if f.server = median(cpu); f.server > 0 {
		f.spread = 100 * (slices.Max(cpu) - slices.Min(cpu)) / f.server
	}
	f.rate, f.client = median(rate), median(client)
	f.p50, f.p99, f.p999, f.peakMiB, f.diskMiB = median(p50), median(p99), median(p999), median(peak), median(disk)
	return f
}

// done says how many rounds there were, which are fewer than asked for when the run was cut short.
func (r *Result) done() string {
	n := 0
	for _, c := range r.Cells {
		n = max(n, c.Round+1)
	}
	if n < r.Rounds {
		return fmt.Sprintf("%d of the %d asked for, as the run was cut short", n, r.Rounds)
	}
	return fmt.Sprint(n)
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	if n := len(list); n%2 == 0 {
		return (list[n/2-1] + list[n/2]) / 2
	}
	return list[len(list)/2]
}

// wanted is how many times better than mongod Pando has to be, in throughput or in processor time.
const wanted = 3

// verdict compares Pando with mongod. Of the bar only one half has to hold: throughput, or the server's processor time where the
// client eats the processors; and p99 must not be worse.
func verdict(ours, theirs figure) (throughput, cpu, p99 float64, ok bool) {
	if ours.rounds == 0 || theirs.rounds == 0 || ours.server == 0 || theirs.rate == 0 || theirs.p99 == 0 {
		return 0, 0, 0, false
	}
	throughput, cpu, p99 = ours.rate/theirs.rate, theirs.server/ours.server, ours.p99/theirs.p99
	return throughput, cpu, p99, (throughput >= wanted || cpu >= wanted) && p99 <= 1
}

// Table is the run in Markdown: how Pando stands to mongod, then every number.
func Table(r *Result) string {
	var b strings.Builder
	b.WriteString("| workload | throughput, times mongod's | mongod's server CPU / Pando's | p99, Pando's / mongod's | bar |\n|---|---|---|---|---|\n")
	for _, w := range workloads() {
		ours, theirs := r.figures(pandoName, w.name), r.figures(mongodName, w.name)
		if ours.rounds == 0 || theirs.rounds == 0 {
			continue
		}
		throughput, cpu, p99, ok := verdict(ours, theirs)
		bar := "**missed**"
		if ok {
			bar = "met"
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %s |\n", w.name, throughput, cpu, p99, bar)
	}
	b.WriteString("\n| workload | server | per second | server CPU us | spread | client CPU us | p50 us | p99 us | p99.9 us | peak MiB | disk MiB |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, w := range workloads() {
		for _, s := range r.Servers {
			f := r.figures(s.Name, w.name)
			switch {
			case f.rounds > 0:
				fmt.Fprintf(&b, "| %s | %s | %.0f | %.1f | %.0f %% | %.1f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", w.name, s.Name,
					f.rate, f.server, f.spread, f.client, f.p50, f.p99, f.p999, f.peakMiB, f.diskMiB)
			case f.failed != "":
				fmt.Fprintf(&b, "| %s | %s | failed: %s | | | | | | | | |\n", w.name, s.Name, f.failed)
			}
		}
	}
	return b.String()
}

// Report is the page about runs: what was measured, how, and the tables.
func Report(runs []*Result, notes string) string {
	var b strings.Builder
	b.WriteString(`# Benchmarks: Pando's server beside others

This page is made by the benchmark itself; only the remarks are written by hand. The bar is three times mongod's throughput or, as the
client and the server share the processors here, a third of mongod's processor time per operation in the server; and a p99 no worse.

`)
	for _, r := range runs {
		fmt.Fprintf(&b, "    %s\n", r.Command)
	}
	b.WriteString("    pandobench wire --report docs/benchmarks-server.md --notes bench/notes-server.md bench/numbers/servers/*.json.gz\n\n")
	m := runs[0].Machine
	fmt.Fprintf(&b, "`pandobench` is `go run ./cmd/pandobench` in `bench/`. The machine: %d cores (%s), %.0f GiB of memory, %s/%s, %s, kernel %s.\n\n",
		m.Cores, m.Processor, m.MemoryGiB, m.OS, m.Arch, m.Go, m.Kernel)
	if notes != "" {
		b.WriteString(strings.TrimSpace(notes) + "\n\n")
	}
	for _, r := range runs {
		identity := "one-member replica sets"
		if r.Standalone {
			identity = "standalone servers"
		}
		fmt.Fprintf(&b, "## As %s\n\nRounds: %s; %d documents, %d operations a cell (a tenth of that where one is some hundred documents), %d threads; it took %.0f minutes.\n\n",
			identity, r.done(), r.Sizes.Records, r.Sizes.Ops, r.Sizes.Threads, r.Seconds/60)
		b.WriteString(Table(r) + "\n")
	}
	b.WriteString("## The servers\n\n")
	for _, s := range runs[0].Servers {
		fmt.Fprintf(&b, "- **%s**: %s.", s.Name, s.About)
		if !s.Durable {
			b.WriteString(" It is shown for comparison, not as a rival: it keeps nothing.")
		}
		if s.Missing != "" {
			fmt.Fprintf(&b, " It could not be had for this run: %s.", s.Missing)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## The workloads, in the order in which they run\n\n")
	for _, w := range workloads() {
		fmt.Fprintf(&b, "- **%s**: %s.\n", w.name, w.about)
	}
	b.WriteString(`
## Method

Every server is a fresh process on a fresh directory in every round, and the servers take turns, in the opposite order in every other
round. The client is MongoDB's Go driver, one connection per thread, without compression; writes ask for ` + "`{w: 1, j: true}`" + `, so every
acknowledged write has been synced, except with a server that keeps nothing. Numbers are medians over the rounds; spread is the range of the
server's processor time, in per cent of it. Processor time is user and system time of the server's process, from Linux, with what it does
in the two seconds after the workload, or longer if it is still busy: what was put off is
counted. Operations of batches are documents; their latencies are those of whole batches. Peak and disk are those of the server up to then. Answers are verified: one record in sixteen byte by byte, every user, the order of every scan, the
counts of updates and deletes, every group, that no transfer is lost or half there, and the number of documents after inserts and deletes.
`)
	return b.String()
}
