// Package workload holds what the engines are asked to do: one file per family, named after where the family comes from.
//
// A workload opens its engine in an empty directory, works, and records cells. Generators are deterministic: every engine
// gets the same keys and values in the same order. Every value that is read is checked; scans check the order of all keys,
// their number, and one value in 64. Engines that keep no order are not asked for scans and seeks, and have no such cells; what the
// scans check is then checked by gets, unmeasured. A wrong answer ends the workload with an error: a fast wrong engine has no numbers.
package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// Workload is a family of cells.
type Workload struct {
	Name  string
	About string // one line for the report
	Class engine.Class
	// Documents marks what is asked of engines with documents or rows only.
	Documents bool
	// Stages run one after the other on the same directory, each in a process of its own.
	Stages []func(*Run) error
	// Floor marks what the machine itself has a number for.
	Floor bool
	// killed is the stage that ends with a kill -9 of its own process, counted from 1; 0: there is none.
	killed int
	// Budget is what the engine is told to get by with, where it is not Sizes.MemoryMB for every workload alike; nil otherwise.
	Budget func(Sizes) int64
	// Limited marks what ends its loads at Spec.LoadLimit.
	Limited bool
	// Largest is the number of records at the last point of a workload that measures lines; nil where there are none.
	Largest func(Sizes) int
	// scale says how much there is to do, for workloads where it is not the number of records.
	scale func(Sizes) string
}

// Scale says how much there is to do, in words of the report. Only numbers of one scale are comparable.
func (w Workload) Scale(s Sizes) string {
	if w.scale != nil {
		return w.scale(s)
	}
	return s.records()
}

// records says how many records there are, and within what budget.
func (s Sizes) records() string {
	return fmt.Sprintf("%s records, budget of %d MiB", thousands(s.Records), s.MemoryMB)
}

// Kills reports whether a stage ends with a kill of its own process.
func (w Workload) Kills(stage int) bool { return stage+1 == w.killed }

// Bytes is about how much the records are that the workload stores.
func (w Workload) Bytes(s Sizes) int64 {
	if w.Documents {
		return int64(max(s.Documents, s.Collections*collectionUsers)) * userBytes
	}
	switch w.Name {
	case "large":
		return recordData().Bytes(s.Large)
	case "growth":
		return recordData().Bytes(s.Growth)
	case "lmdb-micro-100k":
		return int64(s.Long) * longBytes
	case "values-1k", "values-4k", "values-16k":
		return int64(s.Records) * valuesPerRecord
	}
	return recordData().Bytes(s.Records)
}

// thousands prints a number with a comma between every three digits.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// All returns the workloads in the order of the report.
func All() []Workload {
	return slices.Concat(micro(), values(), yoga(), kvstore(), bplustree(), ycsb(), durable(), large(), opening(), space(), mixed(), queue(), transactions(), growth(), documents())
}

// Cell is what was measured of one thing that an engine did.
type Cell struct {
	Workload string `json:"workload"`
	Name     string `json:"cell"`
	Engine   string `json:"engine"`
	Class    string `json:"class"`
	Round    int    `json:"round"`
	Scale    string `json:"scale,omitempty"` // how much there was to do: only cells of one scale are comparable

	Ops   int64 `json:"ops,omitempty"`
	Wall  int64 `json:"wall_ns,omitempty"`
	User  int64 `json:"user_ns,omitempty"`
	Sys   int64 `json:"sys_ns,omitempty"`
	P50   int64 `json:"p50_ns,omitempty"`
	P99   int64 `json:"p99_ns,omitempty"`
	P999  int64 `json:"p999_ns,omitempty"`
	Max   int64 `json:"max_ns,omitempty"`
	Read  int64 `json:"read_bytes,omitempty"`
	Write int64 `json:"write_bytes,omitempty"`
	Disk  int64 `json:"disk_bytes,omitempty"`
	Peak  int64 `json:"peak_rss_bytes,omitempty"`
	Data  int64 `json:"data_bytes,omitempty"` // keys and values that were written: Write/Data is the write amplification

	Value  float64 `json:"value,omitempty"` // of a cell that is not a cost per operation
	Unit   string  `json:"unit,omitempty"`
	Size   int64   `json:"size,omitempty"` // records, in cells that are a point of a line
	Failed string  `json:"failed,omitempty"`
	Cut    string  `json:"cut,omitempty"`  // what the engine got done of what there was to do, when a limit of time ended it: shown, not compared
	Info   bool    `json:"info,omitempty"` // shown, but engines do different amounts of work in it: no ratio
}

// Sizes says how much there is to do.
type Sizes struct {
	Records  int `json:"records"`  // of 16+100 bytes, in the workloads that name no number
	Large    int `json:"large"`    // of the large workload
	Long     int `json:"long"`     // values of 100 KB
	Synced   int `json:"synced"`   // durable operations per cell
	Growth   int `json:"growth"`   // largest size of a line
	Millis   int `json:"millis"`   // length of the cells that run for a time
	MemoryMB int `json:"memoryMB"` // budget

	Documents   int `json:"documents"`   // users, in the largest of the documents workloads
	Collections int `json:"collections"` // of 1,000 users each
}

// length is how long a cell takes that runs for a time.
func (s Sizes) length() time.Duration { return time.Duration(s.Millis) * time.Millisecond }

// Quick, Medium and Full are the named sizes.
func Quick() Sizes {
	return Sizes{Records: 20_000, Large: 100_000, Long: 100, Synced: 100, Growth: 10_000, Millis: 200, MemoryMB: 256,
		Documents: 20_000, Collections: 20}
}

// Medium is for a run that is bounded to minutes, and still larger than the caches of the processor.
func Medium() Sizes {
	return Sizes{Records: 250_000, Large: 2_000_000, Long: 1_000, Synced: 500, Growth: 1_000_000, Millis: 1000, MemoryMB: 1024,
		Documents: 1_000_000, Collections: 1000}
}

// Full is what the report is made of.
func Full() Sizes {
	return Sizes{Records: 1_000_000, Large: 20_000_000, Long: 10_000, Synced: 2_000, Growth: 10_000_000, Millis: 10_000, MemoryMB: 1024,
		Documents: 1_000_000, Collections: 1000}
}

// Spec says what one process has to do.
type Spec struct {
	Engine   string `json:"engine"`
	Workload string `json:"workload"`
	Stage    int    `json:"stage"`
	Dir      string `json:"dir"`
	Class    string `json:"class"`
	Round    int    `json:"round"`
	Sizes    Sizes  `json:"sizes"`
	Scale    string `json:"scale"`
	Out      string `json:"out"` // file for the cells
	// LoadLimit ends the loads of the workloads that grow large; 0: none.
	LoadLimit time.Duration `json:"loadLimit,omitempty"`
}

// Failure is the cell of a workload that failed as a whole.
func (s Spec) Failure(reason string) Cell {
	return Cell{Workload: s.Workload, Engine: s.Engine, Class: s.Class, Round: s.Round, Scale: s.Scale, Failed: reason}
}

// Run is one stage of one workload on one engine.
type Run struct {
	Spec   Spec
	Driver engine.Driver
	Class  engine.Class
	Sizes  Sizes
	Cells  []Cell
	Save   func() error // writes the cells out early, for a stage that kills its own process
	store  engine.Store
	docs   engine.Documents
	cut    string // of every cell from here on

	checked int // so many cells stay whatever comes: they are points of a line, and all checks of them were passed

	transactions bool // the engine will be asked for update transactions

	readLimit time.Duration // for each loop; 0: none
	loops     uint64        // so far: each has random numbers of its own
}

// Open opens the engine with the run's budget.
func (r *Run) Open(d *Data, records, writers int) (engine.Store, error) {
	return r.open(d, records, writers, int64(r.Sizes.MemoryMB)<<20)
}

func (r *Run) open(d *Data, records, writers int, memory int64) (engine.Store, error) {
	s, err := r.Driver.Open(engine.Options{
		Dir: r.Spec.Dir, Class: r.Class, MemoryBytes: memory,
		Writers: writers, DataBytes: d.Bytes(records), ValueBytes: d.ValueBytes, InOrder: d.Ordered,
		Transactions: r.transactions,
	})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	r.store = s
	return s, nil
}

// Close closes the engine.
func (r *Run) Close() error {
	s := r.store
	r.store = nil
	return s.Close()
}

// info marks the last cell as one without a ratio.
func (r *Run) info() error {
	r.Cells[len(r.Cells)-1].Info = true
	return nil
}

// add records a cell.
func (r *Run) add(c Cell) *Cell {
	c.Workload, c.Engine, c.Class, c.Round, c.Scale = r.Spec.Workload, r.Spec.Engine, r.Class.String(), r.Spec.Round, r.Spec.Scale
	c.Cut = r.cut
	r.Cells = append(r.Cells, c)
	return &r.Cells[len(r.Cells)-1]
}

// amount records a cell that is a number of something.
func (r *Run) amount(name string, value float64, unit string) {
	r.add(Cell{Name: name, Value: value, Unit: unit})
}

// section measures ops operations that fn does by itself. A cell of an operation that the engine has not is marked and
// leaves the workload going.
func (r *Run) section(name string, ops int, fn func() error) error {
	runtime.GC() // what earlier sections left over is not this one's
	before := measure.Now()
	err := fn()
	if errors.Is(err, engine.ErrUnsupported) {
		r.add(Cell{Name: name, Failed: err.Error()})
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.add(cellBetween(name, ops, before, measure.Now()))
	return nil
}

func cellBetween(name string, ops int, before, after measure.Usage) Cell {
	peak, _ := measure.Memory()
	return Cell{
		Name: name, Ops: int64(ops), Wall: int64(after.Wall.Sub(before.Wall)),
		User: int64(after.User - before.User), Sys: int64(after.System - before.System),
		Read: after.Read - before.Read, Write: after.WrittenSince(before), Peak: peak,
	}
}

// worker is what one goroutine needs to generate and check without allocating.
type worker struct {
	id         int
	rng        *rand.Rand
	key, value []byte // of what is written or asked for
	got        []byte // what came back
	ops        []engine.Op
	latency    *measure.Latency
	limit      time.Duration // for a loop; 0: none
	done       int           // operations of the last loop
}

// sampled is how often an operation is timed by itself: timing each would cost more than some of the operations.
const sampled = 8

// loop measures ops operations shared out between goroutines; every `each`-th is timed.
func (r *Run) loop(name string, ops, goroutines, each int, fn func(w *worker, i int) error) error {
	workers := make([]*worker, goroutines)
	for g := range workers {
		workers[g] = &worker{id: g, rng: rand.New(rand.NewPCG(uint64(g), r.loops)), latency: measure.NewLatency(), limit: r.readLimit}
	}
	r.loops++
	err := r.section(name, ops, func() error {
		if goroutines == 1 {
			return workers[0].run(0, ops, each, fn)
		}
		errs := make([]error, goroutines)
		var wg sync.WaitGroup
		for g, w := range workers {
			wg.Go(func() { errs[g] = w.run(ops*g/goroutines, ops*(g+1)/goroutines, each, fn) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	c := &r.Cells[len(r.Cells)-1]
	if c.Failed != "" {
		return nil
	}
	c.Ops = 0
	for i, w := range workers {
		c.Ops += int64(w.done)
		if i > 0 {
			workers[0].latency.Merge(w.latency)
		}
	}
	c.percentiles(workers[0].latency)
	return nil
}

// pass leaves a loop out, so that the later ones have the random numbers that they have in other engines.
func (r *Run) pass() { r.loops++ }

// run calls fn for every number from `from` on and below `to`, or until the limit of time.
func (w *worker) run(from, to, each int, fn func(w *worker, i int) error) error {
	begin := time.Now()
	w.done = to - from
	for i := from; i < to; i++ {
		if (i-from)%each != 0 {
			if err := fn(w, i); err != nil {
				return err
			}
			continue
		}
		start := time.Now()
		if w.limit > 0 && start.Sub(begin) > w.limit {
			w.done = i - from
			break
		}
		if err := fn(w, i); err != nil {
			return err
		}
		w.latency.Record(time.Since(start))
	}
	return nil
}

func (c *Cell) percentiles(l *measure.Latency) {
	if l.Count() == 0 {
		return
	}
	c.P50, c.P99, c.P999, c.Max = int64(l.At(50)), int64(l.At(99)), int64(l.At(99.9)), int64(l.Max())
}

// settle waits for background work and adds what it cost, together with an earlier cell, as "<cell>, settled": what an
// engine puts off is not for free.
func (r *Run) settle(c Cell) error {
	before := measure.Now()
	var err error
	if r.docs != nil {
		err = r.docs.Settle()
	} else {
		err = r.store.Settle()
	}
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	more := cellBetween(c.Name+", settled", int(c.Ops), before, measure.Now())
	more.Wall += c.Wall
	more.User += c.User
	more.Sys += c.Sys
	more.Read += c.Read
	more.Write += c.Write
	more.Data = c.Data
	more.Disk = measure.DiskBytes(r.Spec.Dir)
	r.add(more)
	return nil
}

// CannotGive marks a workload that an engine was not asked to do, since it cannot give the class of durability.
const CannotGive = "cannot give this class"

// Execute runs a stage and returns its cells, those before a failure included.
func Execute(spec Spec, d engine.Driver, w Workload) (cells []Cell, err error) {
	class, err := engine.ParseClass(spec.Class)
	if err != nil {
		return nil, err
	}
	if _, ok := d.Classes[class]; !ok {
		return []Cell{spec.Failure(CannotGive)}, nil
	}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return nil, err
	}
	r := &Run{Spec: spec, Driver: d, Class: class, Sizes: spec.Sizes}
	r.Save = func() error { return SaveCells(spec.Out, r.Cells) }
	err = w.Stages[spec.Stage](r)
	if r.store != nil {
		if cerr := r.store.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("close: %w", cerr)
		}
	}
	if r.docs != nil {
		if cerr := r.docs.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("close: %w", cerr)
		}
	}
	if err != nil {
		r.fail(err)
	}
	return r.Cells, nil
}

// fail takes the numbers away from the cells of a stage that has failed, since what is checked behind them is a part of them, and says why.
func (r *Run) fail(err error) {
	for i := range r.Cells {
		if c := &r.Cells[i]; i >= r.checked && c.Failed == "" {
			*c = Cell{Workload: c.Workload, Name: c.Name, Engine: c.Engine, Class: c.Class, Round: c.Round, Scale: c.Scale, Unit: c.Unit, Size: c.Size,
				Info: c.Info, Failed: err.Error()}
		}
	}
	r.add(Cell{Failed: err.Error()})
}
