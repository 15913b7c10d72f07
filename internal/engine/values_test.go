package engine

import "testing"

// A memtable settles for its values' sake when they are many times what a checkpoint may have to write, or more than there was.
func TestValuesDue(t *testing.T) {
	const seg = 64 << 20
	for _, c := range []struct {
		name          string
		written, live int64
		records       int
		want          bool
	}{
		{"nothing", 0, 0, 0, false},
		{"much, of which nothing was committed", 100 * seg, 0, 0, false},
		{"little", valueSegments*seg - 1, 0, 10, false},
		{"long values", valueSegments * seg, 100 * seg, 1000, true},
		{"short values beside many others", valueSegments * seg, 100 * seg, valueSegments * seg / 2000, false},
		{"short values, as many as the others", 100 * seg, 100 * seg, 100 * seg / 2000, true},
		{"short values, the first ones", valueSegments * seg, 0, valueSegments * seg / 2000, true},
	} {
		e := &Engine{sizes: sizes{segment: seg}}
		e.values.before, e.values.most = 1000, c.live
		e.valuesWritten.Store(1000 + c.written)
		if got := e.valuesDue(c.records); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
