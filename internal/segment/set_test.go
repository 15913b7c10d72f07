package segment

import (
	"slices"
	"testing"
)

// A set knows its own segments, and its mask meets that of every blob that lies in one of them.
func TestSet(t *testing.T) {
	var none *Set
	if !none.Empty() || none.Has(0) || none.Mask() != 0 || len(slices.Collect(none.All())) != 0 {
		t.Error("a set that is nil has something in it")
	}
	if !new(Set).Empty() || new(Set).Has(7) {
		t.Error("the zero set has something in it")
	}
	for _, ids := range [][]uint32{{0}, {1, 64, 65}, {1 << 31, 5, 5}, {63, 127, 1<<32 - 1}} {
		s := SetOf(ids...)
		if s.Empty() {
			t.Errorf("a set of %d is empty", ids)
		}
		for _, id := range ids {
			if p := (Pointer{Segment: id, Offset: FileHeaderSize, Length: HeaderSize}); !s.Has(id) || !s.Mask().Meets(MaskOf(p)) {
				t.Errorf("a set of %d lacks %d", ids, id)
			}
			for _, other := range []uint32{id + 1, id + 64, id + 128} {
				if s.Has(other) != slices.Contains(ids, other) {
					t.Errorf("a set of %d has %d: %v", ids, other, s.Has(other))
				}
			}
		}
		unique := slices.Compact(slices.Sorted(slices.Values(ids)))
		if got := slices.Sorted(s.All()); !slices.Equal(got, unique) {
			t.Errorf("a set of %d holds %d", ids, got)
		}
	}
	if MaskOf(Pointer{}) != 0 {
		t.Error("no blob lies somewhere")
	}
}
