package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pandodb/pando/bench/workload"
)

// progress tells how far a run is: a line for every engine that is through with a workload, and on a terminal a bar below them.
type progress struct {
	out      *os.File
	terminal bool
	left     []job
	total    int
	start    time.Time     // of the job
	spent    time.Duration // on the jobs so far
	took     map[turn]time.Duration
}

// turn is what takes about as long in every round.
type turn struct{ workload, engine string }

func newProgress(out *os.File, jobs []job) *progress {
	info, err := out.Stat()
	return &progress{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
		left: jobs, total: len(jobs), took: map[turn]time.Duration{}}
}

// eraseLine takes the bar away.
const eraseLine = "\r\x1b[K"

func (p *progress) begin(j job) {
	p.start = time.Now()
	if !p.terminal {
		return
	}
	const width = 30
	full := (p.total - len(p.left)) * width / p.total
	fmt.Fprintf(p.out, "%s[%s%s] %d/%d  %s %s%s", eraseLine, strings.Repeat("#", full), strings.Repeat(".", width-full),
		p.total-len(p.left), p.total, j.spec.Workload, j.spec.Engine, p.estimate())
}

// estimate is how long the rest takes: every job as long as in an earlier round, or like the mean of those that have run.
func (p *progress) estimate() string {
	past := p.total - len(p.left)
	if past == 0 {
		return ""
	}
	var sum time.Duration
	for _, j := range p.left {
		t, ok := p.took[turn{j.spec.Workload, j.spec.Engine}]
		if !ok {
			t = p.spent / time.Duration(past)
		}
		sum += t
	}
	return fmt.Sprintf(", about %v to go", sum.Round(time.Second))
}

func (p *progress) done(j job, cells []workload.Cell) {
	took := time.Since(p.start)
	p.took[turn{j.spec.Workload, j.spec.Engine}] = took
	p.spent += took
	p.left = p.left[1:]
	note := ""
	if n := len(cells); n > 0 && cells[n-1].Failed != "" {
		note = "  " + cells[n-1].Failed
	} else if n > 0 && cells[n-1].Cut != "" {
		note = "  " + cells[n-1].Cut
	}
	p.end()
	fmt.Fprintf(p.out, "round %d  %-18s %-12s %6.1f s%s\n", j.spec.Round+1, j.spec.Workload, j.spec.Engine, took.Seconds(), note)
}

// end leaves the line to others.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.out, eraseLine)
	}
}
