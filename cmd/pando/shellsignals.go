package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/term"
)

// signalWatch brings signals to the statement that runs. While none does, all but Ctrl-C close the store and end the process:
// nothing else gets the line editor to return.
type signalWatch struct {
	s        *session
	signals  chan os.Signal
	terminal int
	before   *term.State

	mu         sync.Mutex
	cancel     context.CancelFunc // of the statement that runs; nil: none does
	terminated bool
}

// watchSignals begins to watch. The standard input is a terminal.
func (s *session) watchSignals() (*signalWatch, error) {
	const atOnce = 8 // none is lost behind signals that nobody took yet
	w := &signalWatch{s: s, signals: make(chan os.Signal, atOnce), terminal: int(os.Stdin.Fd())}
	var err error
	if w.before, err = term.GetState(w.terminal); err != nil {
		return nil, err
	}
	signal.Notify(w.signals, endings()...)
	go func() {
		for sig := range w.signals {
			w.came(sig != os.Interrupt)
		}
	}()
	return w, nil
}

// stop ends watching.
func (w *signalWatch) stop() {
	signal.Stop(w.signals)
	close(w.signals)
}

// came is called with each signal.
func (w *signalWatch) came(terminate bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.terminated = w.terminated || terminate
	switch {
	case w.cancel != nil:
		if terminate {
			signal.Stop(w.signals) // a second one ends a statement that does not heed the first
		}
		w.cancel()
	case terminate:
		a := w.s.printer.a
		err := errors.Join(w.s.store.Close(), a.discardScratch(), term.Restore(w.terminal, w.before))
		if err != nil {
			fmt.Fprintln(a.err, message(context.Background(), "pando shell", err))
		}
		os.Exit(exitCode(err))
	}
}

// begin is called before a statement and returns its context; end is called after it, and says whether the shell is to end.
func (w *signalWatch) begin(ctx context.Context) (running context.Context, end func() bool) {
	running, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	w.cancel = cancel
	w.mu.Unlock()
	return running, func() bool {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cancel = nil
		return w.terminated
	}
}
