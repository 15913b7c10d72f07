package view

import (
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/value"
)

// Group is how many keys GetGroup takes at a time.
const Group = 16

// Answer is what FindGroup says of a key: what Get would.
type Answer struct {
	Record record.Record
	Status layout.Status
}

// sought is a key of a group that no memtable knows.
type sought struct {
	at   int
	hash uint64
}

// Taken is what AppendGroup has made of keys: first of those in memory, then of those apart, then of those alone.
type Taken struct {
	Copied int // values that have been appended
	Apart  int // values that lie apart: Refs says where, and the processor has been asked for them
	Alone  int // keys that are not there, or whose values take more than a look into memory
	Refs   [Group]value.Ref
}

// AppendGroup appends the values of up to Group keys of one keyspace to dst and notes in ends where each of them ends, up to the first that is
// not in memory. It finds out about those that follow as long as they are of one kind, or of two in the order of Taken. The cache misses
// of the keys overlap: on data that the processor does not have near, it takes a fraction of the time of one Get after the other.
// The caller is inside an epoch section.
func (v *View) AppendGroup(dst []byte, ends []int, t *Taken, keyspace uint32, keys [][]byte, seq uint64) []byte {
	var places [Group]place
	unsettled := v.locate(places[:len(keys)], keyspace, keys, seq)
	t.Copied, t.Apart, t.Alone = 0, 0, 0
	for i := range keys {
		p := &places[i]
		var r record.Record
		var found bool
		if unsettled {
			r, found = v.unsettled(keyspace, p.hash, keys[i], seq)
		}
		if !found && p.resident {
			r, found = p.page.Get(p.hash, keys[i])
		}
		found = found && r.Expiry == 0
		switch {
		case found && r.Kind == record.Inline:
			if t.Apart+t.Alone > 0 {
				return dst
			}
			dst = append(dst, r.Value...)
			ends[i] = len(dst)
			t.Copied++
		case found && r.Kind == record.Apart:
			if t.Alone > 0 || !v.askApart(t, r.Value) {
				return dst
			}
		default:
			t.Alone++
		}
	}
	return dst
}

// askApart notes a reference to a value that lies apart. It reports whether that can be read.
func (v *View) askApart(t *Taken, raw []byte) bool {
	ref, err := value.DecodeRef(raw)
	if err != nil {
		t.Alone++ // who reads it says why
		return false
	}
	v.env.Store.PrefetchAll(ref.Pointer)
	t.Refs[t.Apart] = ref
	t.Apart++
	return true
}

// place is where a key of a group lies if it has settled.
type place struct {
	hash     uint64
	page     page.Page
	resident bool // page is in memory
}

// locate finds the places of the keys, and loads what look-ups of them read. It reports whether memtables have to be asked.
func (v *View) locate(places []place, keyspace uint32, keys [][]byte, seq uint64) (unsettled bool) {
	var hashes [Group]uint64
	for i := range keys {
		hashes[i] = record.Hash(keyspace, keys[i])
		places[i].hash = hashes[i]
	}
	for _, t := range v.Tables {
		if !t.blank(seq) {
			unsettled = true
			keep(t.Prefetch(hashes[:len(keys)]))
		}
	}
	root := v.Root(keyspace)
	if root == nil {
		return unsettled
	}
	for i := range places {
		places[i].page, places[i].resident = root.Leaf(keys[i])
	}
	touch(places)
	return unsettled
}

// FindGroup is Get for up to Group keys of one keyspace, most of which are likely not to be there: what has settled is asked by way of
// its filters. The caller is inside an epoch section, and the answers are valid until it leaves it. There are as many answers as keys.
func (v *View) FindGroup(answers []Answer, keyspace uint32, keys [][]byte, seq uint64) {
	var left [Group]sought
	rest := v.groupUnsettled(left[:0], answers, keyspace, keys, seq)
	root := v.Root(keyspace)
	if root == nil {
		return // absent is what an answer says that nobody gave
	}
	for i := range rest {
		a := &answers[rest[i].at]
		a.Record, _, a.Status = root.Get(rest[i].hash, keys[rest[i].at])
	}
}

// groupUnsettled asks the memtables for each key, and appends those to left that they do not know.
func (v *View) groupUnsettled(left []sought, answers []Answer, keyspace uint32, keys [][]byte, seq uint64) []sought {
	var hashes [Group]uint64
	for i := range keys {
		hashes[i] = record.Hash(keyspace, keys[i])
	}
	for _, t := range v.Tables {
		if !t.blank(seq) {
			keep(t.Prefetch(hashes[:len(keys)]))
		}
	}
	for i := range keys {
		answers[i] = Answer{}
		r, found := v.unsettled(keyspace, hashes[i], keys[i], seq)
		switch {
		case !found:
			left = append(left, sought{at: i, hash: hashes[i]})
		case r.Kind != record.Tombstone:
			answers[i] = Answer{r, layout.Found}
		}
	}
	return left
}

// touch loads what the look-ups read, such that their cache misses overlap.
func touch(places []place) {
	var sum byte
	for i := range places {
		if p := &places[i]; p.resident {
			sum += p.page.Touch(p.hash)
		}
	}
	for i := range places {
		if p := &places[i]; p.resident {
			sum += p.page.TouchEntry(p.hash)
		}
	}
	keep(uint64(sum))
}

// keep makes sure that loads are made whose sum it gets.
//
//go:noinline
func keep(uint64) {}
