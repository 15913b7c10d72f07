package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// population makes the key of row i. Those of different rows are different.
type population struct {
	name string
	most int // rows, where more would take too much room; 0 is no bound
	key  func(i int) []byte
}

var populations = []population{
	{"counter", 0, func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }},
	{"short", 0, func(i int) []byte { return bytes.TrimLeft(binary.BigEndian.AppendUint32(nil, uint32(i)), "\x00") }},
	{"random", 0, func(i int) []byte { return noise(uint64(i), 16) }},
	{"lowByteFirst", 0, func(i int) []byte { return binary.LittleEndian.AppendUint32([]byte("k"), uint32(i)) }},
	{"longPrefix", 0, func(i int) []byte { return fmt.Appendf(bytes.Repeat([]byte("prefix/"), 40), "%06d", i) }},
	{"severalPrefixes", 0, func(i int) []byte {
		return fmt.Appendf(bytes.Repeat([]byte{byte('a' + i%5)}, 100*(i%5)), "%06d", i)
	}},
	{"prefixesOfOneAnother", 600, func(i int) []byte { return bytes.Repeat([]byte("p"), i) }},
	{"bothEnds", 0, func(i int) []byte { // almost all that they have in common, at the first byte and at the last
		return fmt.Appendf([]byte{byte(i % 2 * 255)}, "%s%05d", strings.Repeat("=", 200), i/2)
	}},
	{"zerosAndOnes", 0, func(i int) []byte { // the bytes that bounds are made of
		return append([]byte(strings.NewReplacer("0", "\x00", "1", "\xff").Replace(fmt.Sprintf("%b", i+1))), 0)
	}},
	{"allLengths", 60, func(i int) []byte { return fmt.Appendf(bytes.Repeat([]byte("l"), min(1<<(i%17), 65530)), "%05d", i)[:] }},
	{"huge", 24, func(i int) []byte { return fmt.Appendf(bytes.Repeat([]byte("h"), 65536-4), "%04d", i) }},
	{"pages", 200, func(i int) []byte { return fmt.Appendf(bytes.Repeat([]byte{byte(i)}, 4000+i%200), "%04d", i) }},
}

// noise is n bytes that nothing can compress, and always the same for one seed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, 0, n+8)
	for x := seed*0x9e3779b97f4a7c15 + 1; len(b) < n; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b = binary.LittleEndian.AppendUint64(b, x*0x2545f4914f6cdd1d)
	}
	return b[:n]
}

// measure makes the lengths of values; mean is about what they come to.
type measure struct {
	name   string
	mean   int
	length func(w *world) int
}

var measures = []measure{
	{"none", 1, func(*world) int { return 0 }},
	{"tiny", 12, func(w *world) int { return w.rng.IntN(20) }},
	{"row", 150, func(w *world) int { return 80 + w.rng.IntN(150) }},
	{"threshold", 1000, func(w *world) int { return max(0, w.opts.ValueThreshold-1+w.rng.IntN(3)) }},
	{"leaf", 8200, func(w *world) int { return 8<<10 - 60 + w.rng.IntN(120) }},
	{"deltas", 700, func(w *world) int { return 300 + w.rng.IntN(700) }},
	{"chunk", 66_000, func(w *world) int { return 64<<10 - 100 + w.rng.IntN(200) }},
	{"segment", 300_000, func(w *world) int { return 256<<10 - 100 + w.rng.IntN(200) }},
	{"large", 1 << 20, func(w *world) int { return 1<<20 - 2 + w.rng.IntN(4) }},
	{"mixed", 2500, func(w *world) int { return 1 << w.rng.IntN(15) }},
	{"bigOrSmall", 3000, func(w *world) int { return w.rng.IntN(2) * w.rng.IntN(12_000) }},
}

// texture fills a value of n bytes.
type texture struct {
	name string
	fill func(w *world, n int) []byte
}

var textures = []texture{
	{"noise", func(w *world, n int) []byte { return noise(w.rng.Uint64(), n) }},
	{"runs", func(w *world, n int) []byte { return bytes.Repeat([]byte{byte(w.rng.IntN(256))}, n) }},
	{"columns", func(w *world, n int) []byte {
		b := fmt.Appendf(nil, `{"id":%d,"name":"user %d","on":%t,"score":%g,"pad":"`, w.rng.IntN(1e6), w.rng.IntN(100), w.rng.IntN(2) == 0, w.rng.Float64())
		for len(b) < n {
			b = append(b, " lorem ipsum dolor"...)
		}
		return b[:n]
	}},
	{"columnsOfBSON", func(w *world, n int) []byte { // what package document stores: a length, and fields
		b := binary.LittleEndian.AppendUint32(nil, uint32(n))
		for len(b) < n {
			b = append(b, "\x10count\x00"...)
			b = binary.LittleEndian.AppendUint32(b, uint32(w.rng.IntN(1000)))
			b = append(b, "\x02word\x00\x06\x00\x00\x00hello\x00"...)
		}
		return b[:n]
	}},
}
