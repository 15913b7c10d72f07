package wal

import (
	"bytes"
	"slices"
	"testing"
)

// sizes lists the sizes of the files of a log, oldest first.
func sizes(t *testing.T, l *Log) (list []int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		list = append(list, s.size/MinSegmentBytes)
	}
	return list
}

func TestSegmentsGrow(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		o := options(newFS(t), plain)
		o.SegmentBytes, o.FirstBytes, o.KeepBytes = 8*MinSegmentBytes, MinSegmentBytes, 1<<30
		l, err := Create(o, 1)
		must(t, err)
		var h history
		for len(sizes(t, l)) < 6 {
			must(t, h.append(t, l, 3000))
		}
		if got := sizes(t, l); !slices.Equal(got, []int64{1, 2, 4, 8, 8, 8}) {
			t.Errorf("files of %v times the least size", got)
		}
		must(t, l.Close())

		// What comes after a recovery begins small again, and a long record gets a file that is large enough at once for a few like it.
		n := 0
		l, _, err = Recover(o, Position{Segment: 1, Offset: firstFrame}, func(seq uint64, payload []byte, _ bool) error {
			n++
			return nil
		})
		must(t, err)
		if n != len(h.seqs) {
			t.Errorf("%d of %d records", n, len(h.seqs))
		}
		_, err = l.Append(h.seqs[n-1]+1, bytes.Repeat([]byte{1}, MinSegmentBytes))
		must(t, err)
		if got := sizes(t, l); got[len(got)-1] != 8 {
			t.Errorf("files of %v times the least size", got)
		}
		must(t, l.Close())
	})
}

func TestDue(t *testing.T) {
	o := options(newFS(t), false)
	l, err := Create(o, 1)
	must(t, err)
	if l.Due() {
		t.Error("an empty log wants its next segment")
	}
	_, err = l.Append(1, make([]byte, 2000))
	must(t, err)
	if l.Due() {
		t.Error("most of a segment is empty, and it wants the next one")
	}
	for seq := uint64(2); l.Position().Segment < 4; seq++ {
		before := l.Position()
		_, err = l.Append(seq, make([]byte, 1000))
		must(t, err)
		half := int64(MinSegmentBytes / 2)
		end := l.Position()
		due := end.Offset >= half && (before.Offset < half || before.Segment != end.Segment)
		if got := l.Due(); got != due {
			t.Errorf("from %v to %v: the next segment is due: %v", before, end, got)
		}
		if l.Due() {
			t.Error("the next segment is due twice")
		}
	}
	must(t, l.Close())
}
