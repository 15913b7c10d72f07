package sortkey

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

var (
	null      = bsoncore.Value{Type: bsoncore.TypeNull}
	undefined = bsoncore.Value{Type: bsoncore.TypeUndefined}
)

func decimal(v bsoncore.Value) (int64, bool) { return order.DecimalAt(v.Data).Int64() }

// generator walks through all combinations of array elements, the way the keys of a multikey index are made.
type generator struct {
	pattern   *Pattern
	values    []bsoncore.Value // found so far
	rest      [][]string       // what is left of the paths below the document at hand; nil: values has the part's value
	best, buf []byte
}

// raw is a document as path.Fields.
type raw []byte

// Lookup implements path.Fields.
func (r raw) Lookup(name string) (bsoncore.Value, bool) { return lookup(r, name) }

// step walks one part down to its value, or to an array on the way.
func step(doc path.Fields, segments []string) (v bsoncore.Value, rest []string) {
	v, ok := doc.Lookup(segments[0])
	for segments = segments[1:]; ; segments = segments[1:] {
		switch {
		case !ok:
			return null, nil
		case v.Type == bsoncore.TypeArray || len(segments) == 0:
			return v, segments
		case v.Type != bsoncore.TypeEmbeddedDocument:
			return null, nil
		}
		v, ok = lookup(v.Data, segments[0])
	}
}

// walk takes all parts down through doc; where they meet an array, it goes on with each of its elements.
func (g *generator) walk(doc path.Fields) error {
	values, rests := append([]bsoncore.Value(nil), g.values...), append([][]string(nil), g.rest...)
	defer func() { g.values, g.rest = values, rests }()
	g.values, g.rest = append([]bsoncore.Value(nil), values...), append([][]string(nil), rests...)
	var array []byte
	var through []int
	for i := range g.rest {
		if g.rest[i] == nil {
			continue
		}
		v, rest := step(doc, g.rest[i])
		if v.Type != bsoncore.TypeArray {
			g.values[i], g.rest[i] = v, nil
			continue
		}
		if through != nil && !same(array, v.Data) {
			return mongoerror.New(mongoerror.BadValue, "cannot sort with keys that are parallel arrays")
		}
		array, g.rest[i] = v.Data, rest
		through = append(through, i)
	}
	if through == nil {
		g.offer()
		return nil
	}
	return g.elements(array, through)
}

// same reports whether both are the very same bytes: the same array, not an equal one.
func same(a, b []byte) bool { return len(a) == len(b) && &a[0] == &b[0] }

func (g *generator) elements(array []byte, through []int) error {
	if len(array) <= 5 {
		for _, i := range through {
			if g.values[i] = null; len(g.rest[i]) == 0 {
				g.values[i] = undefined
			}
			g.rest[i] = nil
		}
		return g.walk(raw(array))
	}
	if done, err := g.positions(array, through); done || err != nil {
		return err
	}
	values, rests := g.values, g.rest
	it := walker(array)
	for _, v, ok := it.next(); ok; _, v, ok = it.next() {
		g.values, g.rest = append([]bsoncore.Value(nil), values...), append([][]string(nil), rests...)
		for _, i := range through {
			switch {
			case len(rests[i]) == 0:
				g.values[i], g.rest[i] = v, nil
			case v.Type != bsoncore.TypeEmbeddedDocument:
				g.values[i], g.rest[i] = null, nil
			}
		}
		inner := raw(nil)
		if v.Type == bsoncore.TypeEmbeddedDocument {
			inner = v.Data
		}
		if err := g.walk(inner); err != nil {
			return err
		}
	}
	g.values, g.rest = values, rests
	return nil
}

// positions follows parts that go on with a position of the array, such as "a.0": these leave the array, the others expand it.
func (g *generator) positions(array []byte, through []int) (done bool, err error) {
	var left []int
	for _, i := range through {
		if len(g.rest[i]) == 0 || !isPosition(g.rest[i][0]) {
			left = append(left, i)
			continue
		}
		if ambiguous(array, g.rest[i][0]) {
			return false, mongoerror.New(mongoerror.Code(16746), "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '%s'", g.rest[i][0])
		}
	}
	if len(left) == len(through) {
		return false, nil
	}
	if len(left) > 0 {
		return false, mongoerror.New(mongoerror.BadValue, "cannot sort with keys that are parallel arrays")
	}
	return true, g.walk(raw(array)) // the names of an array's elements are their positions
}

func isPosition(s string) bool {
	n, err := strconv.ParseUint(s, 10, 32)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// ambiguous reports whether an element of the array has a field of that name.
func ambiguous(array []byte, name string) bool {
	it := walker(array)
	for _, v, ok := it.next(); ok; _, v, ok = it.next() {
		if v.Type == bsoncore.TypeEmbeddedDocument {
			if _, there := lookup(v.Data, name); there {
				return true
			}
		}
	}
	return false
}

// elements walks through a valid document without checking it again.
type elements struct{ rest []byte }

func walker(doc []byte) elements {
	if len(doc) < 5 {
		return elements{}
	}
	return elements{doc[4 : len(doc)-1]}
}

func (e *elements) next() (name []byte, v bsoncore.Value, ok bool) {
	if len(e.rest) == 0 {
		return nil, v, false
	}
	t := bsoncore.Type(e.rest[0])
	end := bytes.IndexByte(e.rest[1:], 0)
	name, data := e.rest[1:1+end], e.rest[2+end:]
	n := size(t, data)
	e.rest = data[n:]
	return name, bsoncore.Value{Type: t, Data: data[:n]}, true
}

func size(t bsoncore.Type, data []byte) int {
	switch t {
	case bsoncore.TypeDouble, bsoncore.TypeDateTime, bsoncore.TypeTimestamp, bsoncore.TypeInt64:
		return 8
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		return 4 + int(binary.LittleEndian.Uint32(data))
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray, bsoncore.TypeCodeWithScope:
		return int(binary.LittleEndian.Uint32(data))
	case bsoncore.TypeBinary:
		return 5 + int(binary.LittleEndian.Uint32(data))
	case bsoncore.TypeObjectID:
		return 12
	case bsoncore.TypeBoolean:
		return 1
	case bsoncore.TypeInt32:
		return 4
	case bsoncore.TypeDecimal128:
		return 16
	case bsoncore.TypeDBPointer:
		return 16 + int(binary.LittleEndian.Uint32(data))
	case bsoncore.TypeRegex:
		pattern := bytes.IndexByte(data, 0)
		return pattern + 2 + bytes.IndexByte(data[pattern+1:], 0)
	}
	return 0 // undefined, null, MinKey, MaxKey
}

// lookup finds a field of a valid document.
func lookup(doc []byte, name string) (bsoncore.Value, bool) {
	it := walker(doc)
	for n, v, ok := it.next(); ok; n, v, ok = it.next() {
		if string(n) == name {
			return v, true
		}
	}
	return bsoncore.Value{}, false
}
