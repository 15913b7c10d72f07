package engines

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/workload"
)

// The adapters have to mean the same by every call, or the benchmark compares different work.
func TestAdaptersMeanTheSame(t *testing.T) {
	for _, d := range All() {
		if d.Floor || d.Open == nil {
			continue
		}
		for class := range d.Classes {
			t.Run(d.Name+"/"+class.String(), func(t *testing.T) {
				checkDriver(t, d, class)
			})
		}
	}
}

func checkDriver(t *testing.T, d engine.Driver, class engine.Class) {
	t.Helper()
	s, err := d.Open(engine.Options{Dir: t.TempDir(), Class: class, MemoryBytes: 32 << 20, Writers: 1, DataBytes: 1 << 20, Transactions: true})
	if errors.Is(err, pando.ErrLayout) {
		t.Skip(err)
	}
	must(t, err)
	check(t, d, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func key(i int) []byte   { return fmt.Appendf(nil, "key-%04d", i) }
func value(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1+i%300) }

// count is how many records the checks begin with: keys 0, 2, 4, ...
const count = 500

func check(t *testing.T, d engine.Driver, s engine.Store) {
	t.Helper()
	var batch []engine.Op
	for i := range count {
		batch = append(batch, engine.Op{Key: key(2 * i), Value: value(i)})
	}
	must(t, s.Write(batch))
	long := bytes.Repeat([]byte("long"), 30_000)
	must(t, s.Put(key(0), long))
	must(t, s.Delete(key(2)))
	must(t, s.Settle())
	v, found, err := s.Get([]byte("dst"), key(0))
	if err != nil || !found || !bytes.Equal(v, append([]byte("dst"), long...)) {
		t.Errorf("get of a long value: %d bytes, %v, %v", len(v), found, err)
	}
	if _, found, err := s.Get(nil, key(2)); err != nil || found {
		t.Errorf("get of a deleted key: %v, %v", found, err)
	}
	if found, err := s.Has(key(4)); err != nil || !found {
		t.Errorf("has: %v, %v", found, err)
	}
	if found, err := s.Has(key(5)); err != nil || found {
		t.Errorf("has of an absent key: %v, %v", found, err)
	}
	if !d.NoOrder {
		scans(t, s)
	} else if err := s.Scan(engine.Scan{}, nil); !errors.Is(err, engine.ErrUnsupported) {
		t.Errorf("scan without order: %v", err)
	}
	snapshot(t, d, s)
	transactions(t, d, s)
	if err := s.Compact(); err != nil && !errors.Is(err, engine.ErrUnsupported) {
		t.Errorf("compact: %v", err)
	}
	if got := records(t, d, s); got != count-1 {
		t.Errorf("after compaction: %d records", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func collect(t *testing.T, r engine.Reader, s engine.Scan) []string {
	t.Helper()
	var keys []string
	must(t, r.Scan(s, func(k, _ []byte) bool {
		keys = append(keys, string(k))
		return true
	}))
	return keys
}

// records counts what there is, by a scan where there is an order.
func records(t *testing.T, d engine.Driver, r engine.Reader) (n int) {
	t.Helper()
	if !d.NoOrder {
		return len(collect(t, r, engine.Scan{}))
	}
	for i := range 2 * count {
		found, err := r.Has(key(i))
		must(t, err)
		if found {
			n++
		}
	}
	return n
}

func scans(t *testing.T, s engine.Store) {
	t.Helper()
	all := collect(t, s, engine.Scan{})
	if len(all) != count-1 || !slices.IsSorted(all) || all[0] != string(key(0)) {
		t.Fatalf("scan: %d records from %q on", len(all), all[0])
	}
	back := collect(t, s, engine.Scan{Reverse: true})
	slices.Reverse(back)
	if !slices.Equal(all, back) {
		t.Errorf("scan backwards: %d records, not those of the scan forwards", len(back))
	}
	for _, c := range []struct {
		scan engine.Scan
		want []string
	}{
		{engine.Scan{From: key(100), Limit: 2}, []string{"key-0100", "key-0102"}},
		{engine.Scan{From: key(101), Limit: 2}, []string{"key-0102", "key-0104"}},
		{engine.Scan{From: key(100), Limit: 2, Reverse: true}, []string{"key-0100", "key-0098"}},
		{engine.Scan{From: key(101), Limit: 1, Reverse: true}, []string{"key-0100"}},
		{engine.Scan{From: key(9999), Limit: 1, Reverse: true}, []string{"key-0998"}},
		{engine.Scan{From: key(9999), Limit: 1}, nil},
	} {
		if got := collect(t, s, c.scan); !slices.Equal(got, c.want) {
			t.Errorf("scan %s, reverse %v: %v, want %v", c.scan.From, c.scan.Reverse, got, c.want)
		}
	}
	if got := len(collect(t, s, engine.Scan{Limit: 300})); got != 300 {
		t.Errorf("scan of 300: %d", got)
	}
	wanted(t, s, all)
}

// wanted walks over all records for the values of some, which have to be theirs; those of the others may be left out, and nothing else.
func wanted(t *testing.T, s engine.Store, all []string) {
	t.Helper()
	walk := engine.Scan{ValueOneIn: 3}
	var keys []string
	var values [][]byte
	must(t, s.Scan(walk, func(k, v []byte) bool {
		keys, values = append(keys, string(k)), append(values, bytes.Clone(v))
		return true
	}))
	if !slices.Equal(keys, all) {
		t.Errorf("scan for one value in %d: %d records, not those of a scan for each", walk.ValueOneIn, len(keys))
	}
	for n, k := range keys {
		want, found, err := s.Get(nil, []byte(k))
		if must(t, err); !found {
			t.Fatalf("scan for one value in %d: %s, which is not there", walk.ValueOneIn, k)
		}
		if !bytes.Equal(values[n], want) && (walk.WantsValue(n) || len(values[n]) > 0) {
			t.Errorf("scan for one value in %d: %s has %d bytes, want the %d of its value", walk.ValueOneIn, k, len(values[n]), len(want))
		}
	}
}

func snapshot(t *testing.T, d engine.Driver, s engine.Store) {
	t.Helper()
	snap, err := s.Snapshot()
	if errors.Is(err, engine.ErrUnsupported) {
		return
	}
	must(t, err)
	if _, found, err := snap.Get(nil, key(4)); err != nil || !found {
		t.Errorf("snapshot: get: %v, %v", found, err)
	}
	if !d.BlocksWriters {
		must(t, s.Put(key(4), []byte("new")))
	}
	if v, found, err := snap.Get(nil, key(4)); err != nil || !found || !bytes.Equal(v, value(2)) {
		t.Errorf("snapshot: get after a write: %q, %v, %v", v, found, err)
	}
	if got := records(t, d, snap); got != count-1 {
		t.Errorf("snapshot: %d records", got)
	}
	must(t, snap.Close())
}

// pando-hash does every workload, but for what needs an order, of which it has no cell; so does its adapter over a tree, which tells
// faults of the adapter from those of the layout.
func TestPandoHashDoesEveryWorkload(t *testing.T) {
	for _, layout := range []pando.Layout{pando.Tree, pando.Hash} {
		d := pandoHashDriver()
		d.Open = openPandoHash(layout)
		t.Run(layout.String(), func(t *testing.T) {
			checkDriver(t, d, engine.Relaxed)
			for _, w := range workload.All() {
				if w.Documents || w.Name == "open-killed" { // which needs a process to kill
					continue
				}
				for _, c := range cellsOf(t, d, w) {
					if c.Failed != "" {
						t.Errorf("%s, %s: %s", w.Name, c.Name, c.Failed)
					}
					for _, word := range []string{"scan", "seek", "walk", "enumerate", "backwards", "queue"} {
						if strings.Contains(c.Name, word) {
							t.Errorf("%s, %s: needs an order", w.Name, c.Name)
						}
					}
				}
			}
		})
	}
}

// cellsOf runs a workload in this process.
func cellsOf(t *testing.T, d engine.Driver, w workload.Workload) (all []workload.Cell) {
	t.Helper()
	sizes := workload.Sizes{Records: 4000, Large: 5000, Long: 40, Synced: 20, Growth: 3000, Millis: 20, MemoryMB: 16}
	spec := workload.Spec{Engine: d.Name, Workload: w.Name, Class: w.Class.String(), Dir: t.TempDir(), Sizes: sizes}
	spec.Out = filepath.Join(t.TempDir(), "cells")
	for spec.Stage = range w.Stages {
		cells, err := workload.Execute(spec, d, w)
		must(t, err)
		all = append(all, cells...)
	}
	return all
}
