package tidy

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decoderName matches the functions that make sense of bytes somebody else may have written.
var decoderName = regexp.MustCompile(`^((New)?[Dd]ecode|[Pp]arse)`)

// trusted are functions with such a name whose bytes have been verified before, or that are fuzzed from elsewhere.
var trusted = allowList{}

// calls are the functions of one package: what each mentions, and which take bytes.
type calls struct {
	mentions map[string]map[string]bool // function or method, to the names in its body
	bytes    map[string]bool            // not in tests, with a []byte parameter
}

func TestDecodersAreFuzzed(t *testing.T) {
	m := load(t)
	used := map[string]bool{}
	for dir, sources := range m.packages() {
		c := calls{mentions: map[string]map[string]bool{}, bytes: map[string]bool{}}
		for _, s := range sources {
			c.add(s)
		}
		reached := c.reachedFromFuzz()
		for name := range c.bytes {
			switch key := dir + "." + name; {
			case !decoderName.MatchString(name) || reached[name]:
			case trusted[key] != "":
				used[key] = true
			default:
				t.Errorf("no Fuzz target of package %s reaches %s", dir, name)
			}
		}
	}
	trusted.unused(t, used)
}

// add takes the functions of a file in. Methods of one name are taken for one: names are all that is looked at.
func (c *calls) add(s *source) {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		name := f.Name.Name
		if c.mentions[name] == nil {
			c.mentions[name] = map[string]bool{}
		}
		if !s.isTest() && slices.ContainsFunc(f.Type.Params.List, takesBytes) {
			c.bytes[name] = true
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				c.mentions[name][id.Name] = true
			}
			return true
		})
	}
}

func takesBytes(p *ast.Field) bool {
	a, ok := p.Type.(*ast.ArrayType)
	if !ok {
		return false
	}
	e, ok := a.Elt.(*ast.Ident)
	return ok && e.Name == "byte"
}

// reachedFromFuzz returns the functions that Fuzz targets call, directly or not.
func (c *calls) reachedFromFuzz() map[string]bool {
	reached := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		for next := range c.mentions[name] {
			if c.mentions[next] != nil {
				follow(next)
			}
		}
	}
	for name := range c.mentions {
		if strings.HasPrefix(name, "Fuzz") {
			follow(name)
		}
	}
	return reached
}
