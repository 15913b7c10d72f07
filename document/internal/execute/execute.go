// Package execute runs plans over the keyspaces of a collection, as of one moment. It promises to give the rows of a plan one by one,
// reading no more than it needs for those that are asked for, in bounded memory; it never changes data. It fails with a
// *mongoerror.Error when a limit is exceeded or a filter cannot be evaluated, and passes the error of a context that has ended, and
// those of the storage, on as they are.
package execute

import (
	"errors"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/scratch"
)

// Index is a secondary index, as a plan may use it.
type Index struct {
	Definition *index.Definition
	Keyspace   *pando.Keyspace
	Multikey   func() uint64
}

// Collection is what plans run on.
type Collection struct {
	Namespace string
	Records   *pando.Keyspace
	Codec     *codec.Codec
	Indexes   []Index // the secondary indexes that may be used: neither hidden ones nor those being built
	Capped    bool    // record keys are insertion numbers
	IDIndex   *Index  // the index of _id of a capped collection; nil for others
	// Order is the index that the order of the records stands in for, where that is not _id: record keys are its entries, made unique.
	// One without components stands in for none.
	Order *index.Definition
	// Estimate tells about how many records there are, at no cost; nil: they are counted when a plan depends on it, which takes time
	// as long as many of them have just been written.
	Estimate func() int64
}

// DefaultMemory is how many bytes a sort or a set of record keys may hold.
const DefaultMemory = 100 << 20

// Options of Open. nil means the zero value.
type Options struct {
	Memory int64           // bytes that each blocking stage may hold; 0: DefaultMemory
	Shared *scratch.Memory // of which all stages take theirs
	Space  *scratch.Space  // where sorts spill; nil: they fail instead
	Steps  int64           // entries and records after which the run ends with ErrSteps; 0: no limit
}

// ErrSteps is what ends a run after Options.Steps.
var ErrSteps = errors.New("the run has taken as many steps as it may")

// Planning returns what the planner needs to know about the collection, about as r sees it.
func Planning(r Reader, c *Collection) *plan.Collection {
	r = estimating(r)
	p := &plan.Collection{
		Namespace: c.Namespace,
		Capped:    c.Capped,
		Order:     c.Order,
		Records:   c.records(r),
		Count:     func(i int, lo, hi []byte) (int64, error) { return r.Count(c.keyspace(i), lo, hi) },
	}
	for _, i := range c.Indexes {
		p.Indexes = append(p.Indexes, plan.Index{Definition: i.Definition, Multikey: i.Multikey()})
	}
	return p
}

// records returns what tells how many records there are.
func (c *Collection) records(r Reader) func() (int64, error) {
	if c.Estimate != nil {
		return func() (int64, error) { return c.Estimate(), nil }
	}
	return func() (int64, error) { return r.Count(c.Records, nil, nil) }
}

// keyspace returns that of an index of a plan.
func (c *Collection) keyspace(i int) *pando.Keyspace {
	switch {
	case i != plan.IDIndex:
		return c.Indexes[i].Keyspace
	case c.IDIndex != nil:
		return c.IDIndex.Keyspace
	}
	return c.Records
}
