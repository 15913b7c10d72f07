// Package report turns the numbers of a run into tables and charts.
//
// Engines are compared by medians over the rounds; the spread is shown as the range of the rounds, in per cent of the median.
// A ratio is Pando's median over that of the best other engine of the same class: below 1 Pando is ahead. Pando may be there with several
// layouts of its keyspaces: the best of them is what is compared, in each cell, and is named.
package report

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/jsonfile"
	"github.com/pandodb/pando/bench/workload"
)

// Result is a run.
type Result struct {
	Command   string          `json:"command"`
	Machine   Machine         `json:"machine"`
	Sizes     workload.Sizes  `json:"sizes"`
	Rounds    int             `json:"rounds"`
	Seconds   float64         `json:"seconds"`
	Engines   []Engine        `json:"engines"`
	Workloads []Family        `json:"workloads"`
	Cells     []workload.Cell `json:"cells"`
	Unlimited string          `json:"unlimited,omitempty"` // why memory was not limited from outside although that was asked for
}

// Machine describes where a run took place, without naming it.
type Machine struct {
	OS, Arch, Go string
	Cores        int
	MemoryGiB    float64
	Processor    string
	Kernel       string
}

// Engine is what the report tells about an engine.
type Engine struct {
	Name, Version, Kind, Settings string
	Classes, Weaker               map[string]string
}

// Family is a workload.
type Family struct{ Name, About string }

// Describe takes the description out of a driver.
func Describe(d engine.Driver) Engine {
	e := Engine{Name: d.Name, Version: d.Version, Kind: d.Kind, Settings: d.Settings,
		Classes: map[string]string{}, Weaker: map[string]string{}}
	for c, how := range d.Classes {
		e.Classes[c.String()] = how
	}
	for c, how := range d.Weaker {
		e.Weaker[c.String()] = how
	}
	return e
}

// ThisMachine describes the machine that runs this process.
func ThisMachine() Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Cores: runtime.NumCPU()}
	if kb := procNumber("/proc/meminfo", "MemTotal"); kb > 0 {
		m.MemoryGiB = float64(kb) / (1 << 20)
	}
	m.Processor = procText("/proc/cpuinfo", "model name")
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel, _, _ = strings.Cut(strings.TrimSpace(string(text)), "-")
	}
	return m
}

// procText returns the first value of that name in a file of "name : value" lines; empty where there is no such file.
func procText(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func procNumber(file, name string) int64 {
	var n int64
	_, err := fmt.Sscan(procText(file, name), &n)
	if err != nil {
		return 0
	}
	return n
}

// Save writes the run into a file.
func (r *Result) Save(name string) error { return jsonfile.Save(name, r) }

func runs() jsonfile.Runs[Result, workload.Cell] {
	return jsonfile.Runs[Result, workload.Cell]{
		Command: "pandobench run",
		Cells:   func(r *Result) []workload.Cell { return r.Cells },
		Own:     func(c workload.Cell) bool { return c.Engine != "" },
	}
}

// Load is the inverse of Save. A file with other cells is refused, such as one of pandobench wire.
func Load(name string) (*Result, error) { return runs().Load(name) }

// LoadAll loads files of numbers of which each has some.
func LoadAll(names []string) ([]*Result, error) { return runs().LoadAll(names) }

// Failures joins what went wrong.
func (r *Result) Failures() error {
	var errs []error
	for _, c := range r.failed() {
		errs = append(errs, fmt.Errorf("%s %s %s: %s", c.Engine, c.Workload, c.Name, c.Failed))
	}
	return errors.Join(errs...)
}

// isFailure reports whether the reason why a cell has no number tells that something went wrong. That an engine has no such operation, or
// cannot give a class, is not wrong.
func isFailure(reason string) bool {
	return reason != "" && reason != engine.ErrUnsupported.Error() && reason != workload.CannotGive
}

// failed returns the cells of which something went wrong; of a workload that failed as a whole the one that stands for it.
func (r *Result) failed() (list []workload.Cell) {
	type failure struct {
		part
		round  int
		reason string
	}
	whole := map[failure]bool{}
	for _, c := range r.Cells {
		whole[failure{partOf(c), c.Round, c.Failed}] = whole[failure{partOf(c), c.Round, c.Failed}] || c.Name == ""
	}
	for _, c := range r.Cells {
		if isFailure(c.Failed) && (c.Name == "" || !whole[failure{partOf(c), c.Round, c.Failed}]) {
			list = append(list, c)
		}
	}
	return list
}
