package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/engines"
	"github.com/pandodb/pando/bench/report"
	"github.com/pandodb/pando/bench/workload"
)

// plan is what a run consists of.
type plan struct {
	drivers   []engine.Driver
	workloads []workload.Workload
	sizes     workload.Sizes
	rounds    int
	class     string // instead of the workloads' own
	dir       string
	limit     time.Duration // for one engine in one workload
	enough    time.Duration // after which no further workload is begun, once every one has had a round; 0: never
}

func runCommand(args []string) error {
	p, out, err := parseRun(args)
	if err != nil {
		return err
	}
	result := report.Result{Command: "pandobench run " + strings.Join(args, " "), Sizes: p.sizes, Rounds: p.rounds, Machine: report.ThisMachine()}
	for _, d := range p.drivers {
		result.Engines = append(result.Engines, report.Describe(d))
	}
	for _, w := range p.workloads {
		result.Workloads = append(result.Workloads, report.Family{Name: w.Name, About: w.About})
	}
	begin := time.Now()
	result.Cells, err = p.run(func(cells []workload.Cell) {
		result.Cells = cells // kept up to date, so that an interrupted run has its numbers
		result.Seconds = time.Since(begin).Seconds()
		if out != "" {
			_ = result.Save(out) // the last one reports its error
		}
	})
	if err != nil {
		return err
	}
	if out != "" {
		if err := result.Save(out); err != nil {
			return err
		}
	}
	fmt.Print(report.Table(&result))
	return result.Failures()
}

func parseRun(args []string) (*plan, string, error) {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "everything at small scale, to see that every cell works")
	size := flags.String("size", "full", "quick, medium or full")
	names := flags.String("engines", "", "engines, separated by commas; empty: all of this build")
	works := flags.String("workloads", "", "workloads, separated by commas; empty: all")
	rounds := flags.Int("rounds", 0, "rounds; 0: 5, or 1 with --quick")
	class := flags.String("class", "", "class of durability instead of each workload's own")
	records := flags.Int("records", 0, "records of 16+100 bytes, instead of the size's number")
	large := flags.Int("large", 0, "records of the large workload, instead of the size's number")
	growth := flags.Int("growth", 0, "largest number of records of the growth workload, instead of the size's number")
	documents := flags.Int("documents", 0, "documents of the largest documents workload, instead of the size's number")
	data := flags.String("data", os.Getenv(workload.DataVariable), "directory with flights.csv.zst; empty: flights are made up")
	memory := flags.Int("memory", 0, "budget in MiB, instead of the size's")
	dir := flags.String("dir", "", "directory for the databases; empty: a temporary one")
	out := flags.String("json", "", "file for the numbers")
	enough := flags.Duration("for", 0, "begin no workload after this time, once every one has had a round")
	limit := flags.Duration("limit", 20*time.Minute, "an engine that takes longer in one workload is stopped")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	if err := os.Setenv(workload.DataVariable, *data); err != nil { // for the children
		return nil, "", err
	}
	p := &plan{rounds: *rounds, class: *class, dir: *dir, limit: *limit, enough: *enough}
	if *quick {
		*size = "quick"
	}
	switch *size {
	case "quick":
		p.sizes = workload.Quick()
	case "medium":
		p.sizes = workload.Medium()
	case "full":
		p.sizes = workload.Full()
	default:
		return nil, "", fmt.Errorf("size %q: want quick, medium or full", *size)
	}
	override(&p.sizes.Records, *records)
	override(&p.sizes.Large, *large)
	override(&p.sizes.Growth, *growth)
	override(&p.sizes.Documents, *documents)
	override(&p.sizes.MemoryMB, *memory)
	if p.rounds == 0 {
		p.rounds = 5
		if *size == "quick" {
			p.rounds = 1
		}
	}
	var err error
	p.drivers, err = choose(engines.All(), *names, func(d engine.Driver) string { return d.Name })
	if err != nil {
		return nil, "", err
	}
	p.workloads, err = choose(workload.All(), *works, func(w workload.Workload) string { return w.Name })
	return p, *out, err
}

func override(field *int, value int) {
	if value > 0 {
		*field = value
	}
}

// choose picks from a list by names; a name that ends in * stands for all that begin so.
func choose[T any](list []T, names string, name func(T) string) ([]T, error) {
	if names == "" {
		return list, nil
	}
	var out []T
	for want := range strings.SplitSeq(names, ",") {
		found := false
		for _, x := range list {
			prefix, open := strings.CutSuffix(want, "*")
			if name(x) == want || open && strings.HasPrefix(name(x), prefix) {
				out, found = append(out, x), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no %q: see pandobench list", want)
		}
	}
	return out, nil
}

// run carries the plan out: round by round, workload by workload, engine by engine.
func (p *plan) run(progress func([]workload.Cell)) ([]workload.Cell, error) {
	if p.dir != "" {
		if err := os.MkdirAll(p.dir, 0o755); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(p.dir, "pandobench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var cells []workload.Cell
	start := time.Now()
	for round := range p.rounds {
		for _, w := range p.workloads {
			if round > 0 && p.enough > 0 && time.Since(start) > p.enough {
				return cells, nil
			}
			order := slices.Clone(p.drivers)
			if round%2 == 1 {
				slices.Reverse(order) // so that no engine always follows the same one
			}
			for _, d := range order {
				if !fits(d, w) {
					continue
				}
				begin := time.Now()
				got := p.one(filepath.Join(dir, "db"), d, w, round)
				cells = append(cells, got...)
				note := ""
				if n := len(got); n > 0 && got[n-1].Failed != "" {
					note = "  " + got[n-1].Failed
				}
				fmt.Fprintf(os.Stderr, "round %d  %-18s %-12s %6.1f s%s\n", round+1, w.Name, d.Name, time.Since(begin).Seconds(), note)
				progress(cells)
			}
		}
	}
	return cells, nil
}

// fits reports whether it makes sense to ask the engine: the floor of a synced write has nothing else to show.
func fits(d engine.Driver, w workload.Workload) bool {
	if w.Documents {
		return d.OpenDocuments != nil
	}
	return d.Open != nil && (d.Name != "raw" || w.Class == engine.Durable)
}

// one runs the stages of a workload on an engine in processes of their own.
func (p *plan) one(dir string, d engine.Driver, w workload.Workload, round int) []workload.Cell {
	var cells []workload.Cell
	defer os.RemoveAll(dir)
	for stage := range w.Stages {
		spec := workload.Spec{
			Engine: d.Name, Workload: w.Name, Stage: stage, Dir: dir, Class: w.Class.String(), Round: round,
			Sizes: p.sizes, Out: dir + ".cells",
		}
		if p.class != "" {
			spec.Class = p.class
		}
		got, err := p.child(spec)
		if err != nil {
			got = append(got, workload.Cell{Workload: w.Name, Engine: d.Name, Class: spec.Class, Round: round, Failed: err.Error()})
		}
		cells = append(cells, got...)
		if n := len(got); n > 0 && got[n-1].Failed != "" {
			break
		}
	}
	return cells
}

// child runs one stage.
func (p *plan) child(spec workload.Spec) ([]workload.Cell, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	os.Remove(spec.Out)
	defer os.Remove(spec.Out)
	cmd := exec.Command(self, "child", string(text))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	timer := time.AfterFunc(p.limit, func() { cmd.Process.Kill() })
	err = cmd.Run()
	timedOut := !timer.Stop()
	cells, lerr := workload.LoadCells(spec.Out)
	if lerr != nil {
		return nil, errors.Join(fmt.Errorf("%v: %s", err, firstLines(stderr.String())), lerr)
	}
	if timedOut {
		return cells, fmt.Errorf("stopped after %v", p.limit)
	}
	return cells, nil
}

func firstLines(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[:min(len(lines), 30)], "\n")
}

func childCommand(args []string) error {
	if len(args) != 1 {
		return errors.New("child: want one argument")
	}
	var spec workload.Spec
	if err := json.Unmarshal([]byte(args[0]), &spec); err != nil {
		return err
	}
	d, ok := engines.Find(spec.Engine)
	if !ok {
		return fmt.Errorf("engine %q is not in this build", spec.Engine)
	}
	for _, w := range workload.All() {
		if w.Name != spec.Workload {
			continue
		}
		cells, err := workload.Execute(spec, d, w)
		if err != nil {
			return err
		}
		return workload.SaveCells(spec.Out, cells)
	}
	return fmt.Errorf("workload %q is not in this build", spec.Workload)
}
