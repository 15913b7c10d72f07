package workload

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
)

// Data generates the records of a workload: record i of a set has the same key in every engine, and a value that tells which
// version of which record it is, so that every value read can be checked without keeping anything in memory.
type Data struct {
	KeyBytes   int
	ValueBytes int
	Ordered    bool // keys grow with i; otherwise they are a random function of it
	JSON       bool // values are small documents that compress as documents do; ValueBytes is about their length

	longOnce sync.Once
	noise    []byte // what long values are made of
}

// The multipliers of splitmix64 (Steele, Lea, Flood 2014).
const (
	golden = 0x9e3779b97f4a7c15
	mulA   = 0xbf58476d1ce4e5b9
	mulB   = 0x94d049bb133111eb
)

// mix is the finaliser of splitmix64: a bijection.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * mulA
	x = (x ^ x>>27) * mulB
	return x ^ x>>31
}

// Key puts the key of record i into dst[:0].
func (d *Data) Key(dst []byte, i uint64) []byte { return d.key(dst, i, 0) }

// Missing puts a key that no record has, and that lies between those that are there, into dst[:0].
func (d *Data) Missing(dst []byte, i uint64) []byte { return d.key(dst, i, 1) }

func (d *Data) key(dst []byte, i, salt uint64) []byte {
	head := i
	if !d.Ordered {
		head = mix(i + golden)
	}
	dst = binary.BigEndian.AppendUint64(dst[:0], head)
	tail := i*2 + salt
	for len(dst) < d.KeyBytes {
		dst = binary.BigEndian.AppendUint64(dst, mix(tail^golden))
		tail += golden
	}
	return dst[:d.KeyBytes]
}

// Value puts version v of the value of record i into dst[:0]. Values of eight bytes or more carry v.
func (d *Data) Value(dst []byte, i, v uint64) []byte {
	if d.JSON {
		return d.document(dst, i, v)
	}
	n := d.ValueBytes
	if n > longValue {
		return d.long(dst, i, v)
	}
	dst = grow(dst, n+8)
	binary.LittleEndian.PutUint64(dst, v)
	s := stream(i, v)
	for at := 8; at < n; at += 8 {
		s += golden
		binary.LittleEndian.PutUint64(dst[at:], word(s))
	}
	return dst[:n]
}

// Check says what is wrong with a value of record i. It accepts every version that was ever written.
func (d *Data) Check(value []byte, i uint64) error {
	if d.JSON {
		return d.checkDocument(value, i)
	}
	if len(value) != d.ValueBytes {
		return fmt.Errorf("record %d: value of %d bytes, want %d", i, len(value), d.ValueBytes)
	}
	if len(value) < 8 {
		return nil
	}
	if len(value) > longValue {
		return d.checkLong(value, i)
	}
	if err := checkWords(value, i, 8, stream(i, binary.LittleEndian.Uint64(value))+golden, 1); err != nil {
		return err
	}
	return checkTail(value, i)
}

// checkWords checks one word in step, from byte at on, which is made from s; those that follow are made from s and multiples of golden.
func checkWords(value []byte, i uint64, at int, s uint64, step int) error {
	for stride := uint64(step) * golden; at+8 <= len(value); at, s = at+8*step, s+stride {
		if binary.LittleEndian.Uint64(value[at:]) != word(s) {
			return fmt.Errorf("record %d: wrong value at byte %d", i, at)
		}
	}
	return nil
}

// lineWords is how many words a line of the processor's caches has.
const lineWords = 8

// CheckLines says what is wrong with a value of record i, going by one word of each line that it takes in the processor's caches: all of
// the value has to come from memory, as for a program that uses it, and little is computed.
func (d *Data) CheckLines(value []byte, i uint64) error {
	if d.JSON || len(value) != d.ValueBytes || len(value) < 8 {
		return d.Check(value, i)
	}
	s, head := stream(i, binary.LittleEndian.Uint64(value)), 0
	if len(value) > longValue {
		if binary.LittleEndian.Uint64(value[8:]) != s {
			return fmt.Errorf("record %d: wrong value at byte 8", i)
		}
		s, head = noiseFrom(s), longHead
	}
	return checkWords(value, i, head+8, s+golden, lineWords)
}

// checkTail checks the last bytes, those that do not make a whole word included.
func checkTail(value []byte, i uint64) error {
	at := len(value) &^ 7
	if at == len(value) || at == 0 {
		return nil
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], word(stream(i, binary.LittleEndian.Uint64(value))+golden*uint64(at/8)))
	for k, b := range value[at:] {
		if b != last[k] {
			return fmt.Errorf("record %d: wrong value at byte %d", i, at+k)
		}
	}
	return nil
}

// Version returns the version that a value carries.
func Version(value []byte) uint64 {
	if len(value) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(value)
}

// Index returns the record that has the key, from its first eight bytes.
func (d *Data) Index(key []byte) uint64 {
	head := binary.BigEndian.Uint64(key)
	if d.Ordered {
		return head
	}
	return unmix(head) - golden
}

// Bytes is the size of n records.
func (d *Data) Bytes(n int) int64 { return int64(n) * int64(d.KeyBytes+d.ValueBytes) }

func stream(i, v uint64) uint64 { return mix(i*golden ^ bits.RotateLeft64(v, 32)) }

// word is a weak but incompressible generator: a multiplication a word, so that making values costs little beside storing them.
func word(s uint64) uint64 {
	s *= mulA
	return s ^ s>>29
}

// unmix inverts mix.
func unmix(x uint64) uint64 {
	x = x ^ x>>31 ^ x>>62
	x *= 0x319642b2d24d8ec3
	x = x ^ x>>27 ^ x>>54
	x *= 0x96de1b173f119089
	return x ^ x>>30 ^ x>>60
}

// grow returns dst with a length of n.
func grow(dst []byte, n int) []byte {
	if cap(dst) < n {
		return make([]byte, n)
	}
	return dst[:n]
}
