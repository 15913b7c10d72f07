package wire

import (
	"os"
	"path/filepath"
	"testing"
)

// docs/benchmarks-server.md is what the report makes of the numbers that are kept beside the benchmark, and nobody's additions.
func TestPageIsMadeOfTheNumbers(t *testing.T) {
	files, err := filepath.Glob("../numbers/servers/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no numbers: %v", err)
	}
	runs, err := LoadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	notes, err := os.ReadFile("../notes-server.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/benchmarks-server.md")
	if err != nil {
		t.Fatal(err)
	}
	if Report(runs, string(notes)) != string(page) {
		t.Error("docs/benchmarks-server.md is not what the report makes of the numbers: see the commands at its begin")
	}
}
