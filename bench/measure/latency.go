package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency collects the durations of operations. It is used by one goroutine; Merge joins those of several.
type Latency struct{ h *hdrhistogram.Histogram }

// NewLatency collects from 1 ns to 100 s with three significant digits.
func NewLatency() *Latency { return &Latency{hdrhistogram.New(1, int64(100*time.Second), 3)} }

// Record adds one duration.
func (l *Latency) Record(d time.Duration) { _ = l.h.RecordValue(max(int64(d), 1)) } // above 100 s it is left out

// Merge adds what another one collected.
func (l *Latency) Merge(o *Latency) { l.h.Merge(o.h) }

// Count is the number of durations.
func (l *Latency) Count() int64 { return l.h.TotalCount() }

// At returns a percentile.
func (l *Latency) At(percent float64) time.Duration {
	return time.Duration(l.h.ValueAtQuantile(percent))
}

// Max returns the longest.
func (l *Latency) Max() time.Duration { return time.Duration(l.h.Max()) }
