package engine

import (
	"sync/atomic"
	"time"

	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
)

// counters are what the engine counts as it runs.
type counters struct {
	commits      atomic.Int64
	userBytes    atomic.Int64 // keys and values beside their keys, as handed over
	valueBytes   atomic.Int64 // values apart, as handed over
	logBytes     atomic.Int64
	settledBytes atomic.Int64
	syncs        atomic.Int64
	checkpoints  atomic.Int64
	stalls       atomic.Int64
	stallTime    atomic.Int64 // nanoseconds
}

// Metrics are counters since the database was opened, and sizes as they are now. Bytes unless said otherwise.
type Metrics struct {
	Profile Profile
	LastSeq uint64 // sequence number of the newest visible change
	Settled uint64 // everything up to it is settled

	Commits     int64         // number
	Checkpoints int64         // number
	Syncs       int64         // number of syncs of the log that commits, Sync or the Relaxed profile asked for; not those of checkpoints
	Stalls      int64         // number of times a writer was slowed down because settling lagged behind
	StallTime   time.Duration // for how long in total

	UserBytes    int64 // keys and values that were handed over
	LogBytes     int64 // written to the log
	ValueBytes   int64 // written to value segments by commits
	SettledBytes int64 // written by checkpoints, the cleaner and Compact
	// WriteAmplification is everything written over UserBytes; 0 when nothing was handed over.
	WriteAmplification float64

	SegmentBytes int64 // segment files
	LiveBytes    int64 // of these, what is in use
	LogSize      int64 // log files in use
	// SpaceAmplification is all files over what is in use; 0 when nothing is.
	SpaceAmplification float64
	Segments           int // number of segment files

	DiskFree   int64 // bytes free on its disk, and below 0 where the system does not tell
	DiskNeeded int64 // of these, what checkpoints may need: where less is free, what adds is refused

	MemtableBytes  int64 // in memtables, of what has not settled
	MemtableCount  int   // number
	CacheBytes     int64 // budget of the page cache
	CacheUsed      int64 // of it in use
	CacheMisses    int64 // number of pages read because they were not in the cache
	CacheEvictions int64 // number
	InnerBytes     int64 // resident inner nodes

	Readers      int    // number of earlier pictures of the database that readers still hold
	OldestReader uint64 // by how many checkpoints the oldest of them lags behind
}

// Metrics returns what the engine counts.
func (e *Engine) Metrics() Metrics {
	c := &e.counters
	m := Metrics{
		Profile: e.o.Profile, LastSeq: e.visible.Load(), Settled: e.settledSeq.Load(),
		Commits: c.commits.Load(), Checkpoints: c.checkpoints.Load(), Syncs: c.syncs.Load(),
		Stalls: c.stalls.Load(), StallTime: time.Duration(c.stallTime.Load()),
		LogBytes: c.logBytes.Load(), ValueBytes: c.valueBytes.Load(), SettledBytes: c.settledBytes.Load(),
		InnerBytes: e.env.Inner.Load(),
	}
	m.UserBytes = c.userBytes.Load() + m.ValueBytes
	if m.UserBytes > 0 {
		m.WriteAmplification = float64(m.LogBytes+m.ValueBytes+m.SettledBytes) / float64(m.UserBytes)
	}
	s, err := e.Snapshot()
	if err != nil {
		return m
	}
	defer s.Release()
	for _, t := range s.View.Tables {
		m.MemtableBytes += int64(t.Bytes())
		m.MemtableCount++
	}
	e.sizesNow(&m, e.store.Segments())
	m.DiskNeeded, m.DiskFree = e.spaceNeeded(), -1
	if free, known := vfs.Free(e.o.FS, e.path(segment.DirName)); known {
		m.DiskFree = free
	}
	lag, held := e.OldestView()
	m.OldestReader, m.Readers = lag, held
	return m
}

func (e *Engine) sizesNow(m *Metrics, infos []segment.Info) {
	m.Segments, m.SegmentBytes, m.LiveBytes = len(infos), segment.Bytes(infos), segment.LiveBytes(infos)
	if e.log != nil {
		m.LogSize = e.log.Size()
	}
	if m.LiveBytes > 0 {
		m.SpaceAmplification = float64(m.SegmentBytes+m.LogSize) / float64(m.LiveBytes)
	}
	stats := e.cache.Stats()
	m.CacheBytes, m.CacheUsed, m.CacheMisses, m.CacheEvictions = stats.Limit, stats.PageBytes, stats.Misses, stats.Evictions
}
