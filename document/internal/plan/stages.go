package plan

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/query"
)

// IDIndex is the number of the index of _id, which every collection has: the records themselves are in the order of _id, unless the
// collection is capped.
const IDIndex = -1

// Stage is a node of a plan: one of the types of this file. A stage gives rows to the one that has it as input. A row is a record
// key, with an index entry, a stored record, or both.
type Stage interface {
	// Name is what MongoDB calls such a stage: COLLSCAN, IXSCAN, FETCH and so on.
	Name() string
	// Inputs are the stages of which it takes rows.
	Inputs() []Stage
}

// EOF gives nothing: the filter contradicts itself.
type EOF struct{}

// CollectionScan walks over all records.
type CollectionScan struct {
	Filter   *query.Filter // nil: every record
	Backward bool
}

// IDLookup reads the one record with an _id.
type IDLookup struct {
	ID  bsoncore.Value
	Key []byte // ID as a key
}

// IndexScan walks over the entries of an index that lie in its bounds.
type IndexScan struct {
	Index      int // in Collection.Indexes, or IDIndex
	Definition *index.Definition
	Multikey   uint64
	Bounds     *Bounds
	Path       string // which path of a wildcard component
	Backward   bool
	// Filter is evaluated on the values of exact entries, and on the record where an entry is not exact; nil: none.
	Filter *query.Filter
	// Dedup tells that a record may have several entries in the bounds: it is to be given once.
	Dedup bool
}

// Fetch reads the record of each row, and keeps those that match.
type Fetch struct {
	Input  Stage
	Filter *query.Filter // nil: all
}

// Or gives the rows of all its inputs, each record once.
type Or struct{ Branches []Stage }

// SortMerge is Or of inputs that all are in one order, and keeps it.
type SortMerge struct {
	Branches []Stage
	Pattern  bsoncore.Document
	Dedup    bool // a record may come from several branches
}

// And gives the records that all of its inputs give. Sorted inputs come in the order of record keys.
type And struct {
	Branches []Stage
	Sorted   bool
}

// Sort gives the rows of its input in an order.
type Sort struct {
	Input   Stage
	Pattern bsoncore.Document
	Limit   int64 // how many are wanted; 0: all
}

// Skip leaves out the first rows.
type Skip struct {
	Input Stage
	N     int64
}

// Limit gives the first rows only.
type Limit struct {
	Input Stage
	N     int64
}

// Project transforms documents.
type Project struct {
	Input      Stage
	Projection *projection.Projection
	Covered    bool // the rows are index entries with all the values that it needs
	Simple     bool // a plain inclusion or exclusion
}

// Count counts the rows of its input, and gives none.
type Count struct {
	Input       Stage // nil: the number of records is the answer
	Skip, Limit int64
}

// CountScan counts the entries in bounds without looking at them.
type CountScan struct{ Scan *IndexScan }

// DistinctScan gives one entry for each value of a component of an index.
type DistinctScan struct {
	Scan  *IndexScan
	Field int // the component
}

// Name implements Stage.
func (*EOF) Name() string { return "EOF" }

// Name implements Stage.
func (*CollectionScan) Name() string { return "COLLSCAN" }

// Name implements Stage.
func (*IDLookup) Name() string { return "IDHACK" }

// Name implements Stage.
func (*IndexScan) Name() string { return "IXSCAN" }

// Name implements Stage.
func (*Fetch) Name() string { return "FETCH" }

// Name implements Stage.
func (*Or) Name() string { return "OR" }

// Name implements Stage.
func (*SortMerge) Name() string { return "SORT_MERGE" }

// Name implements Stage.
func (s *And) Name() string {
	if s.Sorted {
		return "AND_SORTED"
	}
	return "AND_HASH"
}

// Name implements Stage.
func (*Sort) Name() string { return "SORT" }

// Name implements Stage.
func (*Skip) Name() string { return "SKIP" }

// Name implements Stage.
func (*Limit) Name() string { return "LIMIT" }

// Name implements Stage.
func (s *Project) Name() string {
	switch {
	case s.Covered:
		return "PROJECTION_COVERED"
	case s.Simple:
		return "PROJECTION_SIMPLE"
	}
	return "PROJECTION_DEFAULT"
}

// Name implements Stage.
func (s *Count) Name() string {
	if s.Input == nil {
		return "RECORD_STORE_FAST_COUNT"
	}
	return "COUNT"
}

// Name implements Stage.
func (*CountScan) Name() string { return "COUNT_SCAN" }

// Name implements Stage.
func (*DistinctScan) Name() string { return "DISTINCT_SCAN" }

// Inputs implements Stage.
func (*EOF) Inputs() []Stage { return nil }

// Inputs implements Stage.
func (*CollectionScan) Inputs() []Stage { return nil }

// Inputs implements Stage.
func (*IDLookup) Inputs() []Stage { return nil }

// Inputs implements Stage.
func (*IndexScan) Inputs() []Stage { return nil }

// Inputs implements Stage.
func (s *Fetch) Inputs() []Stage { return []Stage{s.Input} }

// Inputs implements Stage.
func (s *Or) Inputs() []Stage { return s.Branches }

// Inputs implements Stage.
func (s *SortMerge) Inputs() []Stage { return s.Branches }

// Inputs implements Stage.
func (s *And) Inputs() []Stage { return s.Branches }

// Inputs implements Stage.
func (s *Sort) Inputs() []Stage { return []Stage{s.Input} }

// Inputs implements Stage.
func (s *Skip) Inputs() []Stage { return []Stage{s.Input} }

// Inputs implements Stage.
func (s *Limit) Inputs() []Stage { return []Stage{s.Input} }

// Inputs implements Stage.
func (s *Project) Inputs() []Stage { return []Stage{s.Input} }

// Inputs implements Stage.
func (s *Count) Inputs() []Stage {
	if s.Input == nil {
		return nil
	}
	return []Stage{s.Input}
}

// Inputs implements Stage.
func (*CountScan) Inputs() []Stage { return nil }

// Inputs implements Stage.
func (*DistinctScan) Inputs() []Stage { return nil }
