package document

import (
	"bytes"
	"hash/maphash"

	"github.com/pandodb/pando"
)

// probe looks for the unique entries of a part, and, with ids, for its _ids. While no other writer is at work, and this one has not
// begun, what anybody can read is what the transaction reads, and several goroutines may. What is not clear is left to the check of the
// item.
func (b *batch) probe(p *part, ids bool) {
	var r pando.Reader
	if r.Open(b.c.store.db) != nil {
		return
	}
	defer r.Close()
	if ids {
		q := probes{r: &r, ks: b.c.records}
		for i := range p.items {
			if it := &p.items[i]; !it.fresh {
				q.add(p.bytes(it.key), &it.free)
			}
		}
		q.ask()
	}
	for n, x := range b.indexes {
		if !x.def.Unique {
			continue
		}
		q := probes{r: &r, ks: x.ks}
		for i := range p.entries {
			if e := &p.entries[i]; e.index == n {
				q.add(p.bytes(e.key), &e.free)
			}
		}
		q.ask()
	}
}

// probes is keys that are asked for together.
type probes struct {
	r    *pando.Reader
	ks   *pando.Keyspace
	n    int
	keys [64][]byte
	free [64]*bool // where to note of each that it is not there
}

func (q *probes) add(key []byte, free *bool) {
	q.keys[q.n], q.free[q.n] = key, free
	if q.n++; q.n == len(q.keys) {
		q.ask()
	}
}

// ask asks for the keys that have come together. An error is met again when they are asked for one by one.
func (q *probes) ask() {
	var absent [len(q.keys)]bool
	if q.r.Absent(absent[:], q.ks, q.keys[:q.n]) == nil {
		for i, free := range q.free[:q.n] {
			*free = absent[i]
		}
	}
	q.n = 0
}

// hash is the hash of a key in the sets of the batch.
func (b *batch) hash(key []byte) uint32 { return uint32(maphash.Bytes(b.seed, key) >> 32) }

// keySet is a set of keys that lie in the arenas of a batch's parts: a table of hashes with open addressing. nil is a set of keys that
// need not be remembered, as none comes twice.
type keySet struct {
	b     *batch
	slots []uint64 // a hash above 1 + the number of a key; 0: free
	keys  []place
}

// place is where a key is.
type place struct {
	part int
	key  span
}

// newKeySet makes a set for n keys.
func newKeySet(b *batch, n int) *keySet {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return &keySet{b: b, slots: make([]uint64, size), keys: make([]place, 0, n)}
}

// slot returns where a key is, or belongs.
func (s *keySet) slot(key []byte, hash uint32) *uint64 {
	for i := int(hash); ; i++ {
		at := &s.slots[i&(len(s.slots)-1)]
		if *at == 0 {
			return at
		}
		if uint32(*at>>32) != hash {
			continue
		}
		if k := s.keys[uint32(*at)-1]; bytes.Equal(s.b.parts[k.part].bytes(k.key), key) {
			return at
		}
	}
}

func (s *keySet) has(key []byte, hash uint32) bool { return s != nil && *s.slot(key, hash) != 0 }

// add puts a key of a part in. There must not be more of them than the set was made for.
func (s *keySet) add(p *part, key span, hash uint32) {
	if s == nil {
		return
	}
	if at := s.slot(p.bytes(key), hash); *at == 0 {
		s.keys = append(s.keys, place{p.number, key})
		*at = uint64(hash)<<32 | uint64(len(s.keys))
	}
}
