package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pandodb/pando/bench/workload"
)

// TestMain is what child starts too: a process that saves a cell and then comes to grief.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		var spec workload.Spec
		err := json.Unmarshal([]byte(os.Args[2]), &spec)
		if err == nil {
			err = workload.SaveCells(spec.Out, []workload.Cell{{Name: "saved"}})
		}
		if err == nil && spec.Engine == "killed" {
			err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if err != nil {
			panic(err)
		}
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// TestCrashesAreFailures: an engine that ends its process has failed, whatever cells it had saved; but the stage that is there to be killed.
func TestCrashesAreFailures(t *testing.T) {
	for _, c := range []struct {
		workload, engine string
		stage            int
		fails            bool
	}{{"growth", "crashed", 0, true}, {"growth", "killed", 0, true}, {"open-killed", "killed", 0, false}, {"open-killed", "killed", 1, true}} {
		all, err := choose(workload.All(), c.workload, func(w workload.Workload) string { return w.Name })
		if err != nil {
			t.Fatal(err)
		}
		p := &plan{limit: time.Minute}
		spec := workload.Spec{Engine: c.engine, Workload: c.workload, Stage: c.stage, Out: filepath.Join(t.TempDir(), "cells")}
		cells, err := p.child(t.Context(), job{spec: spec, workload: all[0]})
		if len(cells) != 1 || (err != nil) != c.fails {
			t.Errorf("%s, %s, stage %d: %d cells, %v", c.workload, c.engine, c.stage, len(cells), err)
		}
	}
}
