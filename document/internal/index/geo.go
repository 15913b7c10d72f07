package index

import (
	"math"
	"slices"

	"github.com/golang/geo/s2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
)

// sphereVersion is the version of 2dsphere indexes that MongoDB makes.
const sphereVersion = 3

// How geometries are covered: a document has at most so many keys for one, and cells of the finest level are about a metre wide.
const (
	maxCells    = 20
	finestLevel = 23
)

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

// along collects all values at the end of a path, through arrays. With asArray an array at the end is a value itself: it may be a pair of
// coordinates.
type along struct {
	asArray, arrays bool
	values          []bsoncore.Value
}

func (a *along) follow(v bsoncore.Value, parts []string) {
	switch {
	case v.Type == bsoncore.TypeArray && (len(parts) > 0 || !a.asArray || !isNumbers(v)):
		a.arrays = true
		elements := path.ElementsOf(v.Data)
		name, element, ok := elements.Next()
		if !ok && len(parts) == 0 && !a.asArray {
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

// isNumbers reports whether an array begins with a number: a pair of coordinates.
func isNumbers(v bsoncore.Value) bool {
	elements := path.ElementsOf(v.Data)
	_, first, ok := elements.Next()
	_, isNumber := number.Of(first)
	return ok && isNumber
}

// cellsOf returns the cells that cover values, as int64.
func cellsOf(at string, values []bsoncore.Value) ([]bsoncore.Value, error) {
	var cells []bsoncore.Value
	for _, v := range values {
		if v.Type == 0 || v.Type == bsoncore.TypeNull || v.Type == bsoncore.TypeUndefined {
			continue
		}
		g, ok := geometryOf(v)
		if !ok {
			return nil, mongoerror.New(codeNoGeometry, "Can't extract geo keys: unknown GeoJSON type or invalid coordinates in field '%s': %s", at, text(v))
		}
		for _, id := range g.Covering() {
			cells = append(cells, valueOf(bsoncore.TypeInt64, bsoncore.AppendInt64(nil, int64(id))))
		}
	}
	return cells, nil
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

// Geometry is a shape on the sphere, made of points, lines and polygons.
type Geometry struct{ parts []s2.Region }

// Covering returns cells that cover the geometry.
func (g *Geometry) Covering() []s2.CellID {
	coverer := &s2.RegionCoverer{MaxLevel: finestLevel, LevelMod: 1, MaxCells: maxCells}
	var union s2.CellUnion
	for _, part := range g.parts {
		if p, ok := part.(s2.Point); ok {
			union = append(union, s2.CellFromPoint(p).ID().Parent(finestLevel))
			continue
		}
		union = append(union, coverer.Covering(part)...)
	}
	slices.Sort(union)
	return slices.Compact(union)
}

// geometryOf reads GeoJSON, or a legacy pair of coordinates: an array or a document of two numbers.
func geometryOf(v bsoncore.Value) (*Geometry, bool) {
	g := &Geometry{}
	ok := false
	switch v.Type {
	case bsoncore.TypeArray:
		ok = g.point(v)
	case bsoncore.TypeEmbeddedDocument:
		if _, typed := path.Lookup(v.Data, "type"); typed {
			ok = g.geoJSON(v.Data, 0)
		} else {
			ok = g.point(v)
		}
	}
	return g, ok && len(g.parts) > 0
}

// maxCollections is how deep collections of geometries may be within one another.
const maxCollections = 8

func (g *Geometry) geoJSON(doc []byte, depth int) bool {
	kind, _ := path.Lookup(doc, "type")
	name, _ := kind.StringValueOK()
	coordinates, _ := path.Lookup(doc, "coordinates")
	switch name {
	case "Point":
		return g.point(coordinates)
	case "MultiPoint":
		return each(coordinates, g.point)
	case "LineString":
		return g.line(coordinates)
	case "MultiLineString":
		return each(coordinates, g.line)
	case "Polygon":
		return g.polygon(coordinates)
	case "MultiPolygon":
		return each(coordinates, g.polygon)
	case "GeometryCollection":
		list, _ := path.Lookup(doc, "geometries")
		return depth < maxCollections && each(list, func(v bsoncore.Value) bool {
			return v.Type == bsoncore.TypeEmbeddedDocument && g.geoJSON(v.Data, depth+1)
		})
	}
	return false
}

// each calls f for the elements of an array that is not empty, while it returns true.
func each(v bsoncore.Value, f func(bsoncore.Value) bool) bool {
	if v.Type != bsoncore.TypeArray {
		return false
	}
	elements := path.ElementsOf(v.Data)
	n := 0
	for _, element, ok := elements.Next(); ok; _, element, ok = elements.Next() {
		if !f(element) {
			return false
		}
		n++
	}
	return n > 0
}

// position reads longitude and latitude.
func position(v bsoncore.Value) (p s2.Point, ok bool) {
	if v.Type != bsoncore.TypeArray && v.Type != bsoncore.TypeEmbeddedDocument {
		return p, false
	}
	var degrees [2]float64
	elements := path.ElementsOf(v.Data)
	for i := range degrees {
		_, element, _ := elements.Next()
		n, ok := number.Of(element)
		if !ok {
			return p, false
		}
		degrees[i] = n.Float64()
	}
	longitude, latitude := degrees[0], degrees[1]
	if !(math.Abs(longitude) <= 180 && math.Abs(latitude) <= 90) {
		return p, false
	}
	return s2.PointFromLatLng(s2.LatLngFromDegrees(latitude, longitude)), true
}

func (g *Geometry) point(v bsoncore.Value) bool {
	p, ok := position(v)
	g.parts = append(g.parts, p)
	return ok
}

// positions reads an array of positions, without those that repeat the one before.
func positions(v bsoncore.Value) (list []s2.Point, ok bool) {
	ok = each(v, func(v bsoncore.Value) bool {
		p, ok := position(v)
		if n := len(list); n == 0 || list[n-1] != p {
			list = append(list, p)
		}
		return ok
	})
	return list, ok
}

// antipodal is how near to the opposite of each other two points are that count as opposite, in radii.
const antipodal = 1e-14

func (g *Geometry) line(v bsoncore.Value) bool {
	points, ok := positions(v)
	if !ok || len(points) < 2 {
		return false
	}
	for i := 1; i < len(points); i++ {
		if points[i].Add(points[i-1].Vector).Norm() < antipodal {
			return false // opposite ends of the sphere have no one line between them
		}
	}
	line := s2.Polyline(points)
	g.parts = append(g.parts, &line)
	return true
}

// polygon reads rings, each of which ends where it begins: the first is the outer one. Of the two sides of a ring the smaller is within.
func (g *Geometry) polygon(v bsoncore.Value) bool {
	var loops []*s2.Loop
	ok := each(v, func(v bsoncore.Value) bool {
		points, ok := positions(v)
		n := len(points)
		if !ok || n < 4 || points[0] != points[n-1] {
			return false
		}
		loop := s2.LoopFromPoints(points[:n-1])
		if loop.Validate() != nil {
			return false
		}
		loop.Normalize()
		loops = append(loops, loop)
		return true
	})
	if !ok {
		return false
	}
	g.parts = append(g.parts, s2.PolygonFromLoops(loops))
	return true
}
