// Package sortkey turns sort specifications into bytes: the keys of documents compare, as bytes, in the order that MongoDB
// sorts the documents in. Whoever sorts (find, $sort, windows, top-k accumulators) sorts byte strings.
//
// It promises MongoDB's rules: a missing field counts as null, an empty array as undefined, and of an array the lowest element
// counts, or the highest where the sort descends; of a pattern of several paths through one array the lowest combination
// counts. It never changes a document. Parse fails with MongoDB's codes; Append fails only when two paths lead through
// different arrays.
package sortkey

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// maxParts is MongoDB's bound on the components of a pattern.
const maxParts = 32

// Part is a component of a pattern.
type Part struct {
	Path       string
	Descending bool
	Meta       string // {$meta: Meta} instead of a direction; Path is only a name then

	segments []string
}

// Pattern is a parsed sort specification: immutable, safe for concurrent use.
type Pattern struct {
	parts     []Part
	collation *collation.Collation
	simple    bool // all paths are top-level names
}

// Parse parses a specification such as {a: 1, "b.c": -1}. c may be nil. An empty specification fails, as it does in $sort.
func Parse(spec bsoncore.Document, c *collation.Collation) (*Pattern, error) {
	elements, err := spec.Elements()
	if err != nil {
		return nil, err
	}
	if len(elements) == 0 {
		return nil, mongoerror.New(mongoerror.Code(15976), "$sort stage must have at least one sort key")
	}
	p := &Pattern{collation: c, simple: true}
	seen := map[string]bool{}
	for _, e := range elements {
		part, err := parsePart(e.Key(), e.Value())
		if err != nil {
			return nil, err
		}
		if seen[part.Path] {
			return nil, mongoerror.New(mongoerror.Code(7472500), "$sort key must not contain duplicate keys (field: '%s')", part.Path)
		}
		seen[part.Path] = true
		p.simple = p.simple && len(part.segments) == 1
		p.parts = append(p.parts, part)
	}
	if len(p.parts) > maxParts {
		return nil, mongoerror.New(mongoerror.BadValue, "too many compound keys")
	}
	return p, nil
}

func parsePart(name string, v bsoncore.Value) (Part, error) {
	part := Part{Path: name}
	if v.Type == bsoncore.TypeEmbeddedDocument {
		return parseMeta(part, v.Document())
	}
	n, ok := direction(v)
	switch {
	case !ok:
		return part, mongoerror.New(mongoerror.Code(15974), "Illegal key in $sort specification: %s: %s", name, v)
	case n != 1 && n != -1:
		return part, mongoerror.New(mongoerror.Code(15975), "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
	}
	part.Descending = n < 0
	var err error
	part.segments, err = path.Split(name)
	return part, err
}

// direction reads a number; as in MongoDB fractions are cut off.
func direction(v bsoncore.Value) (int64, bool) {
	switch v.Type {
	case bsoncore.TypeInt32:
		return int64(v.Int32()), true
	case bsoncore.TypeInt64:
		return v.Int64(), true
	case bsoncore.TypeDouble:
		return int64(v.Double()), true
	case bsoncore.TypeDecimal128:
		n, exact := decimal(v)
		if !exact {
			return 0, true // a number, but no direction
		}
		return n, true
	}
	return 0, false
}

func parseMeta(part Part, spec bsoncore.Document) (Part, error) {
	e, err := spec.IndexErr(0)
	if err != nil || e.Key() != "$meta" {
		return part, mongoerror.New(mongoerror.Code(17312), "$meta is the only expression supported by $sort right now")
	}
	if _, err := spec.IndexErr(1); err == nil {
		return part, mongoerror.New(mongoerror.FailedToParse, "Cannot have additional keys in a $meta sort specification")
	}
	name, _ := e.Value().StringValueOK()
	switch name {
	case "textScore", "randVal", "searchScore", "searchHighlights", "geoNearDistance", "geoNearPoint", "indexKey", "vectorSearchScore":
		part.Meta, part.segments, part.Descending = name, []string{part.Path}, name == "textScore"
		return part, nil
	}
	return part, mongoerror.New(mongoerror.Code(31138), "Illegal $meta sort: %s", spec)
}

// Parts returns the components; they must not be changed.
func (p *Pattern) Parts() []Part { return p.parts }

// Paths returns the dotted paths that a key depends on.
func (p *Pattern) Paths() []string {
	var paths []string
	for i := range p.parts {
		if p.parts[i].Meta == "" {
			paths = append(paths, p.parts[i].Path)
		}
	}
	return paths
}

// Append appends the key of a document.
func (p *Pattern) Append(dst []byte, doc path.Fields) ([]byte, error) {
	start := len(dst)
	for i := range p.parts {
		part := &p.parts[i]
		v, array := part.value(doc)
		if array && !p.onlyID() {
			g, err := p.lowest(doc)
			return append(dst[:start], g.best...), err
		}
		dst = keyenc.Append(dst, v, part.Descending, p.collation)
	}
	return dst, nil
}

// Values returns what a document is sorted by, a value for each part: of arrays the elements that count. They live until the next Lookup.
func (p *Pattern) Values(doc path.Fields) ([]bsoncore.Value, error) {
	values := make([]bsoncore.Value, len(p.parts))
	for i := range p.parts {
		v, array := p.parts[i].value(doc)
		if array && !p.onlyID() {
			g, err := p.lowest(doc)
			return g.lowest, err
		}
		values[i] = v
	}
	return values, nil
}

// onlyID reports whether the sort is by _id alone, of which MongoDB takes arrays as a whole.
func (p *Pattern) onlyID() bool { return len(p.parts) == 1 && p.parts[0].Path == "_id" }

// value walks to the value of a part, where no array is on the way.
func (part *Part) value(doc path.Fields) (v bsoncore.Value, array bool) {
	v, ok := doc.Lookup(part.segments[0])
	if !ok {
		return null(), false
	}
	for _, name := range part.segments[1:] {
		if v.Type == bsoncore.TypeArray {
			return v, true
		}
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return null(), false
		}
		if v, ok = path.Lookup(v.Data, name); !ok {
			return null(), false
		}
	}
	return v, v.Type == bsoncore.TypeArray
}

// AppendValues appends the key that a document with these values would have, one for each part. An array counts as a whole.
func (p *Pattern) AppendValues(dst []byte, values []bsoncore.Value) []byte {
	for i := range p.parts {
		v := values[i]
		if v.Type == 0 {
			v = null()
		}
		dst = keyenc.Append(dst, v, p.parts[i].Descending, p.collation)
	}
	return dst
}

// lowest finds the lowest of all keys that the elements of arrays give.
func (p *Pattern) lowest(doc path.Fields) (*generator, error) {
	n := len(p.parts)
	g, top := &generator{pattern: p}, &level{values: make([]bsoncore.Value, n), rest: make([][]string, n), positions: make([]position, n)}
	b := bsoncore.NewDocumentBuilder() // values of doc live until the next Lookup only
	names := map[string]bool{}
	for i := range p.parts {
		top.rest[i] = p.parts[i].segments
		name := top.rest[i][0]
		if v, ok := doc.Lookup(name); ok && !names[name] {
			b.AppendValue(name, v)
			names[name] = true
		}
	}
	return g, g.walk(path.Document(b.Build()), top)
}

// offer keeps the key of the values when it is the lowest so far.
func (g *generator) offer(values []bsoncore.Value) {
	g.buf = g.pattern.AppendValues(g.buf[:0], values)
	if g.best == nil || bytes.Compare(g.buf, g.best) < 0 {
		g.best, g.lowest = append(g.best[:0], g.buf...), append(g.lowest[:0], values...)
	}
}
