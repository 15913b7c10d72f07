package scratch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestSortersTogetherHoldNoMoreThanTheLimit lets several sorters grow in turns: all of them sort, and some in files.
func TestSortersTogetherHoldNoMoreThanTheLimit(t *testing.T) {
	const limit, own, sorters, records = 3 << 20, 64 << 10, 6, 4000
	fsys := memfs.New()
	a := Allowance{Space: space(t, fsys, 0), Memory: 2 << 20, Shared: NewMemory(limit, own)}
	random := rand.New(rand.NewPCG(1, 2))
	var list []*Sorter
	var want [sorters][]string
	for range sorters {
		list = append(list, NewSorter(a, 0))
	}
	for range records {
		for i, s := range list {
			key := fmt.Sprintf("%08x", random.Uint32())
			want[i] = append(want[i], key)
			if err := s.Add([]byte(key), make([]byte, 250)); err != nil {
				t.Fatal(err)
			}
			if held := a.Shared.Held(); held > limit {
				t.Fatalf("%d bytes are held, of %d", held, limit)
			}
			if s.held > own+s.share.taken {
				t.Fatalf("a sorter holds %d bytes and has taken %d", s.held, s.share.taken)
			}
		}
	}
	if n := files(t, fsys); n == 0 {
		t.Error("none has spilled")
	}
	for i, s := range list {
		if err := s.Sort(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want[i])
		for _, key := range want[i] {
			if got, _, ok, err := s.Next(); err != nil || !ok || string(got) != key {
				t.Fatalf("sorter %d: got %q, %v, %v, want %q", i, got, ok, err, key)
			}
		}
		if _, _, ok, err := s.Next(); ok || err != nil {
			t.Fatalf("sorter %d: one more, or %v", i, err)
		}
	}
	for _, s := range list {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if held, n := a.Shared.Held(), files(t, fsys); held != 0 || n != 0 {
		t.Errorf("left behind: %d bytes, %d files", held, n)
	}
}

// TestFewFilesAreOpen, though runs are as short as they get where others hold all memory.
func TestFewFilesAreOpen(t *testing.T) {
	fsys := memfs.New()
	s := NewSorter(Allowance{Space: space(t, fsys, 0), Memory: 1 << 20, Shared: NewMemory(0, 1000)}, 0)
	var records []pair
	for i := range 10_000 {
		records = append(records, pair{fmt.Sprintf("%04d", i*7919%5000), fmt.Sprint(i)})
	}
	most := 0
	for _, r := range records {
		if err := s.Add([]byte(r.key), []byte(r.value)); err != nil {
			t.Fatal(err)
		}
		most = max(most, files(t, fsys))
	}
	if most <= leastFanIn || most > mostFanIn {
		t.Errorf("there were %d files", most)
	}
	if err := s.Sort(); err != nil {
		t.Fatal(err)
	}
	if n := files(t, fsys); n > leastFanIn {
		t.Errorf("%d files are merged at once, for which there is no memory", n)
	}
	slices.SortStableFunc(records, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	for _, want := range records {
		k, v, ok, err := s.Next()
		if got := (pair{string(k), string(v)}); err != nil || !ok || got != want {
			t.Fatalf("got %v, %v, %v, want %v", got, ok, err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWithoutSpaceWhatOthersHoldIsMissing says who fails: the one that needs more than is left and may not spill.
func TestWithoutSpaceWhatOthersHoldIsMissing(t *testing.T) {
	a := Allowance{Memory: 8 << 20, Shared: NewMemory(4<<20, 1000)}
	first, second := NewTape(a, "$facet"), NewSorter(a, 0)
	value := make([]byte, 100_000)
	for range 35 {
		if err := first.Append(value); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.Add([]byte("small"), nil); err != nil {
		t.Errorf("what each has without asking: %v", err)
	}
	err := second.Add([]byte("large"), value)
	if !errors.Is(err, mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed) || !strings.Contains(err.Error(), "4194304 bytes for all") {
		t.Errorf("got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.Add([]byte("large"), value); err != nil {
		t.Errorf("when the others are done: %v", err)
	}
	if err := second.Close(); err != nil || a.Shared.Held() != 0 {
		t.Errorf("%v, %d bytes are left", err, a.Shared.Held())
	}
}
