package tidy

import (
	"go/ast"
	"go/format"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestEveryPackageHasADoc(t *testing.T) {
	m := load(t)
	for dir, sources := range m.packages() {
		want, found, code := "", "", false
		for _, s := range sources {
			if s.isTest() {
				continue
			}
			code = true
			want = "Package " + s.file.Name.Name + " "
			if s.file.Name.Name == "main" {
				want = "Command "
			}
			if s.file.Doc != nil {
				found += s.file.Doc.Text()
			}
		}
		if code && !strings.HasPrefix(found, want) {
			t.Errorf("package %s has no comment that begins with %q", dir, want)
		}
	}
}

// isPublic reports whether users of the module can import a directory.
func isPublic(dir string) bool {
	return !strings.Contains("/"+dir+"/", "/internal/") && !under(dir, "cmd") && !under(dir, "test") && !under(dir, "examples")
}

// ownDoc are methods whose meaning is that of the standard interface they implement.
var ownDoc = map[string]bool{"String": true, "Error": true, "Unwrap": true, "Is": true}

func TestEverythingPublicIsDocumented(t *testing.T) {
	m := load(t)
	for _, s := range m.sources {
		if !isPublic(s.dir) || s.isTest() {
			continue
		}
		missing := func(name *ast.Ident, docs ...*ast.CommentGroup) {
			for _, d := range docs {
				if d.Text() != "" {
					return
				}
			}
			if name.IsExported() {
				t.Errorf("%s:%d: %s has no comment", s.name, m.line(name.Pos()), name.Name)
			}
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || (ast.IsExported(receiver(d)) && !ownDoc[d.Name.Name]) {
					missing(d.Name, d.Doc)
				}
			case *ast.GenDecl:
				documented(d, missing)
			}
		}
	}
}

// documented calls missing for each name that a declaration introduces, with the comments that may speak of it: that of a
// block speaks of all constants or variables in it, not of types.
func documented(d *ast.GenDecl, missing func(*ast.Ident, ...*ast.CommentGroup)) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			block := d.Doc
			if d.Lparen != token.NoPos {
				block = nil
			}
			missing(spec.Name, spec.Doc, block)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				missing(name, spec.Doc, spec.Comment, d.Doc)
			}
		}
	}
}

// Of a public name for a type of an internal package go doc shows nothing but the comment: so that names its fields.
func TestPublicNamesOfInternalTypesTellTheirFields(t *testing.T) {
	m := load(t)
	packages := m.packages()
	for _, s := range m.sources {
		if !isPublic(s.dir) || s.isTest() {
			continue
		}
		for _, d := range s.file.Decls {
			d, isDecl := d.(*ast.GenDecl)
			if !isDecl || d.Tok != token.TYPE {
				continue
			}
			for _, spec := range d.Specs {
				spec := spec.(*ast.TypeSpec)
				for _, field := range hiddenFields(s, packages, spec) {
					if !regexp.MustCompile(`(?m)^\t(\w+, )*` + field + `\b`).MatchString(spec.Doc.Text() + d.Doc.Text()) {
						t.Errorf("%s:%d: the comment of %s does not tell its field %s", s.name, m.line(spec.Pos()), spec.Name.Name, field)
					}
				}
			}
		}
	}
}

// hiddenFields returns the exported fields of the struct of an internal package for which spec, in s, is another name.
func hiddenFields(s *source, packages map[string][]*source, spec *ast.TypeSpec) []string {
	of, isSelector := spec.Type.(*ast.SelectorExpr)
	if !isSelector || !spec.Assign.IsValid() {
		return nil
	}
	var fields []string
	for _, imported := range s.imports() {
		dir, ours := strings.CutPrefix(imported, modulePath+"/")
		if !ours || isPublic(dir) || path.Base(dir) != of.X.(*ast.Ident).Name {
			continue
		}
		for _, other := range packages[dir] {
			ast.Inspect(other.file, func(n ast.Node) bool {
				if n, isType := n.(*ast.TypeSpec); isType && n.Name.Name == of.Sel.Name {
					fields = append(fields, exportedFields(n.Type)...)
				}
				return true
			})
		}
	}
	return fields
}

func exportedFields(e ast.Expr) []string {
	s, isStruct := e.(*ast.StructType)
	if !isStruct {
		return nil
	}
	var names []string
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			if n.IsExported() {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

// receiver returns the name of the type of a method.
func receiver(f *ast.FuncDecl) string {
	e := f.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func TestSourcesAreASCII(t *testing.T) {
	m := load(t)
	for _, s := range m.sources {
		for i, line := range strings.Split(s.text, "\n") {
			if at := strings.IndexFunc(line, func(r rune) bool { return r > 127 || (r < ' ' && r != '\t') }); at >= 0 {
				t.Errorf("%s:%d:%d: not ASCII", s.name, i+1, at+1)
			}
		}
	}
}

func TestNothingIsLeftForLater(t *testing.T) {
	m := load(t)
	marks := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}
	texts := map[string]string{}
	for name, text := range m.docs {
		texts[name] = text
	}
	for _, s := range m.sources {
		texts[s.name] = s.text
	}
	for name, text := range texts {
		for i, line := range strings.Split(text, "\n") {
			for _, mark := range marks {
				if strings.Contains(line, mark) {
					t.Errorf("%s:%d: %s", name, i+1, mark)
				}
			}
		}
	}
}

// Limits of what a reader can take in. They are meant to be kept at a distance: 500 and 70 are the aim.
const (
	maxFileLines     = 600
	maxFunctionLines = 80
)

func TestFilesAndFunctionsAreShort(t *testing.T) {
	m := load(t)
	for _, s := range m.sources {
		if n := strings.Count(s.text, "\n"); n > maxFileLines {
			t.Errorf("%s has %d lines, the most are %d", s.name, n, maxFileLines)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if n := m.line(f.End()) - m.line(f.Pos()) + 1; n > maxFunctionLines {
				t.Errorf("%s: function %s has %d lines, the most are %d", s.name, f.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

func TestSourcesAreFormatted(t *testing.T) {
	m := load(t)
	for _, s := range m.sources {
		if want, err := format.Source([]byte(s.text)); err != nil || string(want) != s.text {
			t.Errorf("%s is not formatted: gofmt -w %[1]s", s.name)
		}
	}
}
