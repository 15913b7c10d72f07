package report

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// docs/benchmarks.md and its charts are what the report makes of the numbers that are kept beside the benchmark, and nobody's additions.
func TestPageIsMadeOfTheNumbers(t *testing.T) {
	fresh := t.TempDir()
	writePage(t, "../numbers/engines", fresh)
	const docs = "../../docs"
	made, kept := filesOf(t, fresh), filesOf(t, docs)
	for name, text := range made {
		if !bytes.Equal(kept[name], text) {
			t.Errorf("docs/%s is not what the report makes of the numbers: see the commands at the begin of docs/benchmarks.md", name)
		}
	}
	for name := range kept {
		if _, ok := made[name]; !ok {
			t.Errorf("docs/%s is left from an earlier page", name)
		}
	}
}

// What the notes say of another machine is what the report makes of its numbers.
func TestNotesTellOfTheOtherMachine(t *testing.T) {
	dir := t.TempDir()
	notes := writePage(t, "../numbers/engines-epyc", dir)
	page, err := os.ReadFile(filepath.Join(dir, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	behind := regexp.MustCompile(`(?m)^\d+ of \d+ cells\b`).Find(page)
	if behind == nil || !bytes.Contains(notes, append([]byte("behind in "), behind...)) {
		t.Errorf("the notes do not say that Pando is behind in %q", behind)
	}
}

// writePage makes the page of the numbers in a directory, with the notes, which it returns.
func writePage(t *testing.T, numbers, dir string) (notes []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(numbers, "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no numbers: %v", err)
	}
	runs, err := LoadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Merge(runs...)
	if err != nil {
		t.Fatal(err)
	}
	if notes, err = os.ReadFile("../notes.md"); err != nil {
		t.Fatal(err)
	}
	if err := Write(whole, Options{Dir: dir, Notes: string(notes)}); err != nil {
		t.Fatal(err)
	}
	return notes
}

// filesOf reads the page under dir, and its charts.
func filesOf(t *testing.T, dir string) map[string][]byte {
	charts, err := filepath.Glob(filepath.Join(dir, "benchmarks", "*"))
	if err != nil || len(charts) == 0 {
		t.Fatalf("no charts in %s: %v", dir, err)
	}
	files := map[string][]byte{}
	for _, path := range append(charts, filepath.Join(dir, "benchmarks.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.ToSlash(name)] = text
	}
	return files
}
