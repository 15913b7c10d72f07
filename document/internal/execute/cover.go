package execute

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
)

// coverer makes documents of the entries of an index: those of its fields only.
type coverer struct {
	d      *index.Definition
	root   branch
	values []bsoncore.Value
	bytes  []byte
	doc    []byte
}

// branch is a field that comes from an index: a component, or a document of such.
type branch struct {
	name      string
	component int // -1: a document
	fields    []*branch
}

func newCoverer(d *index.Definition) *coverer {
	c := &coverer{d: d, root: branch{component: -1}}
	for i, part := range d.Components {
		// What lies within another component's path is in that one's value.
		if !readable(part) || slices.ContainsFunc(d.Components, func(o index.Component) bool {
			return readable(o) && strings.HasPrefix(part.Path, o.Path+".")
		}) {
			continue
		}
		at := &c.root
		names := strings.Split(part.Path, ".")
		for _, name := range names[:len(names)-1] {
			at = at.child(name)
		}
		at.fields = append(at.fields, &branch{name: names[len(names)-1], component: i})
	}
	return c
}

// readable reports whether the values of a component are those of its field.
func readable(c index.Component) bool {
	return !c.Wildcard && (c.Kind == index.Ascending || c.Kind == index.Descending)
}

// child returns the document of a name below b.
func (b *branch) child(name string) *branch {
	for _, f := range b.fields {
		if f.name == name && f.component < 0 {
			return f
		}
	}
	f := &branch{name: name, component: -1}
	b.fields = append(b.fields, f)
	return f
}

// document makes the document of an entry, valid until the next call.
func (c *coverer) document(entry []byte) ([]byte, error) {
	c.values, c.bytes = c.values[:0], c.bytes[:0]
	rest := entry
	for _, part := range c.d.Components {
		var v bsoncore.Value
		var err error
		if part.Wildcard {
			if rest, err = keyenc.Skip(rest, false); err != nil {
				return nil, err
			}
		}
		if v, c.bytes, rest, err = keyenc.Decode(c.bytes, rest, part.Kind == index.Descending); err != nil {
			return nil, err
		}
		c.values = append(c.values, v)
	}
	c.doc = c.append(c.doc[:0], &c.root)
	return c.doc, nil
}

func (c *coverer) append(dst []byte, b *branch) []byte {
	at, dst := bsoncore.AppendDocumentStart(dst)
	for _, f := range b.fields {
		if f.component >= 0 {
			dst = bsoncore.AppendValueElement(dst, f.name, c.values[f.component])
			continue
		}
		dst = bsoncore.AppendHeader(dst, bsoncore.TypeEmbeddedDocument, f.name)
		dst = c.append(dst, f)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at) // which fails for a wrong index only
	return dst
}
