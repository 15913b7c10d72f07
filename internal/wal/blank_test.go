package wal

import (
	"path/filepath"
	"testing"
)

func TestBlank(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			fsys := newFS(t)
			o := options(fsys, m.plain)
			check := func(want bool) {
				t.Helper()
				if got, err := Blank(fsys, o.Dir); err != nil || got != want {
					t.Errorf("Blank is %v, %v; want %v", got, err, want)
				}
			}
			check(true)
			l, err := Create(o, 1)
			must(t, err)
			check(true)
			must(t, l.Close())
			check(true)
			l, _, err = Recover(o, Position{Segment: 1}, func(uint64, []byte, bool) error { return nil })
			must(t, err)
			_, err = l.Append(1, []byte("a record"))
			must(t, err)
			check(false)
			must(t, l.Close())
			check(false)
		})
	}
	// What is not a log's is no trace of a log that was being made.
	fsys := newFS(t)
	f, err := fsys.Create(filepath.Join(options(fsys, false).Dir, "somebody else's"))
	must(t, err)
	must(t, f.Close())
	if blank, err := Blank(fsys, options(fsys, false).Dir); err != nil || blank {
		t.Errorf("a directory with another file: Blank is %v, %v", blank, err)
	}
}
