package workload

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/bench/engine"
)

var errAsked = errors.New("an engine without order was asked for a scan")

// unordered is an engine that must not be asked for scans.
type unordered struct{ engine.Store }

func (unordered) Scan(engine.Scan, engine.Visit) error { return errAsked }

func (u unordered) Snapshot() (engine.Snapshot, error) {
	s, err := u.Store.Snapshot()
	return unorderedSnapshot{s}, err
}

func (u unordered) View(fn func(engine.Reader) error) error {
	return u.Store.(engine.Transactor).View(func(r engine.Reader) error { return fn(unorderedReader{r}) })
}

func (u unordered) Update(fn func(engine.Transaction) error) error {
	return u.Store.(engine.Transactor).Update(func(t engine.Transaction) error { return fn(unorderedTransaction{t}) })
}

type unorderedReader struct{ engine.Reader }

func (unorderedReader) Scan(engine.Scan, engine.Visit) error { return errAsked }

type unorderedTransaction struct{ engine.Transaction }

func (unorderedTransaction) Scan(engine.Scan, engine.Visit) error { return errAsked }

type unorderedSnapshot struct{ engine.Snapshot }

func (unorderedSnapshot) Scan(engine.Scan, engine.Visit) error { return errAsked }

// unorderedDriver is that of an engine with a fault, which keeps no order.
func unorderedDriver(f fault) engine.Driver {
	d := faultyDriver(f)
	open := d.Open
	d.NoOrder = true
	d.Open = func(o engine.Options) (engine.Store, error) {
		s, err := open(o)
		return unordered{s}, err
	}
	return d
}

// namesOf leaves out the flushes, which are those of everybody who uses the device meanwhile: some runs see none.
func namesOf(cells []Cell) (names []string) {
	for _, c := range cells {
		if c.Unit != "flushes" {
			names = append(names, c.Name)
		}
	}
	return names
}

// Of an engine without order there are the same cells, but for those that need one: neither more nor failed ones.
func TestWithoutOrderThereAreNoOrderedCells(t *testing.T) {
	needs := func(name string) bool {
		return slices.ContainsFunc([]string{"scan", "seek", "walk", "enumerate", "queue"}, func(word string) bool { return strings.Contains(name, word) })
	}
	left := 0
	for _, w := range testable() {
		cells := cellsOf(t, w, unorderedDriver(sound))
		for _, c := range cells {
			if c.Failed != "" {
				t.Errorf("%s, %s: %s", w.Name, c.Name, c.Failed)
			}
		}
		all := namesOf(cellsOf(t, w, faultyDriver(sound)))
		want := slices.DeleteFunc(slices.Clone(all), needs)
		left += len(all) - len(want)
		if got := namesOf(cells); !slices.Equal(got, want) {
			t.Errorf("%s: cells %q, want %q", w.Name, got, want)
		}
	}
	if left < 15 {
		t.Errorf("%d cells of scans and seeks were left out", left)
	}
}

// What a scan notices in other engines gets notice: but for faults of the scans themselves nothing may go unnoticed.
func TestWorkloadsNoticeWrongEnginesWithoutOrder(t *testing.T) {
	ofScans := []fault{skippedRecord, doubleRecord, swapped, scanValue, scanOthers, scanEndsEarly, seekTooFar, blindWalk}
	notices := noticed()
	for _, w := range testable() {
		if w.Name == "queue" {
			continue // it is nothing but walks, and is not asked of such an engine
		}
		for _, f := range notices[w.Name] {
			if slices.Contains(ofScans, f) {
				continue
			}
			cells := cellsOf(t, w, unorderedDriver(f))
			if !slices.ContainsFunc(cells, func(c Cell) bool { return c.Failed != "" }) {
				t.Errorf("%s: not noticed: %s", w.Name, f)
			}
		}
	}
}

// An engine without order is asked for the same records as the others after a step that it leaves out.
func TestStepsLeftOutChangeNoLaterOnes(t *testing.T) {
	large := testable()[slices.IndexFunc(testable(), func(w Workload) bool { return w.Name == "large" })]
	var left [2][]engine.Op
	for i, d := range []engine.Driver{faultyDriver(sound), unorderedDriver(sound)} {
		open := d.Open
		d.Open = func(o engine.Options) (engine.Store, error) {
			s, err := open(o)
			m, ok := s.(*memory)
			if !ok {
				m = s.(unordered).Store.(*memory)
			}
			left[i] = *m.records
			return closing{s, func() { left[i] = *m.records }}, err
		}
		cellsOf(t, large, d)
	}
	if len(left[0]) != tiny().Large || !slices.EqualFunc(left[0], left[1], func(a, b engine.Op) bool {
		return string(a.Key) == string(b.Key) && string(a.Value) == string(b.Value)
	}) {
		t.Errorf("%d and %d records are left, and not the same", len(left[0]), len(left[1]))
	}
}

// closing tells when a store is closed.
type closing struct {
	engine.Store
	closed func()
}

func (c closing) Close() error {
	c.closed()
	return c.Store.Close()
}
