package engine

import "testing"

// A memtable settles for its values' sake when they are many times what a checkpoint may have to write, or more than there was.
func TestValuesDue(t *testing.T) {
	const small, large = littleValues / 8, 64 << 20
	for _, c := range []struct {
		name          string
		segment       int64
		written, live int64
		records       int
		want          bool
	}{
		{"nothing", large, 0, 0, 0, false},
		{"much, of which nothing was committed", large, 100 * large, 0, 0, false},
		{"little", large, littleValues - 1, 0, 10, false},
		{"little for small segments", small, valueSegments*small - 1, 0, 10, false},
		{"long values", large, littleValues, 100 * large, 1000, true},
		{"long values in small segments", small, valueSegments * small, 100 * large, 1000, true},
		{"short values beside many others", large, littleValues, 100 * large, littleValues / 2000, false},
		{"short values, as many as the others", large, 100 * large, 100 * large, 100 * large / 2000, true},
		{"short values, the first ones", large, littleValues, 0, littleValues / 2000, true},
	} {
		e := &Engine{sizes: sizes{segment: c.segment}}
		e.values.before, e.values.most = 1000, c.live
		e.valuesWritten.Store(1000 + c.written)
		if got := e.valuesDue(c.records); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
