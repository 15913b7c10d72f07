package geo

import (
	"math"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/number"
)

// Region is what $geoWithin asks about: areas on the sphere, or a shape on the plane.
type Region struct {
	geometry *Geometry
	cap      *s2.Cap
	box      *box
	polygon  []Point
	circle   *circle
}

type box struct{ low, high Point }

type circle struct {
	center Point
	radius float64
}

// NewRegion makes a region of a geometry; ok is false when that is no area, which could contain something.
func NewRegion(g *Geometry) (r *Region, ok bool) {
	switch g.kind {
	case PolygonKind, MultiPolygonKind, CollectionKind:
		return &Region{geometry: g}, true
	}
	return nil, false
}

// parseFlat reads a point of a shape, which has two coordinates and nothing else.
func parseFlat(v bsoncore.Value) (Point, error) {
	if len(members(v)) > 2 {
		return Point{}, bad("Point must only contain two numeric elements")
	}
	return ParsePoint(v)
}

// ParseBox reads two corners.
func ParseBox(v bsoncore.Value) (*Region, error) {
	var corners [2]Point
	values := members(v)
	for i := range corners {
		var corner bsoncore.Value
		if i < len(values) {
			corner = values[i]
		}
		p, err := parseFlat(corner)
		if err != nil {
			return nil, err
		}
		corners[i] = p
	}
	a, b := corners[0], corners[1]
	return &Region{box: &box{Point{min(a.X, b.X), min(a.Y, b.Y)}, Point{max(a.X, b.X), max(a.Y, b.Y)}}}, nil
}

// ParsePolygon reads the corners of a polygon on the plane.
func ParsePolygon(v bsoncore.Value) (*Region, error) {
	r := &Region{}
	for _, corner := range members(v) {
		p, err := parseFlat(corner)
		if err != nil {
			return nil, err
		}
		r.polygon = append(r.polygon, p)
	}
	if len(r.polygon) < 3 {
		return nil, bad("Polygon must have at least 3 points")
	}
	return r, nil
}

// ParseCircle reads a centre with a radius: on the plane, or in radians on the sphere.
func ParseCircle(v bsoncore.Value, sphere bool) (*Region, error) {
	values := members(v)
	if len(values) == 0 {
		return nil, bad("Point must be an array or object")
	}
	center, err := parseFlat(values[0])
	if err != nil {
		return nil, err
	}
	radius := math.NaN()
	if len(values) > 1 {
		if n, ok := number.Of(values[1]); ok {
			radius = n.Float64()
		}
	}
	switch {
	case !(radius >= 0):
		return nil, bad("radius must be a non-negative number")
	case len(values) > 2:
		return nil, bad("Only 2 fields allowed for circular region")
	case !sphere:
		return &Region{circle: &circle{center, radius}}, nil
	case !center.OnSphere():
		return nil, bad("longitude/latitude is out of bounds, lng: %s lat: %s", plain(center.X), plain(center.Y))
	}
	c := s2.CapFromCenterAngle(center.s2(), s1.Angle(min(radius, math.Pi)))
	if radius >= math.Pi {
		c = s2.FullCap()
	}
	return &Region{cap: &c}, nil
}

// Contains reports whether the whole geometry lies within the region, its boundary included. Shapes on the plane contain points only.
func (r *Region) Contains(g *Geometry) bool {
	switch {
	case g.surface == Strict:
		return false
	case r.geometry != nil:
		return g.spherical() && r.geometry.contains(g)
	case r.cap != nil:
		return g.spherical() && capContains(*r.cap, g)
	case g.kind != PointKind:
		return false
	case r.box != nil:
		p := g.point
		return p.X >= r.box.low.X && p.X <= r.box.high.X && p.Y >= r.box.low.Y && p.Y <= r.box.high.Y
	case r.circle != nil:
		return FlatDistance(g.point, r.circle.center) <= r.circle.radius
	}
	return inside(g.point, r.polygon)
}

// FlatDistance returns the distance of two points of the plane.
func FlatDistance(a, b Point) float64 { return math.Hypot(a.X-b.X, a.Y-b.Y) }

// inside counts the edges to the right of p. Corners are inside, and points on edges that are parallel to an axis; those on other
// edges are when the polygon is to the left: so it is with MongoDB.
func inside(p Point, corners []Point) bool {
	in := false
	a := corners[0]
	for i := range corners {
		b := corners[(i+1)%len(corners)]
		if p == a || onAxis(p, a, b) {
			return true
		}
		if p.Y > min(a.Y, b.Y) && p.Y <= max(a.Y, b.Y) && p.X <= max(a.X, b.X) && p.X <= (p.Y-a.Y)*(b.X-a.X)/(b.Y-a.Y)+a.X {
			in = !in
		}
		a = b
	}
	return in
}

// onAxis reports whether p is on an edge that is parallel to an axis.
func onAxis(p, a, b Point) bool {
	return (a.X == b.X && p.X == a.X || a.Y == b.Y && p.Y == a.Y) &&
		p.X >= min(a.X, b.X) && p.X <= max(a.X, b.X) && p.Y >= min(a.Y, b.Y) && p.Y <= max(a.Y, b.Y)
}

// capContains reports whether all of a geometry lies within a cap: its points and edges do, and the part of the sphere outside of the
// cap is not inside one of its areas.
func capContains(c s2.Cap, g *Geometry) bool {
	if c.IsFull() {
		return true
	}
	opposite := s2.Point{Vector: c.Center().Mul(-1)}
	least := s1.Angle(math.Pi) - c.Radius() // from the opposite point, with which distances to edges are simple
	within := func(e s2.Edge) bool { return s2.DistanceFromSegment(opposite, e.V0, e.V1) >= least-touching }
	for _, p := range g.points {
		if !c.ContainsPoint(p) && !c.IntersectsCell(s2.CellFromPoint(p)) {
			return false
		}
	}
	for _, l := range g.lines {
		for i := range l.NumEdges() {
			if !within(l.Edge(i)) {
				return false
			}
		}
	}
	for _, a := range g.polygons {
		if a.polygon.ContainsPoint(opposite) {
			return false
		}
		for i := range a.polygon.NumEdges() {
			if !within(a.polygon.Edge(i)) {
				return false
			}
		}
	}
	return true
}
