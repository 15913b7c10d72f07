// Package geo is the geometry of filters: GeoJSON and legacy points, regions that contain and geometries that intersect, on
// the sphere by the S2 library and on the plane by arithmetic, with MongoDB's rules of which may be compared with which.
//
// It promises to refuse what MongoDB refuses: parsing fails with a *mongoerror.Error of code BadValue. Parsed values are
// immutable and safe for concurrent use. Distances are in radians on the sphere, and in the units of the coordinates on the plane.
package geo

import (
	"math"

	"github.com/golang/geo/s2"
)

// EarthRadius is that of MongoDB's sphere, in metres.
const EarthRadius = 6378100.0

// Point is a position: longitude and latitude in degrees, or x and y.
type Point struct{ X, Y float64 }

// OnSphere reports whether the point is within the ranges of longitude and latitude.
func (p Point) OnSphere() bool { return math.Abs(p.X) <= 180 && math.Abs(p.Y) <= 90 }

func (p Point) s2() s2.Point { return s2.PointFromLatLng(s2.LatLngFromDegrees(p.Y, p.X)) }

// Surface is what a geometry lies on.
type Surface uint8

// The surfaces.
const (
	Flat   Surface = iota // legacy points, and the regions of legacy queries
	Sphere                // GeoJSON
	Strict                // GeoJSON polygons whose order of vertices says what is inside: in queries only
)

// Kind is the type of a geometry.
type Kind uint8

// The kinds.
const (
	PointKind Kind = iota
	LineKind
	PolygonKind
	MultiPointKind
	MultiLineKind
	MultiPolygonKind
	CollectionKind
)

// Geometry is a point, a line, an area, or several of these. What it consists of is independent of how that was written.
type Geometry struct {
	kind     Kind
	surface  Surface
	point    Point // of PointKind
	points   []s2.Point
	lines    []*s2.Polyline
	polygons []*area
}

// area is a polygon, with its edges in an index when they are many.
type area struct {
	polygon *s2.Polygon
	index   *s2.ShapeIndex
}

// fewEdges is up to how many edges looking at each is quicker than making an index.
const fewEdges = 40

func newArea(p *s2.Polygon) *area {
	a := &area{polygon: p}
	if p.NumEdges() > fewEdges {
		a.index = s2.NewShapeIndex()
		a.index.Add(p)
		a.index.Build()
	}
	return a
}

// crossings returns the numbers of the edges of a shape that cross e between their ends. The index may be nil.
func crossings(shape s2.Shape, index *s2.ShapeIndex, e s2.Edge) []int {
	if index != nil {
		return s2.NewCrossingEdgeQuery(index).Crossings(e.V0, e.V1, shape, s2.CrossingTypeInterior)
	}
	var found []int
	crosser := s2.NewEdgeCrosser(e.V0, e.V1)
	for i := range shape.NumEdges() {
		if other := shape.Edge(i); crosser.CrossingSign(other.V0, other.V1) == s2.Cross {
			found = append(found, i)
		}
	}
	return found
}

// Kind returns the type of the geometry.
func (g *Geometry) Kind() Kind { return g.kind }

// Surface returns what the geometry lies on.
func (g *Geometry) Surface() Surface { return g.surface }

// Point returns the position of a geometry that is a single point.
func (g *Geometry) Point() (p Point, ok bool) { return g.point, g.kind == PointKind }

// spherical reports whether the geometry can be seen as one on the sphere: all can, but legacy points outside of its ranges.
func (g *Geometry) spherical() bool { return g.surface != Flat || g.point.OnSphere() }
