package workload

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pandodb/pando/bench/engine"
)

// fault is one way in which an engine can be wrong. Faults begin after so many calls, as those do that tests with little data miss.
type fault string

const (
	sound         fault = ""
	wrongValue    fault = "a get returns a value with a changed bit"
	othersValue   fault = "a get returns another record's value"
	shortValue    fault = "a get returns less than the value"
	lostRecord    fault = "a get does not find a record that is there"
	ghostRecord   fault = "a get finds a record that was never written"
	ignoredPut    fault = "a put is acknowledged and forgotten"
	ignoredUpdate fault = "an update leaves the earlier value"
	ignoredDelete fault = "a delete leaves the record"
	halfBatch     fault = "a batch writes all but its last record"
	skippedRecord fault = "a scan leaves a record out"
	doubleRecord  fault = "a scan shows a record twice"
	swapped       fault = "a scan shows two records in the wrong order"
	scanValue     fault = "a scan shows a value with a changed bit"
	scanOthers    fault = "a scan shows another record's value"
	scanEndsEarly fault = "a scan ends before it is through"
	seekTooFar    fault = "a seek begins behind the record"
	movingTime    fault = "a snapshot shows what was written after it"
	forgets       fault = "what was written is gone after a close"
	blindUpdate   fault = "an update does not read what it has put"
	blindWalk     fault = "a walk in an update does not show what it has put"
	keptFailure   fault = "what an update has put stays when it fails"
	lostCommit    fault = "an update is committed and forgotten"
)

// memory is an engine that keeps everything in a sorted slice, correct but for its fault.
type memory struct {
	mu      sync.Mutex
	fault   fault
	records *[]engine.Op // shared by those that open the same directory
	gets    int
	puts    int
}

// faultyDriver opens such an engine.
func faultyDriver(f fault) engine.Driver {
	var records []engine.Op
	return engine.Driver{Name: "memory", Classes: map[engine.Class]string{engine.None: "", engine.Relaxed: "", engine.Durable: ""},
		Open: func(engine.Options) (engine.Store, error) { return &memory{fault: f, records: &records}, nil }}
}

func (m *memory) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(*m.records, key, func(op engine.Op, k []byte) int { return bytes.Compare(op.Key, k) })
}

// flip changes the last bit of a copy.
func flip(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-1] ^= 1
	return b
}

func (m *memory) Get(dst, key []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	i, found := m.find(key)
	if !found {
		return dst, m.fault == ghostRecord, nil
	}
	v := (*m.records)[i].Value
	if m.gets%10 == 0 {
		switch m.fault {
		case wrongValue:
			v = flip(v)
		case othersValue:
			v = (*m.records)[(i+1)%len(*m.records)].Value
		case shortValue:
			v = v[:len(v)-1]
		case lostRecord:
			return dst, false, nil
		}
	}
	return append(dst, v...), true, nil
}

func (m *memory) Has(key []byte) (bool, error) {
	_, found, err := m.Get(nil, key)
	return found, err
}

func (m *memory) Put(key, value []byte) error { return m.Write([]engine.Op{{Key: key, Value: value}}) }
func (m *memory) Delete(key []byte) error     { return m.Write([]engine.Op{{Key: key, Delete: true}}) }

func (m *memory) Write(batch []engine.Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault == halfBatch && len(batch) > 1 {
		batch = batch[:len(batch)-1]
	}
	for _, op := range batch {
		m.puts++
		i, found := m.find(op.Key)
		switch {
		case op.Delete && found && m.fault != ignoredDelete:
			*m.records = slices.Delete(*m.records, i, i+1)
		case op.Delete, found && m.fault == ignoredUpdate, m.fault == ignoredPut && m.puts%50 == 0:
		case found:
			(*m.records)[i].Value = bytes.Clone(op.Value)
		default:
			*m.records = slices.Insert(*m.records, i, engine.Op{Key: bytes.Clone(op.Key), Value: bytes.Clone(op.Value)})
		}
	}
	return nil
}

func (m *memory) Scan(s engine.Scan, visit engine.Visit) error {
	m.mu.Lock()
	list := slices.Clone(*m.records)
	m.mu.Unlock()
	if s.From != nil { // the workloads seek forwards only
		i := slices.IndexFunc(list, func(op engine.Op) bool { return bytes.Compare(op.Key, s.From) >= 0 })
		if m.fault == seekTooFar {
			i++
		}
		list = list[max(min(i, len(list)), 0):]
	}
	if s.Reverse {
		slices.Reverse(list)
	}
	if n := len(list); n > 20 {
		switch m.fault {
		case skippedRecord:
			list = slices.Delete(list, 3, 4)
		case doubleRecord:
			list = slices.Insert(list, 3, list[2])
		case swapped:
			list[3], list[4] = list[4], list[3]
		case scanValue:
			list[0].Value = flip(list[0].Value)
		case scanOthers:
			list[5].Value = list[6].Value
		case scanEndsEarly:
			list = list[:10]
		}
	}
	if s.Limit > 0 {
		list = list[:min(len(list), s.Limit)]
	}
	for n, op := range list {
		if !s.WantsValue(n) {
			op.Value = nil
		}
		if !visit(op.Key, op.Value) {
			break
		}
	}
	return nil
}

func (m *memory) Snapshot() (engine.Snapshot, error) {
	if m.fault == movingTime {
		return m, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	records := slices.Clone(*m.records)
	return &memory{fault: m.fault, records: &records}, nil
}

func (m *memory) Settle() error  { return nil }
func (m *memory) Compact() error { return nil }

func (m *memory) Close() error {
	if m.fault == forgets {
		*m.records = nil
	}
	return nil
}

// tiny is enough for every check.
func tiny() Sizes {
	return Sizes{Records: 4000, Large: 5000, Long: 40, Synced: 100, Growth: 3000, Millis: 20, MemoryMB: 16}
}

// outcome runs a workload in this process and returns its failure.
func outcome(t *testing.T, w Workload, f fault) string {
	t.Helper()
	for _, c := range cellsOf(t, w, faultyDriver(f)) {
		if c.Failed != "" {
			return c.Failed
		}
	}
	return ""
}

// cellsOf runs a workload in this process, up to the first stage that fails.
func cellsOf(t *testing.T, w Workload, d engine.Driver) (all []Cell) {
	t.Helper()
	spec := Spec{Engine: "memory", Workload: w.Name, Class: w.Class.String(), Dir: t.TempDir(), Sizes: tiny(), Scale: w.Scale(tiny())}
	spec.Out = spec.Dir + ".cells"
	for spec.Stage = range w.Stages {
		cells, err := Execute(spec, d, w)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cells...)
		if n := len(cells); n > 0 && cells[n-1].Failed != "" {
			break
		}
	}
	return all
}

// A workload that does not notice a wrong engine measures nothing. This says which faults each of them notices.
func noticed() map[string][]fault {
	values := []fault{wrongValue, othersValue, shortValue, lostRecord}
	writes := []fault{ignoredPut, ignoredUpdate}
	scans := []fault{skippedRecord, doubleRecord, swapped, scanValue, scanEndsEarly}
	apart := slices.Concat(values, writes, scans, []fault{scanOthers, seekTooFar, ignoredDelete})
	return map[string][]fault{
		"values-1k":       apart,
		"values-4k":       apart,
		"values-16k":      apart,
		"lmdb-micro":      slices.Concat(values, writes, scans, []fault{ignoredDelete, halfBatch, ghostRecord, seekTooFar}),
		"lmdb-micro-seq":  slices.Concat(values, scans, []fault{ignoredPut, ignoredDelete, halfBatch}),
		"lmdb-micro-100k": slices.Concat(values, []fault{ignoredUpdate, ignoredDelete}),
		"yoga":            slices.Concat(values, scans, []fault{ignoredPut, halfBatch}),
		"kvstore-bench":   slices.Concat(values, []fault{ignoredPut}),
		"bplustree":       slices.Concat(values, writes, scans, []fault{ignoredDelete}),
		"ycsb":            slices.Concat(values, []fault{ignoredUpdate, doubleRecord, swapped, scanValue, scanEndsEarly, seekTooFar}),
		"durable":         slices.Concat(values, []fault{ignoredPut}),
		"durable-16":      slices.Concat(values, []fault{ignoredPut}),
		"durable-64":      slices.Concat(values, []fault{ignoredPut}),
		"large":           slices.Concat(values, writes, scans, []fault{halfBatch, ghostRecord, seekTooFar}),
		"growth":          slices.Concat(values, writes, scans, []fault{halfBatch, forgets}),
		"open":            {lostRecord, forgets},
		"space":           slices.Concat(writes, scans, []fault{ignoredDelete, halfBatch, forgets}),
		"space-json":      slices.Concat(scans, []fault{halfBatch, forgets}),
		"memory":          slices.Concat(values, scans, []fault{halfBatch}),
		"mixed":           slices.Concat(values, []fault{ignoredUpdate}),
		"queue":           slices.Concat(scans, []fault{ignoredPut, ignoredDelete, halfBatch}),
		"transactions":    slices.Concat(values, writes, scans, []fault{halfBatch, seekTooFar, blindUpdate, blindWalk, keptFailure, lostCommit}),
		"snapshots":       slices.Concat(values, scans, []fault{ignoredUpdate, movingTime}),
	}
}

// testable are the workloads that need no other engine, and no process to kill.
func testable() []Workload {
	return slices.DeleteFunc(All(), func(w Workload) bool { return w.Documents || w.Name == "open-killed" })
}

func TestWorkloadsNoticeWrongEngines(t *testing.T) {
	notices := noticed()
	for _, w := range testable() {
		t.Run(w.Name, func(t *testing.T) {
			if got := outcome(t, w, sound); got != "" && !strings.Contains(got, "not supported") {
				t.Fatalf("an engine without a fault fails: %s", got)
			}
			for _, f := range notices[w.Name] {
				got := outcome(t, w, f)
				if got == "" {
					t.Errorf("not noticed: %s", f)
				}
				t.Logf("%s: %s", f, got)
			}
		})
	}
}

// A cell whose answers were found to be wrong has no number, though what was wrong came to light behind it only.
func TestWrongEnginesHaveNoNumbers(t *testing.T) {
	for _, w := range testable() {
		for _, f := range []fault{ignoredUpdate, ignoredDelete, forgets} {
			if !slices.Contains(noticed()[w.Name], f) || len(w.Stages) > 1 {
				continue
			}
			for _, c := range cellsOf(t, w, faultyDriver(f)) {
				if c.Failed == "" {
					t.Errorf("%s, %s: %q has a number", w.Name, f, c.Name)
				}
			}
		}
	}
}

// The points of a line up to a failure stay: each of them was checked.
func TestPointsBeforeAFailureStay(t *testing.T) {
	r := &Run{}
	r.amount("get", 1, "")
	r.checked = len(r.Cells)
	r.amount("get", 2, "")
	r.fail(errors.New("wrong"))
	if len(r.Cells) != 3 || r.Cells[0].Failed != "" || r.Cells[1].Failed != "wrong" || r.Cells[1].Value != 0 || r.Cells[2].Name != "" {
		t.Errorf("%+v", r.Cells)
	}
}

// However few records there are, the cells can be kept: what nothing was done for is no number.
func TestFewRecords(t *testing.T) {
	for _, w := range testable() {
		spec := Spec{Engine: "memory", Workload: w.Name, Class: w.Class.String(), Dir: t.TempDir(),
			Sizes: Sizes{Records: 50, Large: 700, Long: 3, Synced: 10, Growth: 300, Millis: 5, MemoryMB: 16}}
		spec.Out = spec.Dir + ".cells"
		d := faultyDriver(sound)
		for spec.Stage = range w.Stages {
			cells, err := Execute(spec, d, w)
			if err == nil {
				err = SaveCells(spec.Out, cells)
			}
			if err != nil {
				t.Errorf("%s: %v", w.Name, err)
			}
			if n := len(cells); n > 0 && cells[n-1].Failed != "" && !strings.Contains(cells[n-1].Failed, "not supported") {
				t.Errorf("%s: %s", w.Name, cells[n-1].Failed)
			}
		}
	}
}

// What an engine puts off is charged to what made it necessary: beside a cell of writes there is one with what is left to do behind it.
func TestWhatIsPutOffIsCharged(t *testing.T) {
	for _, w := range testable() {
		var writes []string
		switch w.Name {
		case "kvstore-bench":
			writes = []string{"single put, 64 B", "single put, 128 B", "single put, 256 B", "single put, 512 B"}
		case "bplustree":
			writes = []string{"insert, 1 goroutines", "update, 1 goroutines", "delete, 1 goroutines", "insert, 4 goroutines", "update, 4 goroutines", "delete, 4 goroutines"}
		case "yoga":
			writes = []string{"21+21 B: batches of 1,000", "text file, key = value"}
		case "memory":
			writes = []string{"load, 64 MiB budget"}
		case "snapshots":
			writes = []string{"update under a snapshot"}
		}
		cells := cellsOf(t, w, faultyDriver(sound))
		at := func(name string) *Cell {
			for i := range cells {
				if cells[i].Name == name {
					return &cells[i]
				}
			}
			return nil
		}
		for _, name := range writes {
			alone, settled := at(name), at(name+", settled")
			if alone == nil || settled == nil || settled.Info || settled.Ops != alone.Ops || settled.Wall < alone.Wall {
				t.Errorf("%s, %s: %+v, and with what was put off %+v", w.Name, name, alone, settled)
			}
		}
	}
}

func TestSlowEnginesAreMarked(t *testing.T) {
	for _, w := range All() {
		if w.Name != "large" && w.Name != "growth" {
			continue
		}
		spec := Spec{Engine: "memory", Workload: w.Name, Class: w.Class.String(), Dir: t.TempDir(), Sizes: tiny(), LoadLimit: 1}
		spec.Out = spec.Dir + ".cells"
		cells, err := Execute(spec, faultyDriver(sound), w)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			if !strings.HasPrefix(c.Cut, "1,000 of ") || c.Failed != "" {
				t.Errorf("%s: %q: cut %q, failed %q", w.Name, c.Name, c.Cut, c.Failed)
			}
		}
		if first := cells[0]; first.Ops != 1000 || first.Data != 116_000 {
			t.Errorf("%s: %d operations, %d bytes", w.Name, first.Ops, first.Data)
		}
	}
}

func TestMemoryIsOneCycle(t *testing.T) {
	const lines = 1000
	next, seen := cycle(lines, newRand(1)), map[uint64]bool{}
	for at := uint64(0); !seen[at]; at = next[at*memoryLine/8] {
		seen[at] = true
	}
	if len(seen) != lines {
		t.Errorf("%d of %d lines are met", len(seen), lines)
	}
}
