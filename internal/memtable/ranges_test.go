package memtable

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// Many deletes of short ranges, and some of long ones: what is known of them is that of a list of all.
func TestManyRanges(t *testing.T) {
	table := newTable(t, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	type deleted struct{ lo, hi uint16 }
	var all []deleted
	key := func(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }
	want := func(n uint16, seq int) int {
		for s := min(seq, len(all)); s > 0; s-- {
			if d := all[s-1]; n >= d.lo && (d.hi == 0 || n < d.hi) {
				return s
			}
		}
		return 0
	}
	check := func(seq int) {
		t.Helper()
		for range 20 {
			n := uint16(rng.Uint32())
			if got := table.Covered(7, key(n), uint64(seq)); got != uint64(want(n, seq)) {
				t.Fatalf("key %d of %d deletes at %d: covered at %d, want %d", n, len(all), seq, got, want(n, seq))
			}
		}
		ranges := table.Ranges(7, uint64(seq))
		for i, r := range ranges {
			lo, hi := uint16(0), uint16(0) // 0: the end
			if len(r.Lo) > 0 {
				lo = binary.BigEndian.Uint16(r.Lo)
			}
			if r.Hi != nil {
				hi = binary.BigEndian.Uint16(r.Hi)
			}
			if r.Hi != nil && lo >= hi || want(lo, seq) != int(r.Seq) || want(hi-1, seq) != int(r.Seq) {
				t.Fatalf("%d deletes at %d: range %d of %d is %v", len(all), seq, i, len(ranges), r)
			}
			if i > 0 && (ranges[i-1].Hi == nil || bytes.Compare(ranges[i-1].Hi, r.Lo) > 0 ||
				bytes.Equal(ranges[i-1].Hi, r.Lo) && ranges[i-1].Seq == r.Seq) {
				t.Fatalf("%d deletes at %d: range %v after %v", len(all), seq, r, ranges[i-1])
			}
			if hi == 0 && i+1 < len(ranges) || hi != 0 && want(hi, seq) != 0 && (i+1 == len(ranges) || !bytes.Equal(ranges[i+1].Lo, r.Hi)) {
				t.Fatalf("%d deletes at %d: nothing follows %v", len(all), seq, r)
			}
		}
		if first := want(0, seq); first > 0 && (len(ranges) == 0 || len(ranges[0].Lo) > 0 && !bytes.Equal(ranges[0].Lo, key(0))) {
			t.Fatalf("%d deletes at %d: the first range is not there", len(all), seq)
		}
	}
	for i := range 2000 {
		d := deleted{lo: uint16(rng.Uint32())}
		d.hi = d.lo + 1 + uint16(rng.IntN(20))
		if i%50 == 0 {
			d.hi += uint16(rng.IntN(3000))
		}
		lo, hi := key(d.lo), key(d.hi)
		if d.hi <= d.lo {
			d.hi, hi = 0, nil
		}
		all = append(all, d)
		table.DeleteRange(7, lo, hi, uint64(i+1))
		if i%97 == 0 || i > 1990 {
			check(len(all))
			check(rng.IntN(len(all) + 1))
		}
	}
}

// What Ranges returns is made once for all who walk between two deletes.
func TestRangesAreShared(t *testing.T) {
	table := newTable(t, 1<<20)
	key := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	const n = 4000
	for i := range uint32(n) {
		table.DeleteRange(1, key(10*i), key(10*i+5), uint64(i+1))
	}
	if got := len(table.Ranges(1, always)); got != n {
		t.Fatalf("%d ranges, want %d", got, n)
	}
	if got := testing.AllocsPerRun(100, func() { table.Ranges(1, always) }); got != 0 {
		t.Errorf("Ranges: %v allocations", got)
	}
}

// A batch may have as many deletes as its bytes make room for. What each key and all ranges say is what the newest delete of each key does.
func TestRangesOfALargeBatch(t *testing.T) {
	const deletes, keys = 12_000, 1 << 16
	table := newTable(t, 1<<20)
	rng := rand.New(rand.NewPCG(3, 4))
	key := func(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
	var newest [keys]uint64
	for i := range deletes {
		lo := rng.IntN(keys - 4)
		hi, seq := lo+1+rng.IntN(3), uint64(i+1)
		table.DeleteRange(7, key(lo), key(hi), seq)
		for n := lo; n < hi; n++ {
			newest[n] = seq
		}
	}
	if n := len(table.Ranges(7, always)); n < mostRecent*mostRecent {
		t.Fatalf("%d ranges are too few to be many", n)
	}
	var told [keys]uint64
	for _, r := range table.Ranges(7, always) {
		for n := binary.BigEndian.Uint16(r.Lo); n < binary.BigEndian.Uint16(r.Hi); n++ {
			told[n] = r.Seq
		}
	}
	for n, want := range newest {
		if got := table.Covered(7, key(n), always); got != want || told[n] != want {
			t.Fatalf("key %d was deleted at %d, Covered says %d, Ranges %d", n, want, got, told[n])
		}
	}
}
