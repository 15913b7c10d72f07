package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/pandodb/pando/bench/engines"
	"github.com/pandodb/pando/bench/workload"
)

// child runs one stage in a process of its own.
func (p *plan) child(ctx context.Context, j job) ([]workload.Cell, error) {
	text, err := json.Marshal(j.spec)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	os.Remove(j.spec.Out)
	defer os.Remove(j.spec.Out)
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "child", string(text))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.SysProcAttr = childAttributes()
	if j.memory > 0 {
		if err := p.group.Confine(cmd, j.memory); err != nil {
			return nil, err
		}
	}
	runtime.LockOSThread() // the child is killed when the thread ends that started it
	err = cmd.Run()
	runtime.UnlockOSThread()
	cells, lerr := workload.LoadCells(j.spec.Out)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return cells, fmt.Errorf("stopped after %v", p.limit)
	case j.memory > 0 && p.group.Killed():
		return cells, fmt.Errorf("killed: it needed more than its %d MiB of memory", j.memory>>20)
	case lerr != nil:
		return nil, errors.Join(fmt.Errorf("%v: %s", err, firstLines(stderr.String())), lerr)
	case err != nil && !j.workload.Kills(j.spec.Stage):
		return cells, fmt.Errorf("%w: %s", err, firstLines(stderr.String())) // with what it had saved by then
	}
	return cells, nil
}

func firstLines(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[:min(len(lines), 30)], "\n")
}

// childCommand is what such a process does.
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
