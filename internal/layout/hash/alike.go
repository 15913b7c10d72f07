package hash

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pandodb/pando/internal/segment"
)

// Each record is referred to once. Entries of one hash that all refer to the same record would have it read, and gathered for a walk, as often
// as there are of them, which is out of all proportion to what lies on the disk. So where more than a few are of one hash, as where somebody
// has made keys for that, it is looked at whether their records lie apart.

// fewAlike is how many entries of one hash are believed without that.
const fewAlike = 16

// lieApart tells which records of the same hash lie in the same place, or returns nil. There are n entries, sorted by hash.
func lieApart(n int, hash func(i int) uint64, at func(i int) segment.Piece) error {
	var places []segment.Piece
	for first := 0; first < n; {
		end := first + 1
		for end < n && hash(end) == hash(first) {
			end++
		}
		if end-first > fewAlike {
			places = places[:0]
			for i := first; i < end; i++ {
				places = append(places, at(i))
			}
			if err := apart(places); err != nil {
				return err
			}
		}
		first = end
	}
	return nil
}

// apart tells which of some records lie in the same place, or returns nil. It sorts them.
func apart(places []segment.Piece) error {
	slices.SortFunc(places, func(x, y segment.Piece) int {
		return cmp.Or(cmp.Compare(x.Segment, y.Segment), cmp.Compare(x.Offset, y.Offset))
	})
	for i := 1; i < len(places); i++ {
		p, next := places[i-1], places[i]
		if p.Length > 0 && p.Segment == next.Segment && uint64(p.Offset)+uint64(p.Length) > uint64(next.Offset) {
			return fmt.Errorf("records at %d and %d of segment %d lie in the same place", p.Offset, next.Offset, p.Segment)
		}
	}
	return nil
}
