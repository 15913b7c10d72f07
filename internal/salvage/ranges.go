package salvage

import (
	"bytes"
	"sort"

	"github.com/pandodb/pando/internal/record"
)

// mostLostBytes bounds the memory for the bounds of lost stretches in one keyspace.
const mostLostBytes = 16 << 20

// stretch is the keys in [lo, hi); nil is open.
type stretch struct{ lo, hi []byte }

// hashStretch is the keys whose hashes lie from from to to, which is included.
type hashStretch struct{ from, to uint64 }

// lostKeys is the set of keys of one keyspace that its root does not give: sorted, disjoint stretches, of keys in a tree and of hashes in a
// hash table.
type lostKeys struct {
	all      bool
	list     []stretch
	hashes   []hashStretch
	keyspace uint32 // of hashes
	bytes    int
}

// add appends a stretch behind those that are there. It reports whether there was room.
func (k *lostKeys) add(lo, hi []byte) bool {
	if n := len(k.list); n > 0 && k.list[n-1].hi != nil && bytes.Equal(k.list[n-1].hi, lo) {
		k.list[n-1].hi = bytes.Clone(hi)
		return true
	}
	if k.bytes > mostLostBytes {
		return false
	}
	const perStretch = 64
	k.bytes += len(lo) + len(hi) + perStretch
	k.list = append(k.list, stretch{bytes.Clone(lo), bytes.Clone(hi)})
	return true
}

// addHashes is add for a stretch of hashes.
func (k *lostKeys) addHashes(from, to uint64) bool {
	if n := len(k.hashes); n > 0 {
		if last := &k.hashes[n-1]; from <= last.to || from-1 == last.to {
			last.to = max(last.to, to)
			return true
		}
	}
	if k.bytes > mostLostBytes {
		return false
	}
	const perStretch = 16
	k.bytes += perStretch
	k.hashes = append(k.hashes, hashStretch{from, to})
	return true
}

func (k *lostKeys) empty() bool {
	return k == nil || !k.all && len(k.list) == 0 && len(k.hashes) == 0
}

// from returns the index of the first stretch that does not end before or at key.
func (k *lostKeys) from(key []byte) int {
	lo, hi := 0, len(k.list)
	for lo < hi {
		mid := (lo + hi) / 2
		if end := k.list[mid].hi; end != nil && bytes.Compare(end, key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// has reports whether key is in the set.
func (k *lostKeys) has(key []byte) bool {
	if k == nil || k.all {
		return k != nil
	}
	if len(k.hashes) > 0 {
		hash := record.Hash(k.keyspace, key)
		i := sort.Search(len(k.hashes), func(i int) bool { return k.hashes[i].to >= hash })
		return i < len(k.hashes) && k.hashes[i].from <= hash
	}
	i := k.from(key)
	return i < len(k.list) && bytes.Compare(k.list[i].lo, key) <= 0
}

// within calls fn for the parts of [lo, hi) that are in the set. Those of hashes have none that could be named.
func (k *lostKeys) within(lo, hi []byte, fn func(lo, hi []byte) error) error {
	if k == nil || hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	if k.all {
		return fn(lo, hi)
	}
	for _, s := range k.list[k.from(lo):] {
		if hi != nil && bytes.Compare(s.lo, hi) >= 0 {
			return nil
		}
		from, to := s.lo, s.hi
		if bytes.Compare(lo, from) > 0 {
			from = lo
		}
		if to == nil || hi != nil && bytes.Compare(hi, to) < 0 {
			to = hi
		}
		if err := fn(from, to); err != nil {
			return err
		}
	}
	return nil
}

// successor is the key that follows on key, as the end of a stretch: nil where none does.
func successor(key []byte) []byte {
	if len(key) < record.MaxKey {
		return append(bytes.Clone(key), 0)
	}
	// None can be longer: the next one is higher in the last byte that is not the highest.
	for n := len(key); n > 0; n-- {
		if last := key[n-1]; last < 0xff {
			return append(bytes.Clone(key[:n-1]), last+1)
		}
	}
	return nil
}
