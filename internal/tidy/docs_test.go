package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are those that the module must have.
var documents = []string{
	"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/format.md", "docs/operating.md",
	"docs/promises.md", "docs/reading.md",
}

var (
	link     = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	repoPath = regexp.MustCompile("`((?:internal|vfs|docs|cmd|examples|test|bench|\\.ci)/[\\w./-]+)`")
	testName = regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?((?:Test|Fuzz|Benchmark)\\w+|Example\\w*)(?:/\\w+)?`")
	machine  = regexp.MustCompile(`(^|[\s"'(=` + "`" + `])(` + strings.Join(machineDirs, "|") + `)`)

	machineDirs = []string{"/work/", "/home/", "/root/", "/tmp/", "/Users/", "/var/"}
)

func TestDocumentsPointAtWhatExists(t *testing.T) {
	m := load(t)
	for _, name := range documents {
		if m.docs[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	tests := m.testNames()
	for name, text := range m.docs {
		exists := func(target string) {
			if _, err := os.Stat(filepath.Join(m.root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s points at %s, which does not exist", name, target)
			}
		}
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(l[1], "://") {
				exists(path.Join(path.Dir(name), l[1]))
			}
		}
		for _, p := range repoPath.FindAllStringSubmatch(text, -1) {
			if !testName.MatchString(p[0]) {
				exists(p[1])
			}
		}
		for _, n := range testName.FindAllStringSubmatch(text, -1) {
			if !tests[n[2]] || (n[1] != "" && !tests[n[1]+"."+n[2]]) {
				t.Errorf("%s names the test %s, which does not exist", name, strings.Trim(n[0], "`"))
			}
		}
	}
}

// What the checks of a change take from README.md stands there, on a line of its own.
func TestReadmeHasTheCommandsOfChecks(t *testing.T) {
	m := load(t)
	run, err := os.ReadFile(filepath.Join(m.root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?: readme |serve=|program=)'([^']+)'`).FindAllStringSubmatch(string(run), -1)
	if len(commands) < 4 {
		t.Fatalf("of the commands in .ci/run only %d were found", len(commands))
	}
	lines := strings.Split(m.docs["README.md"], "\n")
	for _, c := range commands {
		if !slices.Contains(lines, c[1]) {
			t.Errorf("README.md has no line %q", c[1])
		}
	}
}

// testNames returns the tests of the module, by name and by "directory.name" ("pando.name" for the public package).
func (m *module) testNames() map[string]bool {
	names := map[string]bool{}
	for _, s := range m.sources {
		if !s.isTest() {
			continue
		}
		dir := s.dir
		if dir == "." {
			dir = "pando"
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name], names[dir+"."+f.Name.Name] = true, true
			}
		}
	}
	return names
}

func TestNothingSpeaksOfAMachine(t *testing.T) {
	m := load(t)
	texts := map[string]string{}
	for name, text := range m.docs {
		texts[name] = text
	}
	for _, s := range m.sources {
		if s.dir != "internal/tidy" {
			texts[s.name] = s.text
		}
	}
	for name, text := range texts {
		if !slices.ContainsFunc(machineDirs, func(dir string) bool { return strings.Contains(text, dir) }) {
			continue // most texts: the expression takes much longer to see it
		}
		for i, line := range strings.Split(text, "\n") {
			if machine.MatchString(line) {
				t.Errorf("%s:%d names a path of some machine: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}

// programs returns the Go code blocks of a document.
func programs(text string) []string {
	var list []string
	for _, part := range strings.Split(text, "```go\n")[1:] {
		code, _, _ := strings.Cut(part, "```")
		list = append(list, code)
	}
	return list
}

func TestCodeInDocumentsParses(t *testing.T) {
	m := load(t)
	for name, text := range m.docs {
		for i, code := range programs(text) {
			if !strings.HasPrefix(code, "package ") {
				code = "package p\nfunc f() {\n" + code + "\n}"
			}
			if _, err := parser.ParseFile(token.NewFileSet(), "", code, 0); err != nil {
				t.Errorf("%s: Go code block %d: %v", name, i+1, err)
			}
		}
	}
}

// TestProgramsAreTheExamples holds the first program of a document against the Example that the tests run. The two differ in
// where the database lies: the Example puts it into a directory that is removed again.
func TestProgramsAreTheExamples(t *testing.T) {
	m := load(t)
	for _, c := range []struct{ doc, dir, example string }{
		{"README.md", "trees.pando", "example_test.go"},
		{"docs/documents.md", "flights.pando", "document/example_test.go"},
	} {
		list := slices.DeleteFunc(programs(m.docs[c.doc]), func(code string) bool { return !strings.HasPrefix(code, "package main\n") })
		at := slices.IndexFunc(m.sources, func(s *source) bool { return s.name == c.example })
		if len(list) == 0 || at < 0 {
			t.Fatalf("%s has no program, or there is no %s", c.doc, c.example)
		}
		example := between(t, m.sources[at].text, "func Example() {\n", "\n}\n")
		want := strings.Replace(between(t, list[0], "func main() {\n", "\n}\n"), `"`+c.dir+`"`, "dir", 1)
		if !strings.Contains(example, want) {
			t.Errorf("%s: the program is not the body of Example in %s. The document has\n%s\nand Example\n%s", c.doc, c.example, want, example)
		}
	}
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	if !ok {
		t.Fatalf("no %q", from)
	}
	body, _, _ := strings.Cut(rest, to)
	return body
}
