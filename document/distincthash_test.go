package document

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/order"
)

// colliding is binaries whose hashes with the seed 0 are the same. Of 32 bytes the hash multiplies the third eighth, beside a constant and
// the seed, with the last one: where the one factor is 0, the other does not count.
func colliding(n int) []bsoncore.Value {
	const constant = 0xdb979083e96dd4de // of the hash, for the place
	hi, lo := bits.Mul64(uint64(order.ClassOf(bsoncore.TypeBinary))^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	list := make([]bsoncore.Value, n)
	for i := range list {
		data := binary.LittleEndian.AppendUint32(nil, 27)
		data = append(data, make([]byte, 12)...)
		data = binary.LittleEndian.AppendUint64(data, constant+(hi^lo))
		list[i] = bsoncore.Value{Type: bsoncore.TypeBinary, Data: binary.LittleEndian.AppendUint64(data, uint64(i))}
	}
	return list
}

// TestNobodyKnowsWhichValuesOfADistinctCollide: values that were made to have one hash are compared each with each, which takes hours where
// they fill a document.
func TestNobodyKnowsWhichValuesOfADistinctCollide(t *testing.T) {
	values := colliding(100)
	for _, v := range values {
		if order.Hash(0, v, nil) != order.Hash(0, values[0], nil) {
			t.Fatal("the values do not collide: they are made for another hash")
		}
	}
	set := newValueSet(nil)
	for range 2 {
		for _, v := range values {
			set.add(v)
		}
	}
	if len(set.list) != len(values) || len(set.last) < len(values)/2 {
		t.Errorf("%d values, of %d hashes", len(set.list), len(set.last))
	}
}
