package workload

import "testing"

// Of a long value not every byte is looked at, but each sector is, and none of another version or record fits in its place.
func TestLongValuesAreCheckedBySectors(t *testing.T) {
	const sector = 512
	d := &Data{KeyBytes: 16, ValueBytes: 100_000}
	v := d.Value(nil, 7, 3)
	for name, other := range map[string][]byte{"version": d.Value(nil, 7, 4), "record": d.Value(nil, 8, 3), "nothing": make([]byte, len(v))} {
		for from := 0; from < len(v); from += sector {
			mixed := append([]byte(nil), v...)
			copy(mixed[from:min(from+sector, len(v))], other[from:])
			if d.Check(mixed, 7) == nil {
				t.Fatalf("a sector of another %s at %d passes", name, from)
			}
		}
	}
	v[len(v)-1] ^= 1
	if d.Check(v, 7) == nil {
		t.Error("damage of the last byte passes")
	}
}
