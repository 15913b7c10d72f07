package layouttest

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
)

// Key returns a random key out of a few hundred, of mixed shapes: some share long prefixes, some are prefixes of others, one
// is empty.
func (w *World) Key() []byte {
	n := w.Rand.IntN(250)
	switch w.Rand.IntN(8) {
	case 0:
		return []byte(fmt.Sprintf("common/prefix/of/some/length/%03d", n))
	case 1:
		return bytes.Repeat([]byte{'a'}, n%40)
	case 2:
		return []byte{0, byte(n)}
	case 3:
		return []byte{0xff, 0xff, byte(n), 0}
	}
	return []byte(fmt.Sprintf("k%05d", n*37))
}

// Bounds returns a random range, open at either end now and then, sometimes empty.
func (w *World) Bounds() (lo, hi []byte) {
	lo, hi = w.Key(), w.Key()
	if w.Rand.IntN(12) != 0 && bytes.Compare(lo, hi) > 0 {
		lo, hi = hi, lo
	}
	if w.Rand.IntN(6) == 0 {
		lo = nil
	}
	if w.Rand.IntN(6) == 0 {
		hi = nil
	}
	return lo, hi
}

// Record returns a random record.
func (w *World) Record() record.Record {
	var r record.Record
	switch n := w.Rand.IntN(20); {
	case n == 0:
		r = w.Apart(w.bytes(w.Rand.IntN(100)))
	case n < 3:
		r = record.Record{Kind: record.Inline, Value: w.bytes(w.Rand.IntN(300))}
	default:
		r = record.Record{Kind: record.Inline, Value: w.bytes(w.Rand.IntN(20))}
	}
	if w.Rand.IntN(10) == 0 {
		r.Expiry = w.Now + uint64(w.Rand.IntN(40)) + 1
	}
	return r
}

func (w *World) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.Rand.Uint32())
	}
	return b
}

// Changes returns n random changes, of which about one in deletes removes a key.
func (w *World) Changes(n, deletes int) []layout.Change {
	seen := map[string]bool{} // a value apart that no change refers to would upset the audit
	var changes []layout.Change
	for range n {
		c := layout.Change{Key: w.Key()}
		if seen[string(c.Key)] {
			continue
		}
		seen[string(c.Key)] = true
		if w.Rand.IntN(deletes) != 0 {
			c.Record = w.Record()
		}
		changes = append(changes, c)
	}
	return changes
}

// Ranges returns up to n sorted, disjoint ranges.
func (w *World) Ranges(n int) []layout.Range {
	var keys [][]byte
	for range 2 * n {
		keys = append(keys, w.Key())
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	var ranges []layout.Range
	for i := 0; i+1 < len(keys); i += 2 {
		ranges = append(ranges, layout.Range{Lo: keys[i], Hi: keys[i+1]})
	}
	if len(ranges) > 0 && w.Rand.IntN(8) == 0 {
		ranges[0].Lo = nil
	}
	if len(ranges) > 0 && w.Rand.IntN(8) == 0 {
		ranges[len(ranges)-1].Hi = nil
	}
	return ranges
}
