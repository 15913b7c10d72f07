package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// docs/benchmarks.md and its charts are what the report makes of the numbers that are kept beside the benchmark, and nobody's additions.
func TestPageIsMadeOfTheNumbers(t *testing.T) {
	files, err := filepath.Glob("../numbers/engines/*.json.gz")
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
	notes, err := os.ReadFile("../notes.md")
	if err != nil {
		t.Fatal(err)
	}
	fresh := t.TempDir()
	if err := Write(whole, Options{Dir: fresh, Notes: string(notes)}); err != nil {
		t.Fatal(err)
	}
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
