package mongo

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// statistics is what the server counts.
type statistics struct {
	bytesIn, bytesOut atomic.Int64
	mu                sync.Mutex
	byCommand         map[string]*commandCounts
	byCollection      map[string]*usage
	all               usage            // of all commands
	statements        map[string]int64 // of write commands, by their names
}

// commandCounts is what the server counts of one command.
type commandCounts struct {
	count, failed int64
	total         time.Duration
	latency       [latencyBuckets]int64 // bucket i: below 2^i microseconds
}

const latencyBuckets = 26 // up to half a minute

// account counts a command that has ended, and keeps it in the profile when that is on.
func (s *Server) account(r *request, reply bsoncore.Document, err error, took time.Duration) {
	name := "unknown"
	if r.command != nil {
		name = r.command.name
	}
	bucket := 0
	for us := took.Microseconds(); us > 0 && bucket < latencyBuckets-1; us >>= 1 {
		bucket++
	}
	t := &s.stats
	t.mu.Lock()
	if t.byCommand == nil {
		t.byCommand = map[string]*commandCounts{}
	}
	c := t.byCommand[name]
	if c == nil {
		c = new(commandCounts)
		t.byCommand[name] = c
	}
	c.count++
	if err != nil {
		c.failed++
	}
	c.total += took
	c.latency[bucket]++
	if r.command != nil {
		t.all.add(r.command.name, r.kind(), took)
	}
	if r.tried > 0 {
		if t.statements == nil {
			t.statements = map[string]int64{}
		}
		t.statements[name] += int64(r.tried)
	}
	if r.command != nil && r.args != nil {
		t.use(r, err != nil, took)
	}
	t.mu.Unlock()
	s.profile.keep(s, r, reply, err, took)
}

// Statistics is what the server has counted since it was started, and what it holds now.
type Statistics struct {
	Connections, ConnectionsMade   int64
	Cursors                        int
	CursorsOpened, CursorsTimedOut int64
	Sessions                       int
	Transactions                   int64 // that are open
	TransactionsActive             int64 // of which a command runs
	TransactionsStarted            int64
	TransactionsCommitted          int64
	TransactionsAborted            int64
	BytesIn, BytesOut              int64
	Commands                       []CommandStatistics // in the order of their names
}

// CommandStatistics is what has been counted of one command.
type CommandStatistics struct {
	Name          string
	Count, Failed int64
	Total         time.Duration
	Latency       []LatencyBucket // the last one takes in everything above
}

// LatencyBucket counts commands that took less than a time, and not less than that of the bucket before.
type LatencyBucket struct {
	Below time.Duration
	Count int64
}

// Statistics returns what the server counts.
func (s *Server) Statistics() Statistics {
	out := Statistics{
		Connections: s.open.Load(), ConnectionsMade: s.connections.Load(), BytesIn: s.stats.bytesIn.Load(), BytesOut: s.stats.bytesOut.Load(),
		Transactions: s.transactions.open.Load(), TransactionsActive: s.transactions.active.Load(), TransactionsStarted: s.transactions.started.Load(),
		TransactionsCommitted: s.transactions.committed.Load(), TransactionsAborted: s.transactions.aborted.Load(),
	}
	out.Cursors, out.CursorsOpened, out.CursorsTimedOut = s.cursors.counts()
	s.sessions.mu.Lock()
	out.Sessions = len(s.sessions.byID)
	s.sessions.mu.Unlock()
	s.stats.mu.Lock()
	for name, c := range s.stats.byCommand {
		x := CommandStatistics{Name: name, Count: c.count, Failed: c.failed, Total: c.total}
		for i, n := range c.latency {
			x.Latency = append(x.Latency, LatencyBucket{Below: time.Microsecond << i, Count: n})
		}
		out.Commands = append(out.Commands, x)
	}
	s.stats.mu.Unlock()
	slices.SortFunc(out.Commands, func(a, b CommandStatistics) int { return strings.Compare(a.Name, b.Name) })
	return out
}
