package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongUsage: what makes no sense is refused before anything is measured.
func TestWrongUsage(t *testing.T) {
	for _, line := range []string{
		"run x", "run --engines nobody", "run --workloads nothing", "run --size big", "run --class sometimes", "run --rounds -1",
		"run --records -5", "run --for -1s", "run --memory-limit some", "report", "wire x", "wire --servers nobody", "wire --report page.md",
		"wire --threads -1", "list x", "run --documents 9", "wire --records 2500", "wire --records 500", "wire --records 1000 --ops 50",
		"wire --records 1000", "wire --records 2000 --threads 2001",
	} {
		var misused misuse
		if err := command(strings.Fields(line)); !errors.As(err, &misused) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestNumbersThatCannotBeKept: nor is anything measured when there is no place for the numbers, or none in a file.
func TestNumbersThatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "empty.json")
	if err := os.WriteFile(file, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	null, ours, wires := filepath.Join(dir, "null.json"), filepath.Join(dir, "ours.json"), filepath.Join(dir, "wires.json")
	for name, text := range map[string]string{null: "null", ours: `{"cells": [{"workload": "yoga", "cell": "get", "engine": "pando"}]}`,
		wires: `{"cells": [{"workload": "YCSB A", "server": "pando"}]}`} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"run", "--quick", "--json", filepath.Join(dir, "absent", "numbers.json")},
		{"run", "--quick", "--append", filepath.Join(file, "numbers.json")},
		{"wire", "--quick", "--json", filepath.Join(dir, "absent", "numbers.json")},
		{"report", file, "--out", filepath.Join(dir, "report")},
		{"wire", "--report", filepath.Join(dir, "page.md"), file},
		{"report", null, "--out", filepath.Join(dir, "report")},
		{"report", wires, "--out", filepath.Join(dir, "report")},
		{"run", "--quick", "--append", wires},
		{"wire", "--report", filepath.Join(dir, "page.md"), null},
		{"wire", "--report", filepath.Join(dir, "page.md"), ours},
	} {
		var misused misuse
		if err := command(args); err == nil || errors.As(err, &misused) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
		t.Errorf("something was written: %v, %v", entries, err)
	}
}
