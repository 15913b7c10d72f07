// Package golden holds what the code makes against golden files, which were written once and lie in the directory testdata of the
// package under test: that is how a format on disk stays what it has always been. With the flag -update, which the package adds to
// those of the test, a file is written anew, whatever it held; a file that cannot be read or written ends the test.
package golden

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Compare fails the test, which goes on, when got is not what the golden file of that name holds, and returns that.
func Compare(t testing.TB, name, got string) (kept string) {
	t.Helper()
	kept = Kept(t, name, func() string { return got })
	if diff := cmp.Diff(kept, got); diff != "" {
		t.Errorf("%s: the format has changed (-update writes it anew): %s", name, diff)
	}
	return kept
}

// Kept returns what the golden file of that name holds. It is for what need not come out the same each time, and only has to be
// understood for ever: content is called with -update alone.
func Kept(t testing.TB, name string, content func() string) string {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rowBytes is how many bytes a row of HexDump has.
const rowBytes = 16

// HexDump shows bytes in rows, each with the offset at which it begins. Runs of rows of zeros are left out, the first row and the
// last one are not.
func HexDump(b []byte) string {
	var out strings.Builder
	skipped := false
	for i := 0; i < len(b); i += rowBytes {
		row := b[i:min(i+rowBytes, len(b))]
		if len(bytes.Trim(row, "\x00")) == 0 && i > 0 && i+rowBytes < len(b) {
			if !skipped {
				out.WriteString("...\n")
			}
			skipped = true
			continue
		}
		skipped = false
		fmt.Fprintf(&out, "%06x  % x\n", i, row)
	}
	return out.String()
}
