package query

import (
	"github.com/pandodb/pando/document/internal/expression"
)

// exprFields returns the top-level names of the fields that an expression reads.
func exprFields(e *expression.Expression) (names []string, whole bool) {
	paths, whole := e.Fields()
	seen := map[string]bool{}
	for _, p := range paths {
		name := firstOf(p)
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, whole
}
