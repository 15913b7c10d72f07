package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pandodb/pando/bench/confine"
	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
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
	loadLimit time.Duration // for the loads of large and growth; 0: none
	enough    time.Duration // after which no further workload is begun, once every one has had a round; 0: never
	group     *confine.Group
	memoryOf  func(budget int64) int64 // the limit of a process's memory; nil: none
}

// job is one engine in one workload.
type job struct {
	spec     workload.Spec
	workload workload.Workload
	driver   engine.Driver
	memory   int64 // limit; 0: none
}

// jobs lists what has to be done, round by round, workload by workload, engine by engine.
func (p *plan) jobs(dir string, have *report.Result) []job {
	var list []job
	for round := range p.rounds {
		order := slices.Clone(p.drivers)
		if round%2 == 1 {
			slices.Reverse(order) // so that no engine always follows the same one
		}
		for _, w := range p.workloads {
			for _, d := range order {
				j := p.job(w, d, round)
				if fits(d, w) && !p.had(j, have) {
					j.spec.Dir, j.spec.Out = filepath.Join(dir, "db"), filepath.Join(dir, "cells")
					list = append(list, j)
				}
			}
		}
	}
	return list
}

// had reports whether a job was done by an earlier run with the same file.
func (p *plan) had(j job, have *report.Result) bool {
	largest := 0
	if j.workload.Largest != nil {
		largest = j.workload.Largest(p.sizes)
	}
	return have.Has(j.spec.Workload, j.spec.Scale, j.spec.Class, j.spec.Engine, j.spec.Round, largest)
}

func (p *plan) job(w workload.Workload, d engine.Driver, round int) job {
	j := job{workload: w, driver: d, spec: workload.Spec{
		Engine: d.Name, Workload: w.Name, Class: w.Class.String(), Round: round,
		Sizes: p.sizes, Scale: w.Scale(p.sizes), LoadLimit: p.loadLimit,
	}}
	if p.class != "" {
		j.spec.Class = p.class
	}
	if w.Limited && p.loadLimit > 0 {
		j.spec.Scale += fmt.Sprintf(", loads limited to %v", p.loadLimit)
	}
	if p.memoryOf != nil {
		budget := int64(p.sizes.MemoryMB) << 20
		if w.Budget != nil {
			budget = w.Budget(p.sizes)
		}
		j.memory = p.memoryOf(budget)
		j.spec.Scale += fmt.Sprintf(", memory limited to %d MiB", j.memory>>20)
	}
	return j
}

// fits reports whether it makes sense to ask the engine: the floor has nothing to show but synced writes and accesses to memory.
func fits(d engine.Driver, w workload.Workload) bool {
	if w.Documents {
		return d.OpenDocuments != nil
	}
	return d.Open != nil && (!d.Floor || w.Class == engine.Durable || w.Floor)
}

// run carries the plan out and adds the cells to the result, which is saved after every engine.
func (p *plan) run(ctx context.Context, result *report.Result, save func() error) error {
	dir, err := p.workDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if p.group != nil {
		defer p.group.Close()
	}
	jobs := p.jobs(dir, result)
	start, seconds := time.Now(), result.Seconds
	show := newProgress(os.Stderr, jobs)
	defer show.end()
	for i, j := range jobs {
		first := i == 0 || jobs[i-1].workload.Name != j.workload.Name
		if first && j.spec.Round > 0 && p.enough > 0 && time.Since(start) > p.enough {
			break
		}
		show.begin(j)
		cells := p.one(ctx, j)
		if ctx.Err() != nil {
			return errInterrupted // what the engine had by then is no whole round
		}
		result.Add(cells)
		result.Seconds = seconds + time.Since(start).Seconds()
		show.done(j, cells)
		if err := save(); err != nil {
			return err
		}
	}
	return nil
}

// spaceFactor is how much more than the records' bytes a database may take while it is written to.
const spaceFactor = 6

// workDir makes a directory for the databases, if there is room for the largest.
func (p *plan) workDir() (string, error) {
	if p.dir != "" {
		if err := os.MkdirAll(p.dir, 0o755); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(p.dir, "pandobench-")
	if err != nil {
		return "", err
	}
	var need int64
	for _, w := range p.workloads {
		need = max(need, w.Bytes(p.sizes)*spaceFactor)
	}
	if free, ok := measure.FreeBytes(dir); ok && free < need {
		return "", errors.Join(fmt.Errorf("%s: %d MB free, and %d MB may be needed: name another directory with --dir, or fewer records", dir, free/1e6, need/1e6), os.RemoveAll(dir))
	}
	return dir, nil
}

// one runs the stages of a workload on an engine in processes of their own.
func (p *plan) one(ctx context.Context, j job) []workload.Cell {
	var cells []workload.Cell
	defer os.RemoveAll(j.spec.Dir)
	for stage := range j.workload.Stages {
		j.spec.Stage = stage
		got, err := p.child(ctx, j)
		if err != nil {
			got = append(got, j.spec.Failure(err.Error()))
		}
		cells = append(cells, got...)
		if n := len(got); n > 0 && got[n-1].Failed != "" {
			break
		}
	}
	return cells
}
