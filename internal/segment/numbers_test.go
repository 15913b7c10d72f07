package segment

import (
	"math"
	"testing"
)

// When the numbers of segments come to their end no number is given again, also when the files of the last ones are gone and the segments
// are opened anew with what was noted as the next number.
func TestNumbersOfSegmentsEnd(t *testing.T) {
	fs := newFS(t)
	s := open(t, testOptions(fs), nil, math.MaxUint32-1)
	appended := func(s *Store) (numbers []uint32) {
		w := s.NewWriter(Nodes, 0)
		for i := range uint64(3) {
			p, err := w.Append(KindLeaf, 7, None, 0, noise(i, 900<<10))
			if err == nil {
				err = w.Flush()
			}
			if err != nil {
				return numbers
			}
			numbers = append(numbers, p.Segment)
		}
		t.Error("there are segments without end")
		return numbers
	}
	given := appended(s)
	if len(given) == 0 || given[0] != math.MaxUint32-1 {
		t.Fatalf("the segments %d were made", given)
	}
	next := s.NextID()
	for _, id := range given {
		must(t, s.Remove(id))
	}
	must(t, s.Close())
	if more := appended(open(t, testOptions(fs), nil, next)); len(more) > 0 {
		t.Errorf("behind the segments %d those with the numbers %d were made", given, more)
	}
}
