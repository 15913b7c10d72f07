package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// How the bar is drawn.
const (
	barInterval = 100 * time.Millisecond
	barWidth    = 30
)

// progress is a bar on a terminal, and nothing anywhere else.
type progress struct{ bar *progressbar.ProgressBar }

// progress returns a bar for so many bytes; -1: nobody knows how many.
func (a *app) progress(what string, total int64) *progress {
	f, ok := a.err.(*os.File)
	if !ok || a.json || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what), progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(barInterval), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(barWidth))}
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
