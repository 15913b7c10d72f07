package index

import (
	"bytes"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/path"
)

// wildcard is which fields of documents a wildcard component takes in.
type wildcard struct {
	component int
	fields    *selection // nil: all but _id
	id        bool       // _id, too
}

// selection is a projection that includes or excludes paths.
type selection struct {
	include bool
	root    *branch
}

// branch is a name in a selection; without children it is the end of a path.
type branch struct{ children map[string]*branch }

// pair is a path with a value under it.
type pair struct {
	path  string
	value bsoncore.Value
}

// Holds reports whether an index with a wildcard component has an entry of that for each value at a path: it is neither left out, nor are
// only parts of what is there taken in.
func (d *Definition) Holds(path string) bool {
	if d.wildcard == nil {
		return false
	}
	in, decided := d.wildcard.decides(strings.Split(path, "."))
	if !decided {
		return !d.wildcard.fields.include // where fields are named, what is there itself is not among them
	}
	return in
}

// appendWildcard makes the keys of an index with a wildcard component.
func (d *Definition) appendWildcard(e *Entries, doc bsoncore.Document) error {
	w := d.wildcard
	e.pairs = e.pairs[:0]
	selected := []byte(doc)
	if w.fields != nil {
		selected = w.fields.apply(nil, doc, w.fields.root, !w.id)
	}
	w.collect(e, selected, "", w.fields == nil && !w.id)
	if len(e.pairs) == 0 && len(d.Components) == 1 {
		return nil
	}
	return d.expand(e, doc)
}

// collect collects the values under all paths of a document: what is no array and no document, empty ones, and arrays within arrays. A name
// with a dot in it looks like a path to another value: it counts as an array, as a record may have several entries under the path then.
func (w *wildcard) collect(e *Entries, doc []byte, prefix string, withoutID bool) {
	elements := path.ElementsOf(doc)
	for name, v, ok := elements.Next(); ok; name, v, ok = elements.Next() {
		if withoutID && string(name) == "_id" {
			continue
		}
		if bytes.IndexByte(name, '.') >= 0 {
			e.Multikey |= 1 << w.component
		}
		w.collectValue(e, v, join(prefix, string(name)), false)
	}
}

func (w *wildcard) collectValue(e *Entries, v bsoncore.Value, at string, inArray bool) {
	switch {
	case v.Type == bsoncore.TypeArray && !inArray:
		e.Multikey |= 1 << w.component
		elements := path.ElementsOf(v.Data)
		_, element, ok := elements.Next()
		if !ok {
			e.pairs = append(e.pairs, pair{at, undefined()})
		}
		for ; ok; _, element, ok = elements.Next() {
			w.collectValue(e, element, at, true)
		}
	case v.Type == bsoncore.TypeEmbeddedDocument && len(v.Data) > bsoncore.EmptyDocumentLength:
		w.collect(e, v.Data, at, false)
	default:
		e.pairs = append(e.pairs, pair{at, v})
	}
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// addPairs adds a key for each path with a value, beside the values of the other components.
func (d *Definition) addPairs(e *Entries, values []bsoncore.Value) error {
	if len(e.pairs) == 0 {
		return d.addPair(e, values, nil)
	}
	for i := range e.pairs {
		if err := d.addPair(e, values, &e.pairs[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *Definition) addPair(e *Entries, values []bsoncore.Value, p *pair) error {
	from, exact := len(e.arena), true
	for i, v := range values {
		same := true
		switch {
		case i != d.wildcard.component:
			e.arena, same = d.appendComponent(e.arena, i, v)
		case p == nil:
			e.arena = keyenc.Append(e.arena, minKey(), false, nil)
			e.arena = d.AppendValue(e.arena, i, minKey())
			same = false
		default:
			e.arena = d.AppendPath(e.arena, p.path)
			e.arena, same = d.appendComponent(e.arena, i, p.value)
		}
		exact = exact && same
	}
	return e.close(from, exact)
}

// apply appends what a selection leaves of a document.
func (s *selection) apply(dst, doc []byte, b *branch, withoutID bool) []byte {
	start, dst := bsoncore.AppendDocumentStart(dst)
	elements := path.ElementsOf(doc)
	for name, v, ok := elements.Next(); ok; name, v, ok = elements.Next() {
		if withoutID && string(name) == "_id" {
			continue
		}
		next := b.children[string(name)]
		switch {
		case next == nil && s.include, next != nil && next.children == nil && !s.include:
		case next == nil || next.children == nil:
			dst = bsoncore.AppendValueElement(dst, string(name), v)
		default:
			dst = s.applyValue(dst, string(name), v, next)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, start) // the start is in dst
	return dst
}

// applyValue appends what a selection leaves of a field through which paths lead.
func (s *selection) applyValue(dst []byte, name string, v bsoncore.Value, b *branch) []byte {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		return s.apply(bsoncore.AppendHeader(dst, v.Type, name), v.Data, b, false)
	case bsoncore.TypeArray:
		start, dst := bsoncore.AppendDocumentStart(bsoncore.AppendHeader(dst, v.Type, name))
		elements := path.ElementsOf(v.Data)
		for name, element, ok := elements.Next(); ok; name, element, ok = elements.Next() {
			if element.Type == bsoncore.TypeArray {
				dst = s.keep(dst, string(name), element) // it is not looked into
				continue
			}
			dst = s.applyValue(dst, string(name), element, b)
		}
		dst, _ = bsoncore.AppendDocumentEnd(dst, start) // the start is in dst
		return dst
	}
	return s.keep(dst, name, v)
}

// keep appends a field that paths cannot lead through: no path is included there, or none excluded.
func (s *selection) keep(dst []byte, name string, v bsoncore.Value) []byte {
	if s.include {
		return dst
	}
	return bsoncore.AppendValueElement(dst, name, v)
}

// insert adds a path. It returns the rest of the path that collides with one that is there already.
func (b *branch) insert(dotted string) (rest string, ok bool) {
	for {
		name, more, deeper := strings.Cut(dotted, ".")
		if b.children == nil {
			b.children = map[string]*branch{}
		}
		next := b.children[name]
		switch {
		case next == nil:
			next = &branch{}
			b.children[name] = next
			if deeper {
				next.children = map[string]*branch{}
			}
		case !deeper:
			return name, false
		case next.children == nil:
			return more, false
		}
		if !deeper {
			return "", true
		}
		b, dotted = next, more
	}
}
