package record

import (
	"encoding/binary"
	"testing"
)

// collidingKey returns one of as many keys as one likes that have the same hash in the keyspace with a number. XXH3 multiplies, in keys of
// 17 to 32 bytes, the first eight with the next eight, each after something was mixed in: a factor of zero hides the other.
func collidingKey(keyspace uint32, i int) []byte {
	const firstSecret = 0xbe4ba423396cfeb8 // the first eight bytes of the secret in the specification of XXH3
	key := make([]byte, 32)
	binary.LittleEndian.PutUint64(key, firstSecret+uint64(keyspace))
	binary.LittleEndian.PutUint64(key[8:], uint64(i))
	return key
}

// TestCollidingKeysAreThoseOfOneKeyspace: keys that were made to have one hash have it in the keyspace with the number that they were made
// for, and different ones in others. So nobody makes them who does not know the number.
func TestCollidingKeysAreThoseOfOneKeyspace(t *testing.T) {
	const number, keys = 2_500_000, 1000
	first := Hash(number, collidingKey(number, 0))
	elsewhere := map[uint64]bool{}
	for i := range keys {
		key := collidingKey(number, i)
		if got := Hash(number, key); got != first {
			t.Fatalf("key %d has the hash %x, the first one %x: they are not made well", i, got, first)
		}
		elsewhere[Hash(number+1, key)] = true
	}
	if len(elsewhere) != keys {
		t.Errorf("%d keys have %d hashes in the next keyspace", keys, len(elsewhere))
	}
}
