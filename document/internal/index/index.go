// Package index says what a secondary index is: its definition, the keys that a document has in it, and the intervals of keys that
// a condition asks for.
//
// It promises that a specification is accepted, refused and shown as MongoDB 7.0 does it, with these exceptions: text indexes belong to
// the search and are refused here, as are 2d and clustered indexes; and it promises that the keys of a document are those that MongoDB
// makes of it, so that queries answered from an index see what they see without one. It never changes documents and keeps no state. All
// errors are *mongoerror.Error. An entry key is the encodings (package keyenc) of its components one after the other:
//
//   - An ordered component is the value, inverted when it is descending. A missing value is null, an empty array undefined; of other
//     arrays each element has a key of its own.
//   - A hashed component is the XXH3-64 of the value's encoding, as an int64. Arrays are refused.
//   - A 2dsphere component is the id of an S2 cell, as an int64; a value has a key for each cell that covers it.
//   - A wildcard component is two encodings: the path as a string, always ascending and without the collation, and the value there. In a
//     compound index a document without any such value has one key with MinKey for both.
package index

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
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

	parts []string // Path taken apart
}

// Definition is an index, parsed and validated: immutable, safe for concurrent use.
type Definition struct {
	Name               string
	Keys               bsoncore.Document // the key pattern as given
	Components         []Component
	Unique             bool
	Prepared           bool // prepareUnique: not unique, but it takes no more duplicates
	Sparse             bool
	Hidden             bool
	Partial            *query.Filter // nil: all documents
	PartialSpec        bsoncore.Document
	TTL                int64 // expireAfterSeconds; -1: none
	Collation          *collation.Collation
	WildcardProjection bsoncore.Document
	Spec               bsoncore.Document // everything as listIndexes shows it, with v, key, name

	kind     patternKind
	wildcard *wildcard
}

// Distinct reports whether a document that has an entry of another one is refused.
func (d *Definition) Distinct() bool { return d.Unique || d.Prepared }

// CheckPrepared refuses a prepareUnique that Parse did not heed. Stored indexes may have it: it was once taken without a word.
func (d *Definition) CheckPrepared() error {
	if v := d.Spec.Lookup("prepareUnique"); v.Type == 0 || d.Prepared {
		return nil
	}
	return mongoerror.New(mongoerror.CannotCreateIndex, "Invalid index specification %s; an index that is unique, hashed or of a wildcard cannot have the 'prepareUnique' option", documentText(d.Spec))
}

// patternKind is how keys are made.
type patternKind uint8

const (
	ordered patternKind = iota
	hashed              // with a hashed component
	sphere              // with 2dsphere components
	wild                // with a wildcard component
)

// Entries are the keys of one document in one index, encoded by keyenc (all components one after the other), sorted, without
// duplicates. Buffers are reused from call to call.
type Entries struct {
	Keys     [][]byte
	Exact    []bool // Keys[i] decodes to the very values of the document (keyenc.Exact of each)
	Multikey uint64 // bit i: component i met an array

	arena    []byte  // the bytes of all keys
	found    []entry // where in arena they are
	document []byte  // the document, when its fields do not come as raw BSON
	frames   []frame // of package keys.go, one for each level of arrays
	pairs    []pair  // of a wildcard component

	wanted []byte           // a key of which the values are asked; nil: none is
	values []bsoncore.Value // those values
}

// entry is a key in the arena.
type entry struct {
	from, to int
	exact    bool
}

func (e *Entries) reset() {
	e.Keys, e.Exact, e.Multikey = e.Keys[:0], e.Exact[:0], 0
	e.arena, e.found = e.arena[:0], e.found[:0]
}

// finish sorts the keys and drops duplicates. A key that stands for several values is exact when all are.
func (e *Entries) finish() {
	if len(e.found) > 1 {
		slices.SortFunc(e.found, func(a, b entry) int { return bytes.Compare(e.arena[a.from:a.to], e.arena[b.from:b.to]) })
	}
	for _, f := range e.found {
		key := e.arena[f.from:f.to:f.to]
		if n := len(e.Keys); n > 0 && bytes.Equal(e.Keys[n-1], key) {
			e.Exact[n-1] = e.Exact[n-1] && f.exact
			continue
		}
		e.Keys, e.Exact = append(e.Keys, key), append(e.Exact, f.exact)
	}
}

// Append replaces e by the keys of doc. None when the index is sparse or partial and does not hold it. Errors:
// CannotIndexParallelArrays, and the like.
func (d *Definition) Append(e *Entries, doc path.Fields) error {
	e.reset()
	if d.Partial != nil {
		if matched, err := d.Partial.Match(doc); err != nil || !matched {
			return err
		}
	}
	if d.kind == ordered || d.kind == hashed {
		done, err := appendPlain(d, e, doc)
		if done || err != nil {
			e.finish()
			return err
		}
		e.reset()
	}
	raw, err := e.raw(doc)
	if err != nil {
		return err
	}
	switch d.kind {
	case wild:
		err = d.appendWildcard(e, raw)
	case sphere:
		err = d.appendSphere(e, raw)
	default:
		err = d.expand(e, raw)
	}
	if err != nil {
		e.reset()
		return err
	}
	e.finish()
	return nil
}

// AppendRaw is Append for a raw document, which it does not put on the heap.
func (d *Definition) AppendRaw(e *Entries, doc bsoncore.Document) error {
	if d.Partial == nil && (d.kind == ordered || d.kind == hashed) {
		e.reset()
		done, err := appendPlain(d, e, path.Document(doc))
		if done || err != nil {
			e.finish()
			return err
		}
	}
	return d.Append(e, path.Document(doc))
}

// raw returns the document as BSON: values of Fields are valid until the next Lookup only.
func (e *Entries) raw(doc path.Fields) (bsoncore.Document, error) {
	switch doc := doc.(type) {
	case path.Document:
		return bsoncore.Document(doc), nil
	case path.Whole:
		var err error
		e.document, err = doc.Document(e.document[:0])
		return e.document, err
	}
	return nil, errNotWhole
}
