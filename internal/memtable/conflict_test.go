package memtable

import (
	"reflect"
	"testing"

	"github.com/pandodb/pando/internal/record"
)

// Ranges that overlap or touch become one, those of each keyspace by themselves, and those without a key go.
func TestDisjoint(t *testing.T) {
	r := func(ks uint32, bounds ...string) KeyRange {
		out := KeyRange{Keyspace: ks, Lo: []byte(bounds[0])}
		if len(bounds) > 1 {
			out.Hi = []byte(bounds[1])
		}
		return out
	}
	got := Disjoint([]KeyRange{
		r(2, "m", "p"), r(1, "k"), r(1, "a", "c"), r(2, "a", "z"), r(1, "x", "y"), r(1, "c", "d"), r(1, "e", "e"), r(1, "d\x00", "g"),
		r(3, "b", "a"), r(1, "f", "h"), r(1, "a", "b"), r(4, ""), r(4, "a", "b"), {Keyspace: 5, Hi: []byte("b")}, r(5, "a", "c"),
	})
	want := []KeyRange{
		r(1, "a", "d"), r(1, "d\x00", "h"), r(1, "k"), r(2, "a", "z"), r(4, ""), {Keyspace: 5, Hi: []byte("c")},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Disjoint(nil); len(got) != 0 {
		t.Errorf("none become %v", got)
	}
}

// What many ranges cost hardly depends on how many they are: each thing that was put is looked for among them once.
func TestNewestInAnyOfManyRanges(t *testing.T) {
	const many = 1 << 16
	table := newTable(t, 8<<20)
	put := func(ks uint32, key []byte, seq uint64) {
		table.Put(ks, record.Hash(ks, key), key, seq, record.Record{Kind: record.Inline})
	}
	key := func(n int) []byte { return []byte{byte(n >> 8), byte(n), 1} }
	var ranges []KeyRange
	for n := range many {
		ranges = append(ranges, KeyRange{1, key(n)[:2], key(n)})
	}
	ranges = Disjoint(ranges)
	if len(ranges) != many {
		t.Fatalf("%d ranges of %d", len(ranges), many)
	}
	for n := range many { // right behind each range, and in another keyspace
		put(1, key(n), uint64(n+1))
		put(2, key(n)[:2], uint64(n+1))
	}
	if table.NewestInAny(ranges, 0) {
		t.Error("something was put into one of the ranges")
	}
	put(1, key(many / 2)[:2], many+1)
	if !table.NewestInAny(ranges, many) || table.NewestInAny(ranges, many+1) {
		t.Error("what was put last is not seen, or seen by who has seen it")
	}
}
