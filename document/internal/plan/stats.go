package plan

import "time"

// Stats is what the execution of a stage has counted.
type Stats struct {
	Stage    Stage
	Inputs   []*Stats
	Works    int64 // steps
	Advanced int64 // rows given
	Done     bool  // the end was met
	Keys     int64 // index entries looked at
	Seeks    int64
	Docs     int64 // records looked at
	Dropped  int64 // rows that were duplicates
	// Memory and Spilled are bytes that a sort held in memory and wrote to files; Usage counts both.
	Memory, Spilled int64
}

// Examined returns the sum of entries and of records that the whole tree has looked at.
func (s *Stats) Examined() (keys, docs int64) {
	if s == nil {
		return 0, 0
	}
	keys, docs = s.Keys, s.Docs
	for _, in := range s.Inputs {
		k, d := in.Examined()
		keys, docs = keys+k, docs+d
	}
	return keys, docs
}

// Run is one execution of a plan, for explain.
type Run struct {
	Returned int64
	Duration time.Duration
	Root     *Stats
	Err      error
	Trials   []*Run // of AllPlansExecution: the plans that there were, the chosen one first, run for a while
}

// Steps returns how many entries and records the whole tree has gone over.
func (s *Stats) Steps() int64 {
	n := int64(0)
	for _, in := range s.Inputs {
		n += in.Steps()
	}
	if len(s.Inputs) == 0 {
		n = max(s.Works, s.Keys)
	}
	return n
}

// Verbosity is how much Explain tells.
type Verbosity uint8

// The verbosities.
const (
	QueryPlanner Verbosity = iota
	ExecutionStats
	AllPlansExecution
)
