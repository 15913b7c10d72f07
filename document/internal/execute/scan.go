package execute

import (
	"errors"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/plan"
)

// collectionScan walks over all records.
type collectionScan struct {
	x  *run
	s  *plan.CollectionScan
	st *plan.Stats
	it *pando.Iterator

	sieve   *codec.Sieve // nil: each record is looked at
	whole   bool         // the filter is what the sieve asks, and nothing else
	verdict codec.Verdict
	passed  int   // records since the walk was here
	unknown int64 // records of which the sieve knew nothing
}

// siftAfter is of how many records a sieve pays: most scans are of collections that have fewer, or end with the first match.
const siftAfter = 64

// unknownMost is how many of 16 records a sieve may know nothing of: to ask it takes a tenth of the time of a look at the record.
const unknownMost = 14

// prepare makes the sieve, if there is something to ask it. A run that counts its steps looks at each record.
func (n *collectionScan) prepare() bool {
	if n.s.Filter == nil || n.x.limit > 0 {
		return false
	}
	list, whole := n.s.Filter.Conditions()
	if len(list) == 0 {
		return false
	}
	conditions := make([]codec.Condition, len(list))
	for i, c := range list {
		conditions[i] = codec.Condition{Field: c.Field(), Holds: c.Holds}
	}
	n.sieve, n.whole = n.x.c.Codec.NewSieve(conditions), whole
	return true
}

// wanted reports whether a record has to be looked at. It is, now and then, for the sake of who cancels.
func (n *collectionScan) wanted(value []byte) bool {
	n.passed++
	n.verdict = n.sieve.Look(value)
	if n.verdict == codec.Unknown {
		n.unknown++
	}
	return n.verdict != codec.Fails || n.passed == stepsPerCheck
}

// sift moves to the next record that the sieve does not turn down, and gives up a sieve that knows little.
func (n *collectionScan) sift() bool {
	n.passed = 0
	ok := n.it.NextWanted(n.wanted)
	if ok && n.passed > 0 {
		n.passed-- // the one that it stands on is counted by the caller
	}
	n.st.Works += int64(n.passed)
	n.st.Docs += int64(n.passed)
	if n.unknown > stepsPerCheck && n.unknown > n.st.Docs/16*unknownMost {
		n.sieve = nil
	}
	checked := n.x.steps / stepsPerCheck
	n.x.steps += n.passed
	return (n.x.steps/stepsPerCheck == checked || n.x.alive()) && ok
}

// matches evaluates the filter on the record at hand.
func (n *collectionScan) matches(value []byte) bool {
	if n.s.Filter == nil || n.sieve != nil && n.whole && n.verdict == codec.Holds {
		return true
	}
	return n.x.matches(n.s.Filter, value)
}

func (n *collectionScan) next(r *row) bool {
	if n.it == nil {
		if n.st.Done || !n.x.alive() {
			return false
		}
		n.it = n.x.r.Iter(n.x.c.Records, nil)
	}
	for n.x.tick() {
		ok := false
		switch {
		case n.s.Backward:
			ok = n.it.Prev()
		case n.sieve != nil || n.st.Docs == siftAfter && n.prepare():
			ok = n.sift()
		default:
			ok = n.it.Next()
		}
		n.st.Works++
		if !ok {
			break
		}
		n.st.Docs++
		value := n.it.Value()
		if len(value) == 0 && n.it.Err() != nil {
			break
		}
		if !n.matches(value) {
			if n.x.err != nil {
				return false
			}
			continue
		}
		n.st.Advanced++
		*r = row{key: n.it.Key(), stored: value}
		return true
	}
	if err := n.it.Err(); err != nil {
		n.x.fail(err)
	}
	n.close()
	return false
}

func (n *collectionScan) close() {
	n.st.Done = true
	if n.it != nil {
		_ = n.it.Close() // reading is over: what could fail has been asked for by Err
		n.it = nil
	}
}

// idLookup reads the record with an _id.
type idLookup struct {
	x           *run
	s           *plan.IDLookup
	st          *plan.Stats
	key, record []byte
}

func (n *idLookup) next(r *row) bool {
	n.st.Works++
	if n.st.Done || !n.x.alive() {
		return false
	}
	n.st.Done = true
	var err error
	n.st.Keys++
	if n.key, n.record, err = n.x.c.byID(n.x.r, n.key[:0], n.record[:0], n.s.Key); err != nil {
		return !errors.Is(err, pando.ErrNotFound) && n.x.fail(err)
	}
	n.st.Docs++
	n.st.Advanced++
	*r = row{key: n.key, stored: n.record}
	return true
}

func (n *idLookup) close() {}

// byID reads the record with the encoded _id, and appends its key and itself to the buffers.
func (c *Collection) byID(r Reader, key, record, id []byte) (k, stored []byte, err error) {
	if c.IDIndex == nil {
		key = append(key, id...)
	} else if key, err = recordKey(r, c.IDIndex.Keyspace, key, id); err != nil {
		return key, record, err
	}
	record, err = r.GetTo(c.Records, record, key)
	return key, record, err
}

// recordKey appends the record key of an entry of a unique index.
func recordKey(r Reader, ks *pando.Keyspace, dst, entry []byte) ([]byte, error) {
	n := len(dst)
	dst, err := r.GetTo(ks, dst, entry)
	if err != nil {
		return dst, err
	}
	if len(dst) == n {
		return dst, pando.ErrCorrupt
	}
	return append(dst[:n], dst[n+1:]...), nil
}

// nothing gives no rows.
type nothing struct{ st *plan.Stats }

func (n *nothing) next(*row) bool {
	n.st.Works, n.st.Done = 1, true
	return false
}

func (n *nothing) close() {}
