package index

import (
	"bytes"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// errNotWhole is for Fields that are neither a raw document nor can be had as one.
var errNotWhole = errors.New("index: fields of a document that cannot be had as a whole")

// Codes of MongoDB's that have numbers only.
const (
	codeAmbiguousField mongoerror.Code = 16746
	codeHashedArray    mongoerror.Code = 16766
)

// appendPlain makes the key of a document that has no array on the way of a component, and looks up each field once. done is false when
// it met an array.
//
// It is compiled for raw documents by themselves, so that looking into one takes no conversion.
func appendPlain[F path.Fields](d *Definition, e *Entries, doc F) (done bool, err error) {
	exact, missing := true, 0
	for i := range d.Components {
		v, isArray := d.Components[i].descend(doc.Lookup(d.Components[i].parts[0]))
		if isArray && d.kind == hashed {
			return false, errHashedArray(d.Components[i].Path)
		}
		if isArray {
			return false, nil
		}
		if v.Type == 0 {
			missing++
		}
		var same bool
		e.arena, same = d.appendComponent(e.arena, i, v)
		exact = exact && same
	}
	if d.Sparse && missing == len(d.Components) {
		return true, nil
	}
	e.found = append(e.found, entry{to: len(e.arena), exact: exact})
	return true, nil
}

func errHashedArray(path string) error {
	return mongoerror.New(codeHashedArray, "hashed indexes do not currently support array values. Found array at path: %s", path)
}

// descend follows the path from its first field on, if that is there, through embedded documents up to the first array.
func (c *Component) descend(v bsoncore.Value, _ bool) (found bsoncore.Value, isArray bool) {
	for _, name := range c.parts[1:] {
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return bsoncore.Value{}, v.Type == bsoncore.TypeArray
		}
		v, _ = path.Lookup(v.Data, name)
	}
	return v, v.Type == bsoncore.TypeArray
}

// appendComponent appends a value that is not expanded further.
func (d *Definition) appendComponent(dst []byte, i int, v bsoncore.Value) (grown []byte, exact bool) {
	exact = v.Type != 0 && d.Components[i].Kind < Hashed && keyenc.Exact(v, d.Collation)
	return d.AppendValue(dst, i, v), exact
}

// frame is the state of one level of expanding arrays.
type frame struct {
	fixed      []bsoncore.Value // the value of each component whose path has been followed to the end
	at         []int            // how many parts of each path have been followed
	positional []positional
}

// positional is an element that a component names by its position in the array above, as "a.0" does.
type positional struct {
	element bsoncore.Value // Type 0: there is none
	found   bsoncore.Value // what is farther down the path, up to the next array
	at      int
}

// frame returns the frame of a level, a copy of the one above.
func (e *Entries) frame(level, n int) *frame {
	for len(e.frames) <= level {
		e.frames = append(e.frames, frame{})
	}
	f := &e.frames[level]
	f.fixed, f.at, f.positional = f.fixed[:0], f.at[:0], f.positional[:0]
	if level == 0 {
		for range n {
			f.fixed, f.at, f.positional = append(f.fixed, bsoncore.Value{}), append(f.at, 0), append(f.positional, positional{})
		}
		return f
	}
	above := &e.frames[level-1]
	f.fixed = append(f.fixed, above.fixed...)
	f.at = append(f.at, above.at...)
	for range n {
		f.positional = append(f.positional, positional{})
	}
	return f
}

// expand makes the keys of a document with arrays on the way of components.
func (d *Definition) expand(e *Entries, doc bsoncore.Document) error {
	f := e.frame(0, len(d.Components))
	for i, c := range d.Components {
		if c.Wildcard {
			f.at[i] = len(c.parts) // its values are put in at the end
		}
	}
	return d.expandLevel(e, 0, doc, 0)
}

// expandLevel follows all paths from one document, to their ends or to the next array, of which there may be one: each of its elements
// is a document, a value, or both, on the next level.
func (d *Definition) expandLevel(e *Entries, level int, doc []byte, missing int) error {
	array, through := bsoncore.Value{}, uint64(0) // through: the components that met the array
	arrayPath := ""
	whole := false // arrays are values as a whole
	f := &e.frames[level]
	for i := range d.Components {
		c := &d.Components[i]
		if f.at[i] == len(c.parts) {
			continue
		}
		v, at, nested, err := c.follow(doc, f.at[i], &f.positional[i])
		switch {
		case err != nil:
			return err
		case v.Type == 0:
			f.fixed[i], f.at[i] = v, len(c.parts)
			missing++
		case v.Type != bsoncore.TypeArray:
			f.fixed[i], f.at[i] = v, len(c.parts)
		case array.Type != 0 && &array.Data[0] != &v.Data[0]:
			return mongoerror.New(mongoerror.CannotIndexParallelArrays, "cannot index parallel arrays [%s] [%s]", c.parts[at-1], arrayPath)
		default:
			array, arrayPath = v, c.parts[at-1]
			through |= 1 << i
			f.at[i] = at
		}
		whole = whole || nested
	}
	if array.Type == 0 {
		if !d.Sparse || missing < len(d.Components) {
			return d.add(e, f.fixed)
		}
		return nil
	}
	e.Multikey |= through
	return d.expandArray(e, level, array, through, whole, missing)
}

// follow follows a component's path from a document, or from the element that it names by its position. nested tells that this
// element is an array itself.
func (c *Component) follow(doc []byte, at int, p *positional) (v bsoncore.Value, now int, nested bool, err error) {
	v, ok := path.Lookup(doc, c.parts[at])
	switch {
	case ok && p.element.Type != 0:
		return v, at, false, mongoerror.New(codeAmbiguousField,
			"Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '%s'", c.parts[at])
	case ok:
		v, at = c.down(v, at+1)
		return v, at, false, nil
	case p.element.Type != 0:
		return p.found, p.at, p.element.Type == bsoncore.TypeArray, nil
	}
	return v, at, false, nil
}

// down follows the path through embedded documents up to the first array.
func (c *Component) down(v bsoncore.Value, at int) (bsoncore.Value, int) {
	for ; at < len(c.parts) && v.Type != bsoncore.TypeArray; at++ {
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return bsoncore.Value{}, at
		}
		var ok bool
		if v, ok = path.Lookup(v.Data, c.parts[at]); !ok {
			return bsoncore.Value{}, at
		}
	}
	return v, at
}

// expandArray makes the keys of each element of an array.
func (d *Definition) expandArray(e *Entries, level int, array bsoncore.Value, through uint64, whole bool, missing int) error {
	f := &e.frames[level]
	for i := range d.Components {
		if c := &d.Components[i]; through&(1<<i) != 0 && f.at[i] < len(c.parts) {
			f.positional[i] = c.positionalOf(array.Data, f.at[i])
		}
	}
	elements := path.ElementsOf(array.Data)
	_, element, ok := elements.Next()
	if !ok {
		return d.expandElement(e, level, array, undefined(), through, false, missing)
	}
	for ; ok; _, element, ok = elements.Next() {
		if err := d.expandElement(e, level, array, element, through, whole, missing); err != nil {
			return err
		}
	}
	return nil
}

// positionalOf returns the element of an array that the path goes on with, if it names one.
func (c *Component) positionalOf(array []byte, at int) (p positional) {
	v, ok := path.Lookup(array, c.parts[at])
	if ok {
		p.element = v
		p.found, p.at = c.down(v, at+1)
	}
	return p
}

// expandElement makes the keys of one element.
func (d *Definition) expandElement(e *Entries, level int, array, element bsoncore.Value, through uint64, whole bool, missing int) error {
	f := e.frame(level+1, len(d.Components))
	for i := range d.Components {
		if through&(1<<i) == 0 {
			continue
		}
		c := &d.Components[i]
		if f.at[i] == len(c.parts) {
			f.fixed[i] = element
			if whole {
				f.fixed[i] = array
			}
			continue
		}
		f.positional[i] = e.frames[level].positional[i]
	}
	var doc []byte // of other elements nothing is looked up
	if element.Type == bsoncore.TypeEmbeddedDocument {
		doc = element.Data
	}
	return d.expandLevel(e, level+1, doc, missing)
}

// The most keys that a document may have in an index, as in MongoDB, and the most bytes of them.
const (
	maxKeys     = 100000
	maxKeyBytes = 64 << 20
)

// add adds the key of the values of all components.
func (d *Definition) add(e *Entries, values []bsoncore.Value) error {
	if d.kind == wild {
		return d.addPairs(e, values)
	}
	from, exact := len(e.arena), true
	for i, v := range values {
		var same bool
		e.arena, same = d.appendComponent(e.arena, i, v)
		exact = exact && same
	}
	if e.wanted != nil && bytes.Equal(e.arena[from:], e.wanted) {
		e.values = slices.Clone(values)
	}
	return e.close(from, exact)
}

// Values returns the values of a document, one for each component, of which it has a key: the key by itself does not tell numbers of
// different types apart, nor strings that are equal by a collation. That of a geometry is one of its cells. What the document does not
// have is null. ok is false when the document has no such key.
func (d *Definition) Values(doc bsoncore.Document, key []byte) (values []bsoncore.Value, ok bool) {
	e, enter := &Entries{wanted: key}, d.expand
	if d.kind == sphere {
		enter = d.appendSphere
	}
	if d.kind == wild || enter(e, doc) != nil || e.values == nil {
		return nil, false
	}
	for i, v := range e.values {
		if v.Type == 0 {
			e.values[i].Type = bsoncore.TypeNull
		}
	}
	return e.values, true
}

// close ends the key that begins at from.
func (e *Entries) close(from int, exact bool) error {
	e.found = append(e.found, entry{from: from, to: len(e.arena), exact: exact})
	if len(e.found) > maxKeys || len(e.arena) > maxKeyBytes {
		return mongoerror.New(mongoerror.CannotBuildIndexKeys, "Index build failed: a document has more than %d keys, or %d bytes of keys", maxKeys, maxKeyBytes)
	}
	return nil
}
