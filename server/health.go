package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pandodb/pando/internal/clock"
)

// syncInterval is how often health checks sync the store at most: whoever asks more often hears what the last sync said.
const syncInterval = 5 * time.Second

// slowSync is how long a sync may take before it counts as one that fails.
const slowSync = 2 * syncInterval

// probe tells whether the store can be written to, by syncing it now and then.
type probe struct {
	clock clock.Clock
	sync  func() error

	mu   sync.Mutex
	busy bool // somebody syncs
	last time.Time
	err  error
}

// check returns the outcome of the newest sync. It syncs itself when that is too long ago and nobody else does already.
func (p *probe) check() error {
	p.mu.Lock()
	now := p.clock.Now()
	if since := now.Sub(p.last); p.busy && since >= slowSync {
		defer p.mu.Unlock()
		return fmt.Errorf("a sync of the store takes %v already", since.Round(time.Second))
	}
	if p.busy || !p.last.IsZero() && now.Sub(p.last) < syncInterval {
		defer p.mu.Unlock()
		return p.err
	}
	p.busy, p.last = true, now
	p.mu.Unlock()
	err := p.sync()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy, p.err = false, err
	return err
}

// health answers 200 as long as the store can be written to and clients are welcome.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	m := s.store.DB().Metrics()
	status, code := "ok", http.StatusOK
	if err := s.probe.check(); err != nil {
		status, code = err.Error(), http.StatusServiceUnavailable
	}
	select {
	case <-s.ready:
		status, code = "stopping", http.StatusServiceUnavailable
	default:
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "lastSeq": m.LastSeq}) // the client may be gone
}
