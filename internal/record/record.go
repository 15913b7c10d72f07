// Package record defines what one key holds, in the form in which every layer of the engine passes it on: a tombstone, a
// value that lies beside its key, or a reference to a value that lies apart from it, with the moment at which it expires.
//
// It holds no state and does no I/O. Slices in a Record belong to whoever made it; the layer that hands one out says until
// when it is valid.
package record

import "github.com/zeebo/xxh3"

// Kind says how to read a Record's Value. The numbers are on disk: never change them.
type Kind uint8

const (
	// Tombstone marks a key as deleted. It exists in logs, memtables and delta blobs, never in a settled leaf.
	Tombstone Kind = 0
	// Inline means that Value is the value itself.
	Inline Kind = 1
	// Apart means that Value is an encoded reference to a value blob (package value).
	Apart Kind = 2
)

// Limits on what one record may hold, in bytes.
const (
	MaxKey    = 64 << 10
	MaxInline = 64 << 10
)

// Record is what one key holds.
type Record struct {
	Kind   Kind
	Expiry uint64 // Unix milliseconds from which on the record is invisible; 0: never
	Value  []byte
}

// Pair is a key and its value, for walks that hand on several at once.
type Pair struct{ Key, Value []byte }

// Expired reports whether the record is invisible at the moment now (Unix milliseconds).
func (r Record) Expired(now uint64) bool { return r.Expiry != 0 && r.Expiry <= now }

// Sooner returns the earlier of two moments of which 0 is never, as expiries are.
func Sooner(a, b uint64) uint64 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// Hash is the hash of a key in its keyspace that the memtable index, the resident pages and the filters share, so that a
// look-up computes it once. Filters keep it on disk: never change it.
func Hash(keyspace uint32, key []byte) uint64 { return xxh3.HashSeed(key, uint64(keyspace)) }
