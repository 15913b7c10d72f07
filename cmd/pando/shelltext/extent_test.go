package shelltext

import (
	"strings"
	"testing"
)

// TestExtentInPieces: it is the same in how many pieces a text comes.
func TestExtentInPieces(t *testing.T) {
	text := "db.a.find({x: /[/(]'/, // it's (\n y: 'a\\'(\\\n' /* ]\n*/})."
	var e Extent
	for i := range len(text) {
		e.Add(text[i : i+1])
		if want := Open(text[:i+1]); e.Open() != want {
			t.Errorf("%s is not open: %v", text[:i+1], want)
		}
	}
	if e.Open() != strings.HasSuffix(text, ".") {
		t.Error("the end is not open")
	}
}
