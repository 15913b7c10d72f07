package index

import (
	"github.com/golang/geo/s2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/geo"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// sphereVersion is the version of 2dsphere indexes that MongoDB makes.
const sphereVersion = 3

// codeNoGeometry is MongoDB's code for values of which no geometry can be made.
const codeNoGeometry mongoerror.Code = 16755

// appendSphere makes the keys of an index with 2dsphere components: every combination of the cells and values of its components. A
// document without a geometry is not in the index.
func (d *Definition) appendSphere(e *Entries, doc bsoncore.Document) error {
	lists := make([][]bsoncore.Value, len(d.Components))
	geometries := 0
	for i := range d.Components {
		c := &d.Components[i]
		a := along{asArray: c.Kind == Sphere}
		a.follow(valueOf(bsoncore.TypeEmbeddedDocument, doc), c.parts)
		if a.arrays {
			e.Multikey |= 1 << i
		}
		lists[i] = a.values
		if c.Kind == Sphere {
			cells, err := cellsOf(c.Path, a.values)
			if err != nil {
				return err
			}
			lists[i] = cells
			geometries += len(cells)
			if len(cells) > 1 {
				e.Multikey |= 1 << i
			}
		}
		if len(lists[i]) == 0 {
			lists[i] = []bsoncore.Value{{}}
		}
	}
	if geometries == 0 {
		return nil
	}
	return d.combine(e, lists, make([]bsoncore.Value, 0, len(lists)))
}

// combine adds a key for each choice of a value from each list.
func (d *Definition) combine(e *Entries, lists [][]bsoncore.Value, chosen []bsoncore.Value) error {
	if len(chosen) == len(lists) {
		return d.add(e, chosen)
	}
	for _, v := range lists[len(chosen)] {
		if err := d.combine(e, lists, append(chosen, v)); err != nil {
			return err
		}
	}
	return nil
}

// along collects all values at the end of a path, through arrays. With asArray an array at the end is a value itself: a pair of
// coordinates, or nothing that can be indexed.
type along struct {
	asArray, arrays bool
	values          []bsoncore.Value
}

func (a *along) follow(v bsoncore.Value, parts []string) {
	switch {
	case v.Type == bsoncore.TypeArray && (len(parts) > 0 || !a.asArray):
		a.arrays = true
		elements := path.ElementsOf(v.Data)
		name, element, ok := elements.Next()
		if !ok && len(parts) == 0 {
			a.values = append(a.values, undefined())
		}
		for ; ok; name, element, ok = elements.Next() {
			if len(parts) == 0 {
				a.values = append(a.values, element)
				continue
			}
			if string(name) == parts[0] {
				a.follow(element, parts[1:])
			}
			if element.Type == bsoncore.TypeEmbeddedDocument {
				a.follow(element, parts)
			}
		}
	case len(parts) == 0:
		a.values = append(a.values, v)
	case v.Type == bsoncore.TypeEmbeddedDocument:
		if next, ok := path.Lookup(v.Data, parts[0]); ok {
			a.follow(next, parts[1:])
		}
	}
}

// cellsOf returns the cells that cover values, as int64.
func cellsOf(at string, values []bsoncore.Value) ([]bsoncore.Value, error) {
	var cells []bsoncore.Value
	for _, v := range values {
		if isNoGeometry(v) {
			continue
		}
		g, err := geo.Parse(v)
		var ids []s2.CellID
		ok := err == nil && g.Surface() != geo.Strict
		if ok {
			ids, ok = g.Cells()
		}
		if !ok {
			return nil, mongoerror.New(codeNoGeometry, "Can't extract geo keys: unknown GeoJSON type or invalid coordinates in field '%s': %s", at, text(v))
		}
		for _, id := range ids {
			cells = append(cells, valueOf(bsoncore.TypeInt64, bsoncore.AppendInt64(nil, int64(id))))
		}
	}
	return cells, nil
}

// isNoGeometry reports whether a value is left out of an index: there is none, or nothing in it.
func isNoGeometry(v bsoncore.Value) bool {
	switch v.Type {
	case 0, bsoncore.TypeNull, bsoncore.TypeUndefined:
		return true
	case bsoncore.TypeArray, bsoncore.TypeEmbeddedDocument:
		return len(v.Data) <= bsoncore.EmptyDocumentLength
	}
	return false
}

// Cells returns the intervals of a 2dsphere component in which all geometries lie that may meet one of the cells: what is within a cell,
// and cells around it. It is never exact.
func (s Space) Cells(cells []s2.CellID) Bounds {
	var list []Interval
	cell := func(id s2.CellID) bsoncore.Value {
		return valueOf(bsoncore.TypeInt64, bsoncore.AppendInt64(nil, int64(id)))
	}
	for _, id := range cells {
		if iv, ok := s.between(cell(id.RangeMin()), cell(id.RangeMax()), true, true); ok {
			list = append(list, iv)
		}
		for level := id.Level() - 1; level >= 0; level-- {
			list = append(list, s.point(cell(id.Parent(level))))
		}
	}
	return Bounds{Intervals: merge(list)}
}
