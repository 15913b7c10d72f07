package tidy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDependenciesAreThoseInUse: go.mod tells who reads it what the module asks for. So what it requires directly is imported, and what is
// imported it requires directly, as "go mod tidy" would have it.
func TestDependenciesAreThoseInUse(t *testing.T) {
	m := load(t)
	required := requirements(t, filepath.Join(m.root, "go.mod"))
	if len(required) == 0 {
		t.Fatal("go.mod requires nothing")
	}
	used := map[string]bool{}
	for _, s := range m.sources {
		for _, p := range s.imports() {
			if first, _, _ := strings.Cut(p, "/"); !strings.Contains(first, ".") || under(p, modulePath) {
				continue // of the standard library, or our own
			}
			module := moduleOf(p, required)
			if module == "" {
				t.Errorf("%s imports %s, which go.mod does not require directly", s.name, p)
			}
			used[module] = true
		}
	}
	for _, module := range required {
		if !used[module] {
			t.Errorf("go.mod requires %s, which no file imports", module)
		}
	}
}

// moduleOf returns which of the modules a package belongs to; "" if to none.
func moduleOf(importPath string, modules []string) string {
	for _, module := range modules {
		if under(importPath, module) {
			return module
		}
	}
	return ""
}

// requirements returns the paths of the modules that a go.mod requires, without the indirect ones.
func requirements(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			inside = true
		case line == ")":
			inside = false
		case inside && line != "" && !strings.HasSuffix(line, "// indirect"):
			module, _, _ := strings.Cut(line, " ")
			list = append(list, module)
		}
	}
	return list
}
