package jsonfile

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSavedIsLoaded(t *testing.T) {
	numbers := map[string]int{"get": 355, "scan": 21}
	for _, name := range []string{"numbers.json", "numbers.json.gz"} {
		file := filepath.Join(t.TempDir(), name)
		if err := Save(file, numbers); err != nil {
			t.Fatal(err)
		}
		got, err := Load[map[string]int](file)
		if err != nil || !maps.Equal(got, numbers) {
			t.Fatalf("%s holds %v, %v; want %v", name, got, err, numbers)
		}
		first := read(t, file)
		if err := Save(file, numbers); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, read(t, file)) {
			t.Errorf("%s, saved twice, differs", name)
		}
		if packed := first[0] == 0x1f; packed != strings.HasSuffix(name, ".gz") {
			t.Errorf("%s begins with %q", name, first[:2])
		}
	}
}

func TestWhatIsNotNumbersIsAnErrorThatNamesIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"text.json": "no JSON", "plain.json.gz": "{}", "cut.json.gz": "\x1f\x8b\x08"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load[map[string]int](file); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRunsOfAnotherCommandAreRefused(t *testing.T) {
	type run struct {
		Cells []string `json:"cells"`
	}
	runs := Runs[run, string]{
		Command: "some command",
		Cells:   func(r *run) []string { return r.Cells },
		Own:     func(cell string) bool { return cell != "" },
	}
	for _, c := range []struct {
		name          string
		cells         []string
		loads, counts bool // alone, and as one of several
	}{
		{"own", []string{"get", "scan"}, true, true},
		{"nothing measured yet", nil, true, false},
		{"of another command", []string{"get", ""}, false, false},
	} {
		file := filepath.Join(t.TempDir(), "run.json")
		if err := Save(file, run{c.cells}); err != nil {
			t.Fatal(err)
		}
		r, err := runs.Load(file)
		if loads := err == nil && slices.Equal(r.Cells, c.cells); loads != c.loads {
			t.Errorf("%s: %v, %v", c.name, r, err)
		}
		if list, err := runs.LoadAll([]string{file}); (err == nil && len(list) == 1) != c.counts {
			t.Errorf("%s, as one of several: %v, %v", c.name, list, err)
		}
	}
}
