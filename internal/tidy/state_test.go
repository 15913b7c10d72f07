package tidy

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

func TestNoInit(t *testing.T) {
	m := load(t)
	for _, s := range m.sources {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && !s.isTest() {
				t.Errorf("%s:%d: init function: importing a package has no effects", s.name, m.line(f.Pos()))
			}
		}
	}
}

// tables are the package variables that are neither errors nor pools: constants for which Go has no form.
var tables = allowList{
	"document/internal/mongoerror.names": "names of an enumeration",
	"internal/importer.byteOrderMark":    "bytes that a file may begin with",
	"internal/importer.gzipMagic":        "bytes that a file may begin with",
	"internal/importer.zstdMagic":        "bytes that a file may begin with",
	"internal/layout/tree.filterSalt":    "numbers of the format",
	"internal/root.castagnoli":           "the table of a checksum's polynomial",
	"internal/segment.castagnoli":        "the table of a checksum's polynomial",
	"internal/spill.castagnoli":          "the table of a checksum's polynomial",
	"internal/wal.castagnoli":            "the table of a checksum's polynomial",
	"test/golden.update":                 "a flag of the test command",
	"vfs/faultfs.opNames":                "names of an enumeration",
	"vfs/memfs.shares":                   "shares that crash images choose from",
}

func TestNoStateInPackages(t *testing.T) {
	m := load(t)
	used := map[string]bool{}
	variables := map[string]map[string]bool{} // by directory
	for _, s := range m.sources {
		if s.isTest() || s.isCommand() {
			continue
		}
		for _, spec := range packageVariables(s.file) {
			for i, name := range spec.Names {
				if variables[s.dir] == nil {
					variables[s.dir] = map[string]bool{}
				}
				variables[s.dir][name.Name] = true
				key := s.dir + "." + name.Name
				switch {
				case name.Name == "_", isError(name.Name), isPool(spec, i):
				case tables[key] != "":
					used[key] = true
				default:
					t.Errorf("%s:%d: package variable %s: state belongs into a value that somebody opens and closes", s.name, m.line(name.Pos()), name.Name)
				}
			}
		}
	}
	tables.unused(t, used)
	for _, s := range m.sources {
		if !s.isTest() {
			reportAssignments(t, m, s, variables[s.dir])
		}
	}
}

// packageVariables returns what a file declares with var outside of functions.
func packageVariables(f *ast.File) []*ast.ValueSpec {
	var list []*ast.ValueSpec
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			list = append(list, spec.(*ast.ValueSpec))
		}
	}
	return list
}

func isError(name string) bool {
	return name == "Err" || strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
}

// isPool reports whether the i-th variable of spec is a sync.Pool.
func isPool(spec *ast.ValueSpec, i int) bool {
	named := func(e ast.Expr) bool {
		sel, ok := e.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := sel.X.(*ast.Ident)
		return ok && x.Name == "sync" && sel.Sel.Name == "Pool"
	}
	if spec.Type != nil {
		return named(spec.Type)
	}
	if i >= len(spec.Values) {
		return false
	}
	lit, ok := spec.Values[i].(*ast.CompositeLit)
	return ok && named(lit.Type)
}

// reportAssignments finds code that changes a package variable. It goes by names, so a local variable must not bear the name
// of a package variable if it is assigned to: that would confuse readers too.
func reportAssignments(t *testing.T, m *module, s *source, variables map[string]bool) {
	changed := func(e ast.Expr) {
		if name := rootName(e); name != "_" && variables[name] {
			t.Errorf("%s:%d changes package variable %s", s.name, m.line(e.Pos()), name)
		}
	}
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					if n.Tok != token.DEFINE {
						changed(e)
					}
				}
			case *ast.IncDecStmt:
				changed(n.X)
			}
			return true
		})
	}
}

// rootName returns the variable that an assignable expression begins with.
func rootName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return ""
		}
	}
}
