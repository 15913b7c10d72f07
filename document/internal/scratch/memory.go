package scratch

import (
	"sync/atomic"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Memory is what all sorters, tapes, groups and sets of keys of a store hold together. Each may hold a little without asking, so that small queries
// have nothing in common, and takes the rest in steps from what is left. What is not there for one it does without: it spills sooner. A nil
// Memory has no bound. It is safe for concurrent use.
type Memory struct {
	limit int64
	own   int64 // what each may hold without asking
	held  atomic.Int64
}

const (
	// DefaultOwn is what each may hold without asking, unless it is told otherwise: a merge of the least number of runs takes as much.
	DefaultOwn = leastFanIn * blockBytes
	stepBytes  = 1 << 20
)

// NewMemory returns limit bytes to share, beside own bytes for each.
func NewMemory(limit, own int64) *Memory { return &Memory{limit: limit, own: own} }

// Held returns how many bytes have been taken.
func (m *Memory) Held() int64 { return m.held.Load() }

// take takes n bytes, if there are as many.
func (m *Memory) take(n int64) bool {
	for {
		held := m.held.Load()
		if held+n > m.limit {
			return false
		}
		if m.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Allowance is what one sorter, tape, table of groups or set of keys may use.
type Allowance struct {
	Space  *Space  // where it spills; nil: it fails instead
	Memory int64   // bytes that it may hold
	Shared *Memory // out of which it takes them
}

// Share is the memory of one holder. It is for one goroutine.
type Share struct {
	a     Allowance
	taken int64
}

// Share returns a share of which nothing has been taken.
func (a Allowance) Share() Share { return Share{a: a} }

// Fits reports whether the holder may hold n bytes, and takes what that needs.
func (s *Share) Fits(n int64) bool {
	if n > s.a.Memory {
		return false
	}
	m := s.a.Shared
	if m == nil || n <= m.own+s.taken {
		return true
	}
	need := n - m.own - s.taken
	for _, more := range []int64{max(need, min(stepBytes, s.a.Memory)), need} {
		if m.take(more) {
			s.taken += more
			return true
		}
	}
	return false
}

// Most is how many bytes the holder may hold without taking more.
func (s *Share) Most() int64 {
	if s.a.Shared == nil {
		return s.a.Memory
	}
	return min(s.a.Memory, s.a.Shared.own+s.taken)
}

// Shrink gives back what is beyond n bytes.
func (s *Share) Shrink(n int64) {
	if s.a.Shared == nil {
		return
	}
	if over := s.taken - max(n-s.a.Shared.own, 0); over > 0 {
		s.a.Shared.held.Add(-over)
		s.taken -= over
	}
}

// Exceeded is the error of a holder who needs n bytes, which do not fit, and must not spill.
func (s *Share) Exceeded(what string, n int64) error {
	if n > s.a.Memory {
		return mongoerror.New(mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed,
			"%s exceeded memory limit of %d bytes, but did not opt in to external sorting. Aborting operation. Pass allowDiskUse:true to opt in.", what, s.a.Memory)
	}
	return mongoerror.New(mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed,
		"%s needs %d bytes of memory, which others hold of the %d bytes for all, and did not opt in to external sorting. Aborting operation. Pass allowDiskUse:true to opt in.",
		what, n, s.a.Shared.limit)
}
