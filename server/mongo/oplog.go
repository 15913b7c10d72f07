package mongo

import (
	"context"
	"maps"
	"slices"

	"github.com/pandodb/pando/document"
)

// isOplog reports whether a find reads the oplog.
func (r *request) isOplog(c *document.Collection) bool {
	return r.db == "local" && c.Name() == "oplog.rs"
}

// openOplog opens a cursor over the oplog.
func (r *request) openOplog(context.Context, any, *document.FindOptions, bool) (*document.Cursor, error) {
	return nil, document.NewError(codeNotSupported, "the oplog cannot be read")
}

// sortedNames returns the keys of a map in their order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
