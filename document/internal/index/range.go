package index

import (
	"github.com/zeebo/xxh3"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/keyenc"
)

// Space returns how the values of component i are encoded.
func (d *Definition) Space(i int) Space {
	return Space{Collation: d.Collation, Hashed: d.Components[i].Kind == Hashed}
}

// AppendValue appends a value as the entry keys have it in component i: in its direction, with the collation, hashed. Missing is null,
// and what stands for an array is up to the caller.
func (d *Definition) AppendValue(dst []byte, i int, v bsoncore.Value) []byte {
	if v.Type == 0 {
		v.Type = bsoncore.TypeNull
	}
	switch d.Components[i].Kind {
	case Hashed:
		return appendHash(dst, v, d.Collation)
	case Descending:
		return keyenc.Append(dst, v, true, d.Collation)
	}
	return keyenc.Append(dst, v, false, d.Collation)
}

// AppendPath appends the path that stands before the value of a wildcard component: ascending, without the collation.
func (d *Definition) AppendPath(dst []byte, path string) []byte {
	return keyenc.AppendString(dst, path)
}

// PrefixRange returns the range [lo, hi) of all entry keys that begin with prefix. hi is nil, for no end, when prefix is empty.
func PrefixRange(prefix []byte) (lo, hi []byte) {
	return prefix, keyenc.End(nil, prefix)
}

// appendHash appends the key of a hashed component: the XXH3-64 of the value's encoding, encoded as an int64.
// Equal values have equal hashes.
func appendHash(dst []byte, v bsoncore.Value, c *collation.Collation) []byte {
	n := len(dst)
	dst = keyenc.Append(dst, v, false, c)
	h := xxh3.Hash(dst[n:])
	return keyenc.AppendInt(dst[:n], int64(h))
}
