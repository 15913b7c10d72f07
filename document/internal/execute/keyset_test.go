package execute

import (
	"testing"

	"github.com/pandodb/pando/document/internal/scratch"
)

// TestFullSetsStayFull: a record whose key found no room was told by other means, and would be given twice if its key found room later on.
func TestFullSetsStayFull(t *testing.T) {
	shared := scratch.NewMemory(100, 60)
	x := &run{allowed: scratch.Allowance{Memory: 1000, Shared: shared}}
	other := x.allowed.Share()
	if !other.Fits(160) {
		t.Fatal("there is no memory")
	}
	var s keySet
	if !s.fits(x, []byte("first")) {
		t.Fatal("a key does not fit that needs nothing of what is shared")
	}
	s.add([]byte("first"))
	if s.fits(x, []byte("second")) {
		t.Fatal("a key fits, though another holds all memory")
	}
	other.Shrink(0)
	if s.fits(x, []byte("second")) {
		t.Error("a key fits that did not before")
	}
	if !s.has([]byte("first")) {
		t.Error("what was there is gone")
	}
	s.release()
	s.release()
	if held := shared.Held(); held != 0 {
		t.Errorf("%d bytes are left", held)
	}
}
