package document

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/query"
)

var updatePage = flag.Bool("update", false, "write the table of the languages into docs/mongodb.md")

const (
	languagesStart = "<!-- languages: made by go test ./document -run TestTheTableOfLanguages -update -->\n"
	languagesEnd   = "<!-- end of languages -->\n"
	languagesPage  = "../docs/mongodb.md"
)

// TestTheTableOfLanguages holds docs/mongodb.md to the operators that the parsers know: the names in their switches.
func TestTheTableOfLanguages(t *testing.T) {
	page, err := os.ReadFile(languagesPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), languagesStart)
	old, after, ok2 := strings.Cut(rest, languagesEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table of the languages", languagesPage)
	}
	fresh := tableOfLanguages(t)
	if old == fresh {
		return
	}
	if !*updatePage {
		t.Fatalf("the table in %s is not that of the parsers: go test ./document -run TestTheTableOfLanguages -update", languagesPage)
	}
	if err := os.WriteFile(languagesPage, []byte(before+languagesStart+fresh+languagesEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// language is a kind of names, and the functions whose switches list them.
type language struct {
	kind, dir string
	functions []string
	refused   func(name string) bool // of a name that is known, but not carried out; nil: there is none
}

func languages(t *testing.T) []language {
	t.Helper()
	special := casesOf(t, "internal/aggregate", []string{"isSpecial"})
	answered := append(casesOf(t, ".", []string{"Special"}), casesOf(t, "../server/mongo", []string{"specialStage"})...)
	answered = append(answered, "$changeStream")
	condition := func(name string) bsoncore.Document {
		return bsoncore.NewDocumentBuilder().AppendString(name, "").Build()
	}
	isRefused := func(err error) bool { return err != nil && strings.Contains(err.Error(), "not supported") }
	return []language{
		{"query operators, of a document", "query", []string{"whole"}, func(name string) bool {
			_, err := query.Parse(condition(name), nil)
			return isRefused(err) || name == "$text" || name == "$not"
		}},
		{"query operators, of a field", "query", []string{"operator"}, func(name string) bool { return name == "$where" }},
		{"projection operators", "projection", []string{"operator"}, nil},
		{"update operators", "update", []string{"operatorOf"}, nil},
		{"modifiers of $push", "update", []string{"parsePush"}, nil},
		{"stages", "aggregate", []string{"stage", "simpleStage", "blockingStage", "outerStage", "isSpecial"}, func(name string) bool {
			_, err := aggregate.Parse([]bsoncore.Document{condition(name)}, &aggregate.Options{Collection: "c"})
			return isRefused(err) || slices.Contains(special, name) && !slices.Contains(answered, name)
		}},
		{"accumulators", "aggregate", []string{"accumulation"}, func(name string) bool { return name == "$accumulator" }},
		{"window functions beside them", "aggregate", []string{"parseArgument"},
			func(name string) bool { return name == "$mergeObjects" || name == "$accumulator" }}, // as window functions
		{"expressions", "expression", []string{"findLogic", "findArithmetic", "findTrigonometry", "findString", "findArray", "findSet",
			"findDate", "findConversion", "findObject", "findAccumulator"}, func(name string) bool {
			_, err := expression.Parse(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: condition(name)}, nil)
			return isRefused(err)
		}},
	}
}

func tableOfLanguages(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n| kind | names |\n| --- | --- |\n")
	var refused []string
	for _, l := range languages(t) {
		var names []string
		for _, name := range casesOf(t, "internal/"+l.dir, l.functions) {
			if l.refused != nil && l.refused(name) {
				refused = append(refused, name)
			} else {
				names = append(names, name)
			}
		}
		fmt.Fprintf(&b, "| %s (%d) | %s |\n", l.kind, len(names), quoted(names))
	}
	refused = slices.DeleteFunc(refused, func(name string) bool { return name == "$not" || name == "$mergeObjects" })
	slices.Sort(refused)
	fmt.Fprintf(&b, "| known, and refused | %s |\n\n", quoted(slices.Compact(refused)))
	return b.String()
}

func quoted(names []string) string {
	var list []string
	for _, name := range names {
		list = append(list, "`"+name+"`")
	}
	return strings.Join(list, " ")
}

// casesOf returns the names with $ in the cases of the functions of a package, sorted.
func casesOf(t *testing.T, dir string, functions []string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && slices.Contains(functions, f.Name.Name) {
				more := casesIn(f)
				names, found[f.Name.Name] = append(names, more...), len(more) > 0 || found[f.Name.Name]
			}
		}
	}
	for _, f := range functions {
		if !found[f] {
			t.Errorf("%s: no names in %s", dir, f)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func casesIn(f *ast.FuncDecl) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CaseClause)
		if !ok {
			return true
		}
		for _, e := range c.List {
			if literal, ok := e.(*ast.BasicLit); ok && strings.HasPrefix(literal.Value, `"$`) {
				name, _ := strconv.Unquote(literal.Value)
				names = append(names, name)
			}
		}
		return true
	})
	return names
}
