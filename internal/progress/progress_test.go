package progress

import (
	"context"
	"slices"
	"testing"
)

func TestPartsCountToTheirTotals(t *testing.T) {
	type told struct{ done, total int64 }
	var got []told
	ctx := With(t.Context(), func(done, total int64) { got = append(got, told{done, total}) })
	m := From(ctx)
	m.Begin(3)
	for range 5 { // more than was said
		m.Add(1)
	}
	m.End()
	m.Begin(10) // less than was said
	m.Add(4)
	m.End()
	m.Begin(0)
	m.End()
	want := []told{{0, 3}, {1, 3}, {2, 3}, {3, 3}, {0, 10}, {4, 10}, {10, 10}, {0, 1}, {1, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

func TestManySmallStepsAreToldInFew(t *testing.T) {
	n, last := 0, int64(0)
	m := From(With(t.Context(), func(done, total int64) {
		if done < last || done > total {
			t.Fatalf("%d of %d after %d", done, total, last)
		}
		n, last = n+1, done
	}))
	const total = 1_000_000
	m.Begin(total)
	for range total {
		m.Add(1)
	}
	if m.End(); last != total || n > steps+2 {
		t.Errorf("told %d times, last %d", n, last)
	}
}

func TestNobodyAsked(t *testing.T) {
	m := From(context.Background())
	m.Begin(1)
	m.Add(1)
	m.End()
	if m != nil {
		t.Error("a meter from nowhere")
	}
}
