package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/pandodb/pando"
)

// How the bar is drawn.
const (
	barInterval = 100 * time.Millisecond
	barWidth    = 30
)

// progress is a bar on a terminal, and nothing anywhere else.
type progress struct{ bar *progressbar.ProgressBar }

// progress returns a bar for so many bytes; -1: nobody knows how many.
func (a *app) progress(what string, total int64) *progress { return a.progressOf(what, total, true) }

// progressOf is progress for bytes or for anything else.
func (a *app) progressOf(what string, total int64, bytes bool) *progress {
	f := a.terminal()
	if f == nil {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what), progressbar.OptionShowBytes(bytes),
		progressbar.OptionThrottle(barInterval), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(barWidth))}
}

// terminal is where bars are drawn; nil: nowhere.
func (a *app) terminal() *os.File {
	f, ok := a.err.(*os.File)
	if !ok || a.json || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// set says how many bytes are done. A bar that cannot be drawn is no reason to fail.
func (p *progress) set(done int64) {
	if p.bar != nil {
		_ = p.bar.Set64(done)
	}
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// reader returns r, and moves the bar as it is read.
func (p *progress) reader(r io.Reader) io.Reader {
	if p.bar == nil {
		return r
	}
	return io.TeeReader(r, p.bar)
}

// counter is a bar that counts documents or the like, and is made when it is known how many there are.
type counter struct {
	a     *app
	what  string
	bar   *progress
	total int64
}

func (a *app) counter(what string) *counter { return &counter{a: a, what: what} }

// of says how many of how many are done.
func (c *counter) of(done, total int64) {
	if c.bar == nil || done == 0 || total != c.total { // another part begins
		c.end()
		c.bar, c.total = c.a.progressOf(c.what, total, false), total
	}
	c.bar.set(done)
}

// follow runs a long call of the database with a bar.
func (a *app) follow(ctx context.Context, what string, call func(ctx context.Context) error) error {
	bar := a.counter(what)
	defer bar.end()
	return call(pando.WithProgress(ctx, bar.of))
}

// end removes the bar.
func (c *counter) end() {
	if c.bar != nil {
		c.bar.end()
	}
}
