// Package keyenc encodes BSON values as bytes whose order is MongoDB's comparison order, for keys of indexes and of _id.
package keyenc

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/order"
)

// Append appends the encoding of v: for any a, b: bytes.Compare(enc(a), enc(b)) == order.Compare(a, b), equal values have equal
// encodings, no encoding is a prefix of another (so encodings concatenate to compound keys). With descending all bytes are
// inverted. Strings go through the collation when there is one.
func Append(dst []byte, v bsoncore.Value, descending bool, c *collation.Collation) []byte {
	panic("skeleton")
}

// Exact reports whether Decode gives v back byte for byte: ints and doubles, -0 and NaN, and decimals share an encoding, and a
// collation loses the string.
func Exact(v bsoncore.Value, c *collation.Collation) bool { panic("skeleton") }

// Decode returns the value of which the encoding begins src, and the rest. dst is where bytes of the value are appended.
func Decode(dst, src []byte, descending bool) (v bsoncore.Value, grown, rest []byte, err error) {
	panic("skeleton")
}

// Skip returns what follows the first encoded value of src.
func Skip(src []byte, descending bool) (rest []byte, err error) { panic("skeleton") }

// AppendClassStart appends what no value of class cl sorts below, and no value of a lower class above (in the direction).
func AppendClassStart(dst []byte, cl order.Class, descending bool) []byte { panic("skeleton") }

// AppendClassEnd appends what every value of class cl sorts below, and every one of a higher class above (in the direction).
func AppendClassEnd(dst []byte, cl order.Class, descending bool) []byte { panic("skeleton") }

// AppendString appends what Append appends for a string, without a collation and ascending.
func AppendString(dst []byte, s string) []byte { panic("skeleton") }

// End appends the end of the range of all keys that begin with prefix: the lowest byte string above them. It returns nil when there
// is none. dst may be prefix[:0].
func End(dst, prefix []byte) []byte {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xff {
		n--
	}
	if n == 0 {
		return nil
	}
	dst = append(dst, prefix[:n]...)
	dst[len(dst)-1]++
	return dst
}
