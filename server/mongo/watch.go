package mongo

import (
	"errors"
	"net"
	"sync"
	"time"
)

// watch notices that a client has gone while a command of its runs, and ends the command. Only commands that last are watched, so the
// others pay two locks that nobody else wants.
type watch struct {
	mu      sync.Mutex
	request *request      // the command that runs
	done    chan struct{} // closed when nobody reads from the connection for this command any more; nil when nobody began to
}

// begin notes that a command runs.
func (w *watch) begin(r *request) {
	w.mu.Lock()
	w.request = r
	w.mu.Unlock()
}

// start waits for the connection to end, in a goroutine of its own, while the command runs. What the client has sent ahead is left in the
// buffer, and does not tell that it is still there; only while the buffer is full of it nobody can tell.
func (w *watch) start(r *request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.request != r || w.done != nil {
		return
	}
	done, in := make(chan struct{}), r.conn.in
	w.done = done
	go func() {
		defer close(done)
		var err error
		for n := 1; err == nil && n <= in.Size(); n = in.Buffered() + 1 {
			_, err = in.Peek(n)
		}
		var late net.Error
		if err != nil && !(errors.As(err, &late) && late.Timeout()) {
			r.cancel(errKilled)
		}
	}()
}

// end notes that the command has ended, and gives the connection back to who reads its messages.
func (w *watch) end(c *conn) {
	w.mu.Lock()
	done := w.done
	w.request, w.done = nil, nil
	w.mu.Unlock()
	if done == nil {
		return
	}
	// Whether the deadline can be set is found out by the next read.
	_ = c.net.SetReadDeadline(time.Unix(1, 0))
	<-done
	_ = c.net.SetReadDeadline(time.Time{})
}

// watchedAfter is how long a command runs before its client is watched.
const watchedAfter = time.Second

// watchClients watches the clients of commands that last.
func (t *operationTable) watchClients(now time.Time) {
	t.mu.Lock()
	var long []*request
	for _, op := range t.byID {
		if now.Sub(op.started) >= watchedAfter {
			long = append(long, op.request)
		}
	}
	t.mu.Unlock()
	for _, r := range long {
		r.conn.watch.start(r)
	}
}
