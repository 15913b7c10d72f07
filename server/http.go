package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/pandodb/pando/server/mongo"
)

// counter is a number that only grows.
type counter struct{ n atomic.Int64 }

func (c *counter) add(n int64) { c.n.Add(n) }

// serveHTTP answers health checks and metrics, where that is asked for.
func (s *Server) serveHTTP() {
	if s.webListen == nil {
		return
	}
	s.probe = &probe{clock: s.clock, sync: s.store.DB().Sync}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /metrics", s.metrics)
	s.web = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		ConnState: s.countHTTP,
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelError), // else it writes to the standard error, whatever the log is
	}
	s.wait.Go(func() {
		if err := s.web.Serve(s.webListen); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("HTTP ended", "error", err)
		}
	})
}

// webConnections is how many connections of HTTP there may be: nobody logs in for one, and each takes a file from the store.
const webConnections = 64

// webTable is the connections of HTTP. Who opens one too many takes the place of another client: nobody can keep the others out by being
// silent, or slow.
type webTable struct {
	mu      sync.Mutex
	changes int // of states
	open    map[net.Conn]webState
}

// webState is what a connection does.
type webState struct {
	active bool // a request has begun
	since  int  // so many changes
}

// note takes in what a connection does now, and returns one that is to be closed for it; nil: there are not too many.
func (t *webTable) note(c net.Conn, state http.ConnState) (tooMany net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch _, open := t.open[c]; {
	case state == http.StateClosed, state == http.StateHijacked:
		delete(t.open, c)
		return nil
	case state != http.StateNew && !open: // it is being closed
		return nil
	}
	if t.open == nil {
		t.open = map[net.Conn]webState{}
	}
	t.changes++
	t.open[c] = webState{state == http.StateActive, t.changes}
	if len(t.open) <= webConnections {
		return nil
	}
	tooMany = t.leastWanted(c)
	delete(t.open, tooMany)
	return tooMany
}

// leastWanted returns the connection on which nothing has happened for longest: one that waits for a request, if there is one. It is not the new
// one. The table is locked.
func (t *webTable) leastWanted(but net.Conn) (found net.Conn) {
	for c, x := range t.open {
		least := t.open[found]
		if c != but && (found == nil || least.active && !x.active || least.active == x.active && x.since < least.since) {
			found = c
		}
	}
	return found
}

// countHTTP closes a connection where there is one too many.
func (s *Server) countHTTP(c net.Conn, state http.ConnState) {
	if tooMany := s.webOpen.note(c, state); tooMany != nil {
		s.refused.add(1)
		s.log.Warn("connection of HTTP closed: too many", "limit", webConnections)
		_ = tooMany.Close() // the client sees the connection end
	}
}

// endHTTP lets running requests end until ctx does, and cuts off the rest: who does not take the answer is no reason to fail.
func (s *Server) endHTTP(ctx context.Context) error {
	err := s.web.Shutdown(ctx)
	if err != nil && ctx.Err() != nil {
		s.log.Warn("HTTP requests were cut off", "after", drainTime)
		err = s.web.Close()
	}
	return err
}

// metrics answers with Prometheus's text format.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	set := metrics.NewSet()
	gauge := func(name string, v float64) { set.GetOrCreateGauge(name, nil).Set(v) }
	stats := s.mongo.Statistics()
	gauge("pando_connections", float64(stats.Connections))
	gauge("pando_connections_total", float64(stats.ConnectionsMade))
	gauge("pando_connections_refused_total", float64(s.refused.n.Load()))
	gauge("pando_cursors", float64(stats.Cursors))
	gauge("pando_cursors_opened_total", float64(stats.CursorsOpened))
	gauge("pando_cursors_timed_out_total", float64(stats.CursorsTimedOut))
	gauge("pando_sessions", float64(stats.Sessions))
	gauge("pando_transactions", float64(stats.Transactions))
	gauge("pando_transactions_committed_total", float64(stats.TransactionsCommitted))
	gauge("pando_transactions_aborted_total", float64(stats.TransactionsAborted))
	gauge("pando_bytes_in_total", float64(stats.BytesIn))
	gauge("pando_bytes_out_total", float64(stats.BytesOut))
	for _, c := range stats.Commands {
		gauge(fmt.Sprintf("pando_commands_total{command=%q,outcome=%q}", c.Name, "ok"), float64(c.Count-c.Failed))
		gauge(fmt.Sprintf("pando_commands_total{command=%q,outcome=%q}", c.Name, "failed"), float64(c.Failed))
		appendLatency(gauge, c)
	}
	s.engineMetrics(gauge)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	set.WritePrometheus(w)
}

// appendLatency gives a command's latencies as a histogram.
func appendLatency(gauge func(string, float64), c mongo.CommandStatistics) {
	sum := int64(0)
	for _, b := range c.Latency[:max(0, len(c.Latency)-1)] { // the last one has no upper end
		sum += b.Count
		gauge(fmt.Sprintf("pando_command_seconds_bucket{command=%q,le=\"%g\"}", c.Name, b.Below.Seconds()), float64(sum))
	}
	gauge(fmt.Sprintf("pando_command_seconds_bucket{command=%q,le=\"+Inf\"}", c.Name), float64(c.Count))
	gauge(fmt.Sprintf("pando_command_seconds_sum{command=%q}", c.Name), c.Total.Seconds())
	gauge(fmt.Sprintf("pando_command_seconds_count{command=%q}", c.Name), float64(c.Count))
}

// engineMetrics gives what the storage counts.
func (s *Server) engineMetrics(gauge func(string, float64)) {
	m := s.store.DB().Metrics()
	for _, g := range []struct {
		name string
		v    float64
	}{
		{"commits_total", float64(m.Commits)}, {"checkpoints_total", float64(m.Checkpoints)}, {"syncs_total", float64(m.Syncs)},
		{"stalls_total", float64(m.Stalls)}, {"stall_seconds_total", m.StallTime.Seconds()}, {"user_bytes_total", float64(m.UserBytes)},
		{"log_bytes_total", float64(m.LogBytes)}, {"value_bytes_total", float64(m.ValueBytes)}, {"settled_bytes_total", float64(m.SettledBytes)},
		{"write_amplification", m.WriteAmplification}, {"segment_bytes", float64(m.SegmentBytes)}, {"live_bytes", float64(m.LiveBytes)},
		{"log_bytes", float64(m.LogSize)}, {"memtable_bytes", float64(m.MemtableBytes)}, {"cache_bytes", float64(m.CacheBytes)},
		{"cache_used_bytes", float64(m.CacheUsed)}, {"cache_misses_total", float64(m.CacheMisses)}, {"cache_evictions_total", float64(m.CacheEvictions)},
		{"inner_bytes", float64(m.InnerBytes)}, {"held_views", float64(m.Readers)}, {"oldest_view_checkpoints", float64(m.OldestReader)},
		{"last_seq", float64(m.LastSeq)}, {"settled_seq", float64(m.Settled)}, {"memtables", float64(m.MemtableCount)},
		{"segments", float64(m.Segments)}, {"space_amplification", m.SpaceAmplification},
		{"disk_free_bytes", float64(m.DiskFree)}, {"disk_needed_bytes", float64(m.DiskNeeded)},
	} {
		gauge("pando_storage_"+g.name, g.v)
	}
}
