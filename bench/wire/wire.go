// Package wire measures servers that speak MongoDB's wire protocol, from outside: YCSB A to F, and cells on documents with
// secondary indexes as applications use them, transactions among these, by 16 connections of the Go driver.
//
// Every server is a fresh process with a fresh directory in every round, the servers take turns, and the answers are verified: a
// server that answers wrongly has no numbers. Writes ask for j: true, and Pando runs in its durable profile, so that what is
// acknowledged has been synced; a server that cannot give this is shown beside the others and is no rival. On a machine where client
// and servers share the processors, the throughput is mostly the client's, and the sounder figure is the server's processor time
// per operation, which the system tells.
package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pandodb/pando/bench/jsonfile"
	"github.com/pandodb/pando/bench/report"
)

// Options says what to measure.
type Options struct {
	Sizes      Sizes
	Rounds     int
	Standalone bool     // servers without the identity of a replica set: no retryable writes, no oplog
	Servers    []string // by name; empty: all
	Dir        string   // for the databases; empty: a temporary one
	Pando      string   // program; empty: it is built
	Mongod     string   // program; empty: it is fetched
	Java       string   // directory with mongo-java-server's jars; empty: they are fetched
	Progress   func(format string, args ...any)
	Command    string                // for the report
	Save       func(r *Result) error // keeps what there is, after each server; nil: nothing is kept
}

// Sizes says how much there is to do.
type Sizes struct {
	Records int `json:"records"` // documents before the cells begin
	Ops     int `json:"ops"`     // operations of a cell; a tenth of that where one is some hundred documents
	Threads int `json:"threads"`
	// Pause is how long servers are watched after a workload, and longer if they are still busy.
	Pause time.Duration `json:"pause_ns"`
}

// Full is what the report is made of.
func Full() Sizes {
	return Sizes{Records: 100_000, Ops: 20_000, Threads: 16, Pause: 2 * time.Second}
}

// Quick shows in seconds that every cell works.
func Quick() Sizes { return Sizes{Records: 2_000, Ops: 400, Threads: 4} }

// Cell is what was measured of one server in one workload.
type Cell struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	Round    int    `json:"round"`
	Ops      int64  `json:"ops"`
	Wall     int64  `json:"wall_ns"`
	User     int64  `json:"server_user_ns"`
	System   int64  `json:"server_system_ns"`
	Client   int64  `json:"client_cpu_ns"`
	P50      int64  `json:"p50_ns"`
	P99      int64  `json:"p99_ns"`
	P999     int64  `json:"p999_ns"`
	Peak     int64  `json:"peak_rss_bytes"` // of the server, so far
	Disk     int64  `json:"disk_bytes"`
	Failed   string `json:"failed,omitempty"`
}

// Server describes a server of a run.
type Server struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Durable bool   `json:"durable"`           // an acknowledged write has been synced
	Missing string `json:"missing,omitempty"` // why it could not be had
}

// Result is a run.
type Result struct {
	Command    string         `json:"command"`
	Machine    report.Machine `json:"machine"`
	Sizes      Sizes          `json:"sizes"`
	Rounds     int            `json:"rounds"`
	Standalone bool           `json:"standalone"`
	Seconds    float64        `json:"seconds"`
	Servers    []Server       `json:"servers"`
	Cells      []Cell         `json:"cells"`
}

// Save writes the run into a file.
func (r *Result) Save(name string) error { return jsonfile.Save(name, r) }

func runs() jsonfile.Runs[Result, Cell] {
	return jsonfile.Runs[Result, Cell]{
		Command: "pandobench wire",
		Cells:   func(r *Result) []Cell { return r.Cells },
		Own:     func(c Cell) bool { return c.Server != "" },
	}
}

// Load is the inverse of Save. A file with other cells is refused, such as one of pandobench run.
func Load(name string) (*Result, error) { return runs().Load(name) }

// LoadAll loads files of numbers of which each has some.
func LoadAll(names []string) ([]*Result, error) { return runs().LoadAll(names) }

// Failures joins what went wrong. That a peer could not be had is not wrong, as long as Pando was there.
func (r *Result) Failures() error {
	var errs []error
	for _, c := range r.Cells {
		if c.Failed != "" {
			errs = append(errs, fmt.Errorf("%s, %s: %s", c.Server, c.Workload, c.Failed))
		}
	}
	for _, s := range r.Servers {
		if s.Name == pandoName && s.Missing != "" {
			errs = append(errs, fmt.Errorf("%s: %s", s.Name, s.Missing))
		}
	}
	return errors.Join(errs...)
}

// Check says what is wrong with sizes that the workloads cannot be carried out with.
func (s Sizes) Check() error {
	if s.Records%batchDocuments != 0 {
		return fmt.Errorf("%d documents are no whole batches of %d", s.Records, batchDocuments)
	}
	if s.Records-singleUsers(s) < batchDocuments {
		return fmt.Errorf("%d documents are too few for a batch of %d users besides %d that are inserted one by one", s.Records, batchDocuments, singleUsers(s))
	}
	if n, least := userCount(s), max(listed, s.Threads); n < least {
		return fmt.Errorf("of %d documents and %d operations %d are users, and %d have to be: name more", s.Records, s.Ops, n, least)
	}
	return nil
}

// Run measures all servers, round by round. When ctx ends it, the result has the rounds that were whole by then.
func Run(ctx context.Context, o Options) (*Result, error) {
	dir, err := os.MkdirTemp(o.Dir, "wire-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	result := &Result{Command: o.Command, Machine: report.ThisMachine(), Sizes: o.Sizes, Rounds: o.Rounds, Standalone: o.Standalone}
	begin := time.Now()
	var ready []peer
	for _, p := range peers(o) {
		if len(o.Servers) > 0 && !slices.Contains(o.Servers, p.name()) {
			continue
		}
		s := Server{Name: p.name(), About: p.about(), Durable: p.durable()}
		if err := p.obtain(ctx, dir); err != nil {
			s.Missing = err.Error()
			o.Progress("%s cannot be had, and is left out: %v", p.name(), err)
		} else {
			ready = append(ready, p)
		}
		result.Servers = append(result.Servers, s)
	}
	for round := range o.Rounds {
		order := slices.Clone(ready)
		if round%2 == 1 {
			slices.Reverse(order) // so that no server always follows the same one
		}
		for _, p := range order {
			cells := one(ctx, o, p, filepath.Join(dir, "db"), round)
			if err := ctx.Err(); err != nil {
				return result, err // what the server had by then is no whole round
			}
			result.Cells = append(result.Cells, cells...)
			result.Seconds = time.Since(begin).Seconds()
			if o.Save == nil {
				continue
			}
			if err := o.Save(result); err != nil {
				return nil, err
			}
		}
	}
	return result, ctx.Err()
}

// one measures one server in one round.
func one(ctx context.Context, o Options, p peer, dir string, round int) []Cell {
	fail := func(err error) []Cell {
		o.Progress("round %d  %-18s %v", round+1, p.name(), err)
		return []Cell{{Server: p.name(), Workload: "start", Round: round, Failed: err.Error()}}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	s, err := start(ctx, p, dir)
	if err != nil {
		return fail(err)
	}
	defer s.stop()
	c, err := connect(ctx, s, o)
	if err != nil {
		return fail(err)
	}
	defer c.close()
	var cells []Cell
	for _, w := range workloads() {
		if p.lacks(w.wants) || o.Standalone && w.wants == transactions {
			continue
		}
		cell := c.measure(ctx, w)
		cell.Server, cell.Workload, cell.Round = p.name(), w.name, round
		cells = append(cells, cell)
		note := cell.Failed
		if note == "" {
			note = fmt.Sprintf("%8.0f/s %7.1f us of the server's processor", cell.rate(), cell.serverMicros())
		}
		o.Progress("round %d  %-18s %-40s %s", round+1, p.name(), w.name, note)
		if cell.Failed != "" {
			break
		}
	}
	return cells
}

// rate is operations per second.
func (c *Cell) rate() float64 { return float64(c.Ops) / (float64(c.Wall) / 1e9) }

// serverMicros is the server's processor time per operation.
func (c *Cell) serverMicros() float64 { return float64(c.User+c.System) / 1e3 / float64(c.Ops) }

// clientMicros is the client's.
func (c *Cell) clientMicros() float64 { return float64(c.Client) / 1e3 / float64(c.Ops) }
