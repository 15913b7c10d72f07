package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The syntax trees of all sources are there to the end: to look through them again and again frees little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

const modulePath = "github.com/pandodb/pando"

// source is one Go file of the module.
type source struct {
	name string // relative to the root of the module, with slashes
	dir  string // of name; "." for the public package
	text string
	file *ast.File
}

func (s *source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// isCommand reports whether the file belongs to a program, which may print, exit and use the operating system.
func (s *source) isCommand() bool { return under(s.dir, "cmd") || under(s.dir, "examples") }

// isSupport reports whether the file is only ever linked into tests.
func (s *source) isSupport() bool {
	return s.isTest() || under(s.dir, "test") || s.dir == "vfs/vfstest" || s.dir == "internal/layout/layouttest"
}

func under(dir, top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }

// imports returns the import paths of a file.
func (s *source) imports() []string {
	var list []string
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// module is everything that the rules look at.
type module struct {
	root    string
	fset    *token.FileSet
	sources []*source         // sorted by name
	docs    map[string]string // Markdown, by name
	err     error
}

func (m *module) line(p token.Pos) int { return m.fset.Position(p).Line }

// packages groups the sources by directory.
func (m *module) packages() map[string][]*source {
	list := map[string][]*source{}
	for _, s := range m.sources {
		list[s.dir] = append(list[s.dir], s)
	}
	return list
}

var loadOnce = sync.OnceValue(func() *module {
	m := &module{root: filepath.Join("..", ".."), fset: token.NewFileSet(), docs: map[string]string{}}
	m.err = m.load()
	return m
})

// load returns the module, parsed.
func load(t *testing.T) *module {
	t.Helper()
	m := loadOnce()
	if m.err != nil {
		t.Fatal(m.err)
	}
	return m
}

func (m *module) load() error {
	return filepath.WalkDir(m.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(m.root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			return m.enter(rel, name, d.Name())
		}
		switch path.Ext(rel) {
		case ".go":
			return m.addSource(rel, name)
		case ".md":
			text, err := os.ReadFile(name)
			m.docs[rel] = string(text)
			return err
		}
		return nil
	})
}

// enter skips what is not part of the module: hidden directories, test data, and nested modules.
func (m *module) enter(rel, name, base string) error {
	if rel == "." {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func (m *module) addSource(rel, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(m.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	m.sources = append(m.sources, &source{name: rel, dir: path.Dir(rel), text: string(text), file: file})
	return nil
}

// allowList says what is excepted from a rule, and why.
type allowList map[string]string

// unused fails the test for each entry that nothing needed.
func (a allowList) unused(t *testing.T, used map[string]bool) {
	t.Helper()
	for name := range a {
		if !used[name] {
			t.Errorf("the allow list names %s, which does not need it: remove the entry", name)
		}
	}
}
