package golden_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pandodb/pando/test/golden"
)

// failures is a test that notes that it failed, and does not.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "kept.txt"), []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := &failures{TB: t}
	if got := golden.Compare(f, "kept.txt", "kept"); got != "kept" || f.n != 0 {
		t.Errorf("the same: %q, %d failures", got, f.n)
	}
	if got := golden.Compare(f, "kept.txt", "another"); got != "kept" || f.n != 1 {
		t.Errorf("another: %q, %d failures", got, f.n)
	}
	made := false
	if got := golden.Kept(t, "kept.txt", func() string { made = true; return "" }); got != "kept" || made {
		t.Errorf("kept: %q; made anew: %v", got, made)
	}
}

func TestHexDump(t *testing.T) {
	b := make([]byte, 100)
	b[0], b[1], b[66] = 1, 0xab, 2
	const want = `000000  01 ab 00 00 00 00 00 00 00 00 00 00 00 00 00 00
...
000040  00 00 02 00 00 00 00 00 00 00 00 00 00 00 00 00
...
000060  00 00 00 00
`
	if got := golden.HexDump(b); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := golden.HexDump(make([]byte, 16)); !strings.HasPrefix(got, "000000  00") {
		t.Errorf("zeros alone: %q", got)
	}
}
