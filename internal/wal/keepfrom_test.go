package wal

import (
	"errors"
	"testing"
)

// What readers do not want is not kept for them, whatever KeepBytes says, and its files do not wait to be used again: after a kill they would
// pass for log that is kept.
func TestWhatReadersDoNotWantIsNotKept(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		o := options(newFS(t), plain)
		o.KeepBytes, o.SpareSegments = 1<<40, 100
		l, err := Create(o, 1)
		must(t, err)
		var h history
		for range 40 {
			must(t, h.append(t, l, 3000))
		}
		must(t, l.Recycle(l.Position()))
		files, err := o.FS.List(dir)
		must(t, err)
		if _, oldest := l.Oldest(); oldest != 1 {
			t.Fatalf("the log begins with record %d", oldest)
		}
		wanted := h.seqs[30]
		l.KeepFrom(wanted)
		l.KeepFrom(h.seqs[3]) // somebody who is late
		must(t, l.Recycle(l.Position()))
		_, oldest := l.Oldest()
		if oldest > wanted || oldest < h.seqs[20] {
			t.Errorf("the log begins with record %d; it is wanted from %d on", oldest, wanted)
		}
		left, err := o.FS.List(dir)
		must(t, err)
		if len(left) > len(files)/2 {
			t.Errorf("%d of %d files are left", len(left), len(files))
		}
		if _, err := l.NewReader(1); !errors.Is(err, ErrRecycled) {
			t.Errorf("a reader of what is not wanted: %v", err)
		}
		r, err := l.NewReader(wanted)
		must(t, err)
		if seq, _, err := r.Next(); err != nil || seq != wanted {
			t.Errorf("the first record is %d, %v; want %d", seq, err, wanted)
		}
		must(t, r.Close())
		must(t, l.Close())
	})
}
