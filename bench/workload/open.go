package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// opening measures from open to the first get, in a process of its own: after a clean close, and after a kill. After the kill
// it counts what is missing of what was acknowledged: the class of durability is checked, not believed.
func opening() []Workload {
	return []Workload{
		{Name: "open", About: "open and first get, after a clean close", Class: engine.Relaxed,
			Stages: []func(*Run) error{openFill(false), openFirst("open after a clean close")}},
		{Name: "open-killed", About: "open and first get, after kill -9; what was lost", Class: engine.Relaxed,
			Stages: []func(*Run) error{openFill(true), openFirst("open after kill -9")}, killed: 1},
	}
}

// The record that is read first, and how many single puts precede the kill.
const (
	openProbe  = 1
	openSingle = 2000
)

func openData() *Data { return &Data{KeyBytes: 16, ValueBytes: 100} }

func openFill(kill bool) func(*Run) error {
	return func(r *Run) error {
		d := openData()
		n := r.Sizes.Records
		if _, err := r.Open(d, n*2, 1); err != nil {
			return err
		}
		err := steps(
			func() error { return r.load("fill", d, 0, n, batchRecords, 0) },
			func() error { return r.puts("fill", d, n, openSingle, 1, sampled, 0) },
			func() error { r.Cells = nil; return nil },
		)
		if err != nil || !kill {
			return err
		}
		if err := r.Save(); err != nil { // the cells have to be there before the process is not
			return err
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

func openFirst(name string) func(*Run) error {
	return func(r *Run) error {
		d := openData()
		n := r.Sizes.Records
		w := &worker{}
		err := r.section(name, 1, func() error {
			if _, err := r.Open(d, n*2, 1); err != nil {
				return err
			}
			return w.get(r.store, d, openProbe)
		})
		if err != nil {
			return err
		}
		lost := 0
		for i := range n + openSingle {
			if i < n && i%97 != 0 && (i+1)%batchRecords != 0 {
				continue // of the batches a sample will do, and the last of each
			}
			w.key = d.Key(w.key, uint64(i))
			v, found, err := r.store.Get(w.got[:0], w.key)
			if err != nil {
				return err
			}
			if !found {
				lost++
				continue
			}
			if err := d.Check(v, uint64(i)); err != nil {
				return err
			}
		}
		if _, nearly := r.Driver.Weaker[r.Class]; lost > 0 && r.Class != engine.None && !nearly {
			return fmt.Errorf("%d acknowledged records were lost", lost)
		}
		r.amount(name+", acknowledged records lost", float64(lost), "records")
		return r.info()
	}
}

// clearDir empties a directory.
func clearDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// disk records the space that the database takes.
func (r *Run) disk(name string) error {
	r.amount(name, mega(measure.DiskBytes(r.Spec.Dir)), "MB")
	return nil
}
