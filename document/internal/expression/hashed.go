package expression

import (
	"crypto/md5"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/number"
)

// evalHashedKey is $toHashedIndexKey.
func evalHashedKey(st *state, _ string, v bsoncore.Value) (bsoncore.Value, error) {
	if v.Type == 0 {
		v = null()
	}
	return st.number(number.Int64(HashedKey(v)))
}

// HashedKey is the number that a hashed index keeps for a value: the first eight bytes of the MD5 sum of a seed, the value's type
// and its bytes. All numbers are hashed as the int64 without their fraction, so that equal ones have equal hashes.
func HashedKey(v bsoncore.Value) int64 {
	sum := md5.Sum(appendHashed(binary.LittleEndian.AppendUint32(nil, 0), v, ""))
	return int64(binary.LittleEndian.Uint64(sum[:8]))
}

// appendHashed appends what is hashed of an element.
func appendHashed(dst []byte, v bsoncore.Value, name string) []byte {
	class := func(c int) []byte {
		return append(append(binary.LittleEndian.AppendUint32(dst, uint32(c)), name...), 0)
	}
	if n, ok := number.Of(v); ok {
		i, _ := n.Int64()
		return binary.LittleEndian.AppendUint64(class(10), uint64(i))
	}
	return append(class(int(v.Type)), v.Data...)
}
