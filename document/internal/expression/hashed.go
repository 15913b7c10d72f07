package expression

import (
	"crypto/md5"
	"encoding/binary"
	"math"

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

// HashedKey is the number that a hashed index keeps for a value: the first eight bytes of the MD5 sum of a seed, which is zero, and
// of the value's class and bytes. A number is hashed as the int64 without its fraction, so that equal numbers have equal hashes.
func HashedKey(v bsoncore.Value) int64 {
	sum := md5.Sum(appendHashed(binary.LittleEndian.AppendUint32(nil, 0), v, nil))
	return int64(binary.LittleEndian.Uint64(sum[:8]))
}

// appendHashed appends what is hashed of a value: the class, the name with its zero byte if it is a field, and the bytes; of
// documents and arrays the elements, and a class 0 at the end.
func appendHashed(dst []byte, v bsoncore.Value, name []byte) []byte {
	dst = append(binary.LittleEndian.AppendUint32(dst, uint32(hashedClass(v.Type))), name...)
	if n, ok := number.Of(v); ok {
		return binary.LittleEndian.AppendUint64(dst, uint64(hashedNumber(n, v.Type)))
	}
	if !isObject(v) && !isArray(v) {
		return append(dst, v.Data...)
	}
	it := elementsOf(v.Data)
	for {
		key, element, ok := it.next()
		if !ok {
			return binary.LittleEndian.AppendUint32(dst, 0)
		}
		dst = appendHashed(dst, element, append(key[:len(key):len(key)], 0))
	}
}

// hashedNumber is the int64 that is hashed of a number: a double loses its fraction, a decimal is rounded, and 2 to the 63rd as a double
// overflows, where what is larger becomes the largest.
func hashedNumber(n number.Number, t bsoncore.Type) int64 {
	if t == bsoncore.TypeDecimal128 {
		n = number.FromDecimal(n.Decimal().Quantize(0, number.HalfEven))
	}
	if t == bsoncore.TypeDouble && n.Float64() == 1<<63 {
		return math.MinInt64
	}
	i, _ := n.Int64()
	return i
}

// hashedClass is the number of a type's class in hashes.
func hashedClass(t bsoncore.Type) int32 {
	switch t {
	case bsoncore.TypeMinKey:
		return -1
	case bsoncore.TypeNull:
		return 5
	case bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		return 10
	case bsoncore.TypeString, bsoncore.TypeSymbol:
		return 15
	case bsoncore.TypeEmbeddedDocument:
		return 20
	case bsoncore.TypeArray:
		return 25
	case bsoncore.TypeBinary:
		return 30
	case bsoncore.TypeObjectID:
		return 35
	case bsoncore.TypeBoolean:
		return 40
	case bsoncore.TypeDateTime:
		return 45
	case bsoncore.TypeTimestamp:
		return 47
	case bsoncore.TypeRegex:
		return 50
	case bsoncore.TypeDBPointer:
		return 55
	case bsoncore.TypeJavaScript:
		return 60
	case bsoncore.TypeCodeWithScope:
		return 65
	case bsoncore.TypeMaxKey:
		return 127
	}
	return 0
}
