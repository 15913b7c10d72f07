package workload

import (
	"encoding/binary"
	"fmt"
)

// Making 100 KB word by word takes about as long as the quickest engine takes to overwrite as much, and would be half of its cell. So a
// long value is a head that tells which record and version it is, and behind it a piece of noise that is made once: copying that
// costs a tenth. The piece begins at one of many places, so that values which got mixed up do not fit together.
const (
	longValue  = 4096 // values above this length are long
	longHead   = 16
	longPlaces = 4096
	// longStep: one word in so many is checked, and the last: reading all of a value costs about as much as an engine needs to copy it.
	// A step of 31 words meets every sector.
	longStep = 31
)

// noiseAt returns what is behind the head of a long value.
func (d *Data) noiseAt(s uint64) []byte {
	d.longOnce.Do(func() {
		words := (d.ValueBytes-longHead)/8 + 1 + longPlaces
		d.noise = make([]byte, 0, 8*words)
		for k := range words {
			d.noise = binary.LittleEndian.AppendUint64(d.noise, word(uint64(k+1)*golden))
		}
	})
	at := 8 * int(s%longPlaces)
	return d.noise[at : at+d.ValueBytes-longHead]
}

// noiseFrom is what the words of noiseAt are made from: word k of it is word(noiseFrom(s) + golden*k).
func noiseFrom(s uint64) uint64 { return (s%longPlaces + 1) * golden }

// long puts version v of the long value of record i into dst[:0].
func (d *Data) long(dst []byte, i, v uint64) []byte {
	dst = grow(dst, d.ValueBytes)
	s := stream(i, v)
	binary.LittleEndian.PutUint64(dst, v)
	binary.LittleEndian.PutUint64(dst[8:], s)
	copy(dst[longHead:], d.noiseAt(s))
	return dst
}

// checkLong says what is wrong with a long value of record i.
func (d *Data) checkLong(value []byte, i uint64) error {
	s := stream(i, binary.LittleEndian.Uint64(value))
	if binary.LittleEndian.Uint64(value[8:]) != s {
		return fmt.Errorf("record %d: wrong value at byte 8", i)
	}
	got, want := value[longHead:], d.noiseAt(s)
	last := len(want) - 8
	for at := 0; at < last; at += 8 * longStep {
		if binary.LittleEndian.Uint64(got[at:]) != binary.LittleEndian.Uint64(want[at:]) {
			return fmt.Errorf("record %d: wrong value at byte %d", i, longHead+at)
		}
	}
	if binary.LittleEndian.Uint64(got[last:]) != binary.LittleEndian.Uint64(want[last:]) {
		return fmt.Errorf("record %d: wrong value at byte %d", i, longHead+last)
	}
	return nil
}
