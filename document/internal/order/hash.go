package order

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
)

// Hash returns a hash such that equal values (as by Equal) have equal hashes. It is for tables in memory: it may change from version
// to version.
func Hash(seed uint64, v bsoncore.Value, c *collation.Collation) uint64 {
	cl := ClassOf(v.Type)
	seed = mix(seed, uint64(cl))
	switch cl {
	case ClassNumber:
		return hashNumber(seed, v)
	case ClassString:
		return hashString(seed, text(v.Data), c)
	case ClassObject:
		return hashElements(seed, v.Data, c, true)
	case ClassArray:
		return hashElements(seed, v.Data, c, false)
	case ClassCodeWithScope:
		s := scoped(v.Data)
		return hashElements(xxh3.HashSeed(s.code, seed), s.scope, nil, true)
	}
	return xxh3.HashSeed(v.Data, seed) // nothing else has two forms of one value
}

// mix spreads the bits of x, and makes them depend on the seed.
func mix(seed, x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x9e3779b97f4a7c15, seed^0xd6e8feb86659fd93)
	return hi ^ lo
}

func hashString(seed uint64, s []byte, c *collation.Collation) uint64 {
	if c == nil {
		return xxh3.HashSeed(s, seed)
	}
	var buf [256]byte
	return xxh3.HashSeed(c.AppendKey(buf[:0], string(s)), seed)
}

func hashElements(seed uint64, doc []byte, c *collation.Collation, names bool) uint64 {
	e := elementsOf(doc)
	for n := uint64(1); ; n++ {
		name, v, ok := e.next()
		if !ok {
			return mix(seed, n)
		}
		if names {
			seed = xxh3.HashSeed(name, seed)
		}
		seed = Hash(seed, v, c)
	}
}

// hashNumber hashes the int64 that has the value, else the double, else the decimal in lowest terms.
func hashNumber(seed uint64, v bsoncore.Value) uint64 {
	if i, ok := integer(v); ok {
		return mix(seed, uint64(i))
	}
	f, ok := doubleOf(v)
	if !ok {
		d := DecimalAt(v.Data)
		if i, ok := d.Int64(); ok {
			return mix(seed, uint64(i))
		}
		if f, ok = d.Float64(); !ok {
			return hashDecimal(seed, d.Reduce())
		}
	}
	switch {
	case f != f:
		return mix(seed, math.Float64bits(math.NaN())) // whatever its bits
	case f == math.Trunc(f) && f >= -twoTo63 && f < twoTo63:
		return mix(seed, uint64(int64(f)))
	}
	return mix(seed, math.Float64bits(f))
}

func doubleOf(v bsoncore.Value) (float64, bool) {
	if v.Type != bsoncore.TypeDouble {
		return 0, false
	}
	return doubleAt(v.Data), true
}

func hashDecimal(seed uint64, d Decimal) uint64 {
	var buf [25]byte
	binary.LittleEndian.PutUint64(buf[:], d.Lo)
	binary.LittleEndian.PutUint64(buf[8:], d.Hi)
	binary.LittleEndian.PutUint64(buf[16:], uint64(d.Exp))
	if d.Neg {
		buf[24] = 1
	}
	return xxh3.HashSeed(buf[:], seed)
}
