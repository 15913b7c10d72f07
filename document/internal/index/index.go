// Package index says what a secondary index is: its definition, the keys that a document has in it, and the intervals of keys that
// a condition asks for.
package index

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// Kind is how a component of a key pattern orders its values.
type Kind uint8

// The kinds of components.
const (
	Ascending Kind = iota
	Descending
	Hashed
	Sphere // 2dsphere
)

// Component is one part of a key pattern.
type Component struct {
	Path     string
	Kind     Kind
	Wildcard bool // Path is what stands before $**, empty for all
}

// Definition is an index, parsed and validated: immutable, safe for concurrent use.
type Definition struct {
	Name               string
	Keys               bsoncore.Document // the key pattern as given
	Components         []Component
	Unique             bool
	Sparse             bool
	Hidden             bool
	Partial            *query.Filter // nil: all documents
	PartialSpec        bsoncore.Document
	TTL                int64 // expireAfterSeconds; -1: none
	Collation          *collation.Collation
	WildcardProjection bsoncore.Document
	Spec               bsoncore.Document // everything as listIndexes shows it, with v, key, name
}

// Parse reads an index specification as createIndexes has it ({key: ..., name: ..., unique: ...}); a missing name is made from the
// keys. Errors: CannotCreateIndex, BadValue, InvalidOptions, TypeMismatch as MongoDB has them.
func Parse(spec bsoncore.Document, defaultCollation *collation.Collation) (*Definition, error) {
	panic("skeleton")
}

// Entries are the keys of one document in one index, encoded by keyenc (all components one after the other), sorted, without
// duplicates. Buffers are reused from call to call.
type Entries struct {
	Keys     [][]byte
	Exact    []bool // Keys[i] decodes to the very values of the document (keyenc.Exact of each)
	Multikey uint64 // bit i: component i met an array
}

// Append replaces e by the keys of doc. None when the index is sparse or partial and does not hold it. Errors:
// CannotIndexParallelArrays, and the like.
func (d *Definition) Append(e *Entries, doc path.Fields) error { panic("skeleton") }
