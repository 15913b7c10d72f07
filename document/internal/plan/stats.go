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
}

// Verbosity is how much Explain tells.
type Verbosity uint8

// The verbosities.
const (
	QueryPlanner Verbosity = iota
	ExecutionStats
	AllPlansExecution
)
