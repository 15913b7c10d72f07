package workload

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pandodb/pando/bench/engine"
)

// yoga is after the benchmark that YogaDB ships: keys and values of 21 bytes in batches of 1,000, a full walk, and the load
// of a text file in which every line is key and value at once.
func yoga() []Workload {
	return []Workload{{Name: "yoga", About: "21-byte keys and values, batches of 1,000, a walk; a text file's lines as keys and values",
		Class: engine.Relaxed, Stages: []func(*Run) error{yogaRun}}}
}

func yogaRun(r *Run) error {
	d := &Data{KeyBytes: 21, ValueBytes: 21}
	n := min(r.Sizes.Records, 100_000)
	s, err := r.Open(d, n*4, 1)
	if err != nil {
		return err
	}
	var file string
	return steps(
		func() error { return r.load("21+21 B: batches of 1,000", d, 0, n, batchRecords, 0) },
		func() error { return r.scan("21+21 B: walk, as loaded", s, d, n, false) },
		func() error { return r.settleAfter("21+21 B: batches of 1,000") },
		func() error { return r.scan("21+21 B: walk", s, d, n, false) },
		func() error { return r.gets("21+21 B: get", s, d, n, n, 1) },
		func() (err error) { file, err = r.textFile(n); return err },
		func() error { return r.loadText("text file, key = value", file, n) },
		func() error { return r.settleAfter("text file, key = value") },
		func() error { return r.findText(file) },
	)
}

// textFile writes n lines; it is not measured.
func (r *Run) textFile(n int) (string, error) {
	name := filepath.Join(r.Spec.Dir, "lines.txt")
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(w, "line-%016x of the text\n", mix(uint64(i)))
	}
	return name, w.Flush()
}

// eachLine calls fn with every line of a file.
func eachLine(name string, fn func(line []byte) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if err := fn(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (r *Run) loadText(name, file string, n int) error {
	return r.section(name, n, func() error {
		batch := make([]engine.Op, 0, batchRecords)
		buffers := make([][]byte, batchRecords)
		err := eachLine(file, func(line []byte) error {
			k := len(batch)
			buffers[k] = append(buffers[k][:0], line...)
			if batch = append(batch, engine.Op{Key: buffers[k], Value: buffers[k]}); len(batch) < batchRecords {
				return nil
			}
			err := r.store.Write(batch)
			batch = batch[:0]
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		return r.store.Write(batch)
	})
}

// findText checks, unmeasured, that the lines are there.
func (r *Run) findText(file string) error {
	return eachLine(file, func(line []byte) error {
		v, found, err := r.store.Get(nil, line)
		if err == nil && (!found || !bytes.Equal(v, line)) {
			return fmt.Errorf("line %q: found %v, value %q", line, found, v)
		}
		return err
	})
}
