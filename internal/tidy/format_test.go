package tidy

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// formats are the documents of docs/format: one for each kind of file or of content.
var formats = []string{"segment", "root", "wal", "command", "page", "tree", "hash", "spill"}

var (
	quoted     = regexp.MustCompile("`([^`\n]+)`")
	codeDir    = regexp.MustCompile("`(internal/[a-z/]+)")
	identifier = regexp.MustCompile(`^([a-z]+\.)?([a-z]+[A-Z]\w*|[A-Z][a-z]\w*)$`)
	withNumber = regexp.MustCompile("`(\\w+)`(?: =|,)? \\(?(0x[0-9a-f]+|[0-9][0-9,]*)( KiB| MiB| GiB)?([^0-9^]|$)")
)

// TestFormatNamesExist holds the names in the documents of the formats against the code: a renamed constant is renamed there.
func TestFormatNamesExist(t *testing.T) {
	m := load(t)
	for _, format := range formats {
		name := "docs/format/" + format + ".md"
		text, ok := m.docs[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		if !strings.Contains(m.docs["docs/format.md"], "format/"+format+".md") {
			t.Errorf("docs/format.md does not link to %s", name)
		}
		own := map[string]bool{}
		for _, dir := range codeDirs(text) {
			m.declared(dir, own)
			for _, below := range m.imported(dir) {
				m.declared(below, own)
			}
		}
		if len(own) == 0 {
			t.Errorf("%s does not say where its code is", name)
		}
		for _, q := range quoted.FindAllStringSubmatch(text, -1) {
			parts := identifier.FindStringSubmatch(q[1])
			if parts == nil {
				continue
			}
			known := own
			if parts[1] != "" {
				known = map[string]bool{}
				m.declared("internal/"+strings.TrimSuffix(parts[1], "."), known)
			}
			if !known[parts[2]] {
				t.Errorf("%s names %s, which the code does not have", name, q[1])
			}
		}
	}
}

// codeDirs returns the packages that a document names.
func codeDirs(text string) []string {
	var dirs []string
	seen := map[string]bool{}
	for _, q := range codeDir.FindAllStringSubmatch(text, -1) {
		dir, _, _ := strings.Cut(q[1], "/testdata")
		dir = strings.TrimSuffix(dir, "/format") // format.go
		if !seen[dir] {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// imported returns the packages of the module that a package imports.
func (m *module) imported(dir string) []string {
	var dirs []string
	for _, s := range m.packages()[dir] {
		for _, p := range s.imports() {
			if d, ok := insideModule(p); ok && !s.isTest() {
				dirs = append(dirs, d)
			}
		}
	}
	return dirs
}

// declared adds the names that a package declares: functions, methods, types, fields, constants and variables.
func (m *module) declared(dir string, names map[string]bool) {
	for _, s := range m.packages()[dir] {
		if s.isTest() {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names[f.Name.Name] = true
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					names[n.Name.Name] = true
				case *ast.ValueSpec:
					for _, id := range n.Names {
						names[id.Name] = true
					}
				case *ast.Field:
					for _, id := range n.Names {
						names[id.Name] = true
					}
				}
				return true
			})
		}
	}
}

// leastCompared guards the test below against comparing nothing: the documents give more numbers than this.
const leastCompared = 80

// TestFormatNumbersAreThoseOfTheCode compares the numbers that the documents give for constants with the constants.
func TestFormatNumbersAreThoseOfTheCode(t *testing.T) {
	m := load(t)
	compared := 0
	for _, format := range formats {
		name := "docs/format/" + format + ".md"
		values := map[string][]uint64{}
		for _, dir := range codeDirs(m.docs[name]) {
			m.constants(dir, values)
		}
		for _, c := range claims(m.docs[name]) {
			have := values[c.name]
			if len(have) == 0 {
				continue // no number in the code
			}
			compared++
			same := false
			for _, v := range have {
				same = same || v == c.value
			}
			if !same {
				t.Errorf("%s says that %s is %d, the code says %d", name, c.name, c.value, have)
			}
		}
	}
	t.Logf("%d numbers compared", compared)
	if compared < leastCompared {
		t.Errorf("%d numbers compared, expected at least %d: do the documents still look as this test expects?", compared, leastCompared)
	}
}

// constants evaluates the integer constants of a package. What depends on other packages stays unknown.
func (m *module) constants(dir string, values map[string][]uint64) {
	var files []*ast.File
	for _, s := range m.packages()[dir] {
		if !s.isTest() {
			files = append(files, s.file)
		}
	}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	p, _ := conf.Check(dir, m.fset, files, nil) // what cannot be known without imports is an error each
	if p == nil {
		return
	}
	for _, name := range p.Scope().Names() {
		c, ok := p.Scope().Lookup(name).(*types.Const)
		if !ok || c.Val().Kind() != constant.Int {
			continue
		}
		if v, exact := constant.Uint64Val(c.Val()); exact {
			values[name] = append(values[name], v)
		}
	}
}

// noImports makes the type checker do without other packages.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// claim is a number that a document gives for a constant.
type claim struct {
	name  string
	value uint64
}

// claims finds the numbers in running text ("`MaxBlob`, 64 MiB") and those in tables.
func claims(text string) []claim {
	var list []claim
	for _, at := range withNumber.FindAllStringSubmatchIndex(text, -1) {
		found := withNumber.FindStringSubmatch(text[at[0]:at[1]])
		enumeration := strings.HasPrefix(text[at[1]:], "`") // "1 `Nodes`, 2 `Values`"
		if v, ok := number(found[2], found[3]); ok && !enumeration {
			list = append(list, claim{found[1], v})
		}
	}
	var header []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			header = nil
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if header == nil {
			header = cells
			continue
		}
		list = append(list, rowClaims(header, cells)...)
	}
	return list
}

// rowClaims finds the numbers in one row of a table: the cell with a constant's name alone, and the one of a column that says
// what its number is.
func rowClaims(header, cells []string) []claim {
	var names []string
	for _, c := range cells {
		if q := quoted.FindStringSubmatch(c); q != nil && q[0] == c {
			names = append(names, q[1])
		}
	}
	var list []claim
	for i, column := range header {
		if len(names) != 1 || i >= len(cells) {
			continue
		}
		v, ok := number(cells[i], "")
		switch {
		case !ok:
		case column == "offset" || column == "number" || column == "value":
			list = append(list, claim{names[0], v})
		case column == "bit" && v < 64:
			list = append(list, claim{names[0], 1 << v})
		}
	}
	return list
}

// number reads a number as the documents write it.
func number(digits, unit string) (uint64, bool) {
	v, err := strconv.ParseUint(strings.ReplaceAll(digits, ",", ""), 0, 64)
	switch strings.TrimSpace(unit) {
	case "KiB":
		v <<= 10
	case "MiB":
		v <<= 20
	case "GiB":
		v <<= 30
	}
	return v, err == nil
}
