package index

import (
	"math"
	"slices"

	"github.com/golang/geo/s2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
)

// geometry is a shape on the sphere, made of points, lines and polygons.
type geometry struct{ parts []s2.Region }

// covering returns cells that cover the geometry.
func (g *geometry) covering() []s2.CellID {
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
func geometryOf(v bsoncore.Value) (*geometry, bool) {
	g := &geometry{}
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

func (g *geometry) geoJSON(doc []byte, depth int) bool {
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

func (g *geometry) point(v bsoncore.Value) bool {
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

func (g *geometry) line(v bsoncore.Value) bool {
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
func (g *geometry) polygon(v bsoncore.Value) bool {
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
	polygon := s2.PolygonFromLoops(loops)
	g.parts = append(g.parts, polygon)
	return polygon.Validate() == nil
}
