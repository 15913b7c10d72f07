package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pandodb/pando/bench/confine"
	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/engines"
	"github.com/pandodb/pando/bench/report"
	"github.com/pandodb/pando/bench/workload"
)

const aboutRun = `
pandobench run: measures. Every engine gets a fresh process and a fresh directory for each workload; engines take turns within a round,
backwards in every other one. After each engine the numbers so far are in the file. Without --json or --append they are only printed.
`

// errInterrupted is how a run ends that somebody ended.
var errInterrupted = errors.New("interrupted")

func runCommand(args []string) error {
	p, out, err := parseRun(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := p.result(out)
	if err != nil {
		return err
	}
	failed := p.run(ctx, result, func() error {
		if out.name == "" {
			return nil
		}
		return result.Save(out.name)
	})
	fmt.Print(report.Table(result))
	if errors.Is(failed, errInterrupted) && out.name != "" {
		return fmt.Errorf("%w; the numbers so far are in %s: the same line with --append goes on", failed, out.name)
	}
	return errors.Join(failed, result.Failures())
}

// output is where the numbers go.
type output struct {
	name      string
	keep      bool   // what the file has
	command   string // as the report shows it
	available string // why memory cannot be limited, if that was asked for
}

// result describes the measurement, with what an earlier one has left in the file.
func (p *plan) result(out output) (*report.Result, error) {
	r := &report.Result{Command: out.command, Sizes: p.sizes, Rounds: p.rounds, Machine: report.ThisMachine()}
	for _, d := range p.drivers {
		r.Engines = append(r.Engines, report.Describe(d))
	}
	for _, w := range p.workloads {
		r.Workloads = append(r.Workloads, report.Family{Name: w.Name, About: w.About})
	}
	r.Unlimited = out.available
	if !out.keep {
		return r, nil
	}
	earlier, err := report.Load(out.name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return r, r.Continue(earlier)
}

// pathFlags say where things lie, which says nothing about the numbers.
var pathFlags = map[string]bool{"dir": true, "json": true, "append": true}

func parseRun(args []string) (*plan, output, error) {
	p := &plan{}
	var out output
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "everything at small scale, to see that every cell works; the same as --size quick")
	size := flags.String("size", "full", "quick, medium or full")
	names := flags.String("engines", "", "engines, separated by commas; empty: all of this build, see pandobench list")
	works := flags.String("workloads", "", "workloads, separated by commas; x* stands for all that begin so; empty: all")
	flags.IntVar(&p.rounds, "rounds", 0, "rounds; 0: 5, or 1 with --quick")
	flags.StringVar(&p.class, "class", "", "class of durability instead of each workload's own: none, relaxed or durable")
	apply := sizeFlags(flags)
	data := flags.String("data", os.Getenv(workload.DataVariable), "directory with flights.csv.zst; empty: flights are made up")
	flags.StringVar(&p.dir, "dir", "", "directory for the databases; empty: a temporary one")
	flags.StringVar(&out.name, "json", "", "file for the numbers; one that is there is replaced")
	keep := flags.String("append", "", "file for the numbers; rounds that one which is there has are not measured again, unless they failed")
	flags.DurationVar(&p.enough, "for", 0, "begin no workload after this time, once every one has had a round")
	flags.DurationVar(&p.limit, "limit", 20*time.Minute, "an engine that takes longer in one workload is stopped")
	flags.DurationVar(&p.loadLimit, "load-limit", 0, "in large and growth: an engine that has not loaded everything by then goes on with what it has, and is not compared; updates get a third of it, reads a tenth")
	memoryLimit := flags.String("memory-limit", "", "memory of each engine's process, page cache included: MiB, or auto for what the engine is told plus a quarter, at least 64 MiB; needs control groups of Linux; empty: no limit")
	if err := parse(flags, args, aboutRun); err != nil {
		return nil, out, err
	}
	if err := noArguments(flags); err != nil {
		return nil, out, err
	}
	if err := os.Setenv(workload.DataVariable, *data); err != nil { // for the children
		return nil, out, err
	}
	if *keep != "" {
		out.name, out.keep = *keep, true
	}
	if *quick {
		*size = "quick"
	}
	out.command = commandOf(flags)
	if err := errors.Join(p.resize(*size, apply), p.choose(*names, *works), p.checkClass()); err != nil {
		return nil, out, misuse{err}
	}
	if err := takesFile(out.name); err != nil {
		return nil, out, err
	}
	var err error
	out.available, err = p.confine(*memoryLimit)
	return p, out, err
}

// checkClass looks at the name of the class, if there is one.
func (p *plan) checkClass() error {
	if p.class == "" {
		return nil
	}
	_, err := engine.ParseClass(p.class)
	return err
}

// takesFile looks whether the numbers will find a directory: better now than after the first hour.
func takesFile(name string) error {
	if name == "" {
		return nil
	}
	dir := filepath.Dir(name)
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("the numbers cannot be kept: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("the numbers cannot be kept: %s is no directory", dir)
	}
	return nil
}

// commandOf is the command line as the report shows it.
func commandOf(flags *flag.FlagSet) string {
	command := "pandobench " + flags.Name()
	flags.Visit(func(f *flag.Flag) {
		switch {
		case pathFlags[f.Name]:
		case f.Name == "data":
			command += " --data DATA"
		case f.Value.String() == "true":
			command += " --" + f.Name
		default:
			command += " --" + f.Name + " " + f.Value.String()
		}
	})
	return command + " --append numbers.json"
}

// sizeFlags adds the flags that replace a number of the size, and returns what applies them.
func sizeFlags(flags *flag.FlagSet) func(*workload.Sizes) {
	records := flags.Int("records", 0, "records of 16+100 bytes, instead of the size's number")
	large := flags.Int("large", 0, "records of the large workload, instead of the size's number")
	growth := flags.Int("growth", 0, "largest number of records of the growth workload, instead of the size's number")
	documents := flags.Int("documents", 0, "documents of the largest documents workload, instead of the size's number")
	memory := flags.Int("memory", 0, "budget in MiB, instead of the size's")
	return func(s *workload.Sizes) {
		override(&s.Records, *records)
		override(&s.Large, *large)
		override(&s.Growth, *growth)
		override(&s.Documents, *documents)
		override(&s.MemoryMB, *memory)
	}
}

// leastDocuments is how many documents there have to be for every workload to have one.
const leastDocuments = 10

func override(field *int, value int) {
	if value > 0 {
		*field = value
	}
}

// resize takes the sizes of that name, with what replaces some of them.
func (p *plan) resize(name string, apply func(*workload.Sizes)) error {
	rounds := 5
	switch name {
	case "quick":
		p.sizes, rounds = workload.Quick(), 1
	case "medium":
		p.sizes = workload.Medium()
	case "full":
		p.sizes = workload.Full()
	default:
		return fmt.Errorf("size %q: want quick, medium or full", name)
	}
	apply(&p.sizes)
	if p.sizes.Documents < leastDocuments {
		return fmt.Errorf("--documents %d: want %d or more, as one workload has a tenth of them", p.sizes.Documents, leastDocuments)
	}
	if p.rounds == 0 {
		p.rounds = rounds
	}
	return nil
}

func (p *plan) choose(names, works string) (err error) {
	p.drivers, err = choose(engines.All(), names, func(d engine.Driver) string { return d.Name })
	if err != nil {
		return err
	}
	p.workloads, err = choose(workload.All(), works, func(w workload.Workload) string { return w.Name })
	return err
}

// choose picks from a list by names; a name that ends in * stands for all that begin so.
func choose[T any](list []T, names string, name func(T) string) ([]T, error) {
	if names == "" {
		return list, nil
	}
	var out []T
	taken := map[string]bool{} // twice would be two rounds in one
	for want := range strings.SplitSeq(names, ",") {
		found := false
		for _, x := range list {
			prefix, open := strings.CutSuffix(want, "*")
			if name(x) != want && (!open || !strings.HasPrefix(name(x), prefix)) {
				continue
			}
			if found = true; !taken[name(x)] {
				out, taken[name(x)] = append(out, x), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no %q: see pandobench list", want)
		}
	}
	return out, nil
}

// confine prepares the limit of memory. Where the system has no way to set one, "auto" goes without and says why; a number of MiB
// has to be kept.
func (p *plan) confine(limit string) (unavailable string, err error) {
	if limit == "" {
		return "", nil
	}
	p.memoryOf = confine.Limit
	if limit != "auto" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 {
			return "", misuse{fmt.Errorf("memory limit %q: want a number of MiB, or auto", limit)}
		}
		p.memoryOf = func(int64) int64 { return int64(n) << 20 }
	}
	if p.group, err = confine.New(); err == nil {
		return "", nil
	}
	p.memoryOf = nil
	if limit != "auto" {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "memory is not limited:", err)
	return err.Error(), nil
}
