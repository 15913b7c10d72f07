package geo

import (
	"github.com/golang/geo/s2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/notation"
)

// ring reads a closed ring of at least three different points.
func ring(v bsoncore.Value) (*s2.Loop, error) {
	points, closed, err := positions(v)
	if err != nil {
		return nil, err
	}
	switch {
	case len(points) == 0:
		return nil, bad("Loop has no vertices: %s", notation.Brief(v))
	case !closed:
		return nil, bad("Loop is not closed: %s", notation.Brief(v))
	case len(points) < 4:
		return nil, bad("Loop must have at least 3 different vertices: %s", notation.Brief(v))
	}
	loop := s2.LoopFromPoints(points[:len(points)-1])
	if err := loop.Validate(); err != nil {
		return nil, bad("Loop is not valid: %s %v", notation.Brief(v), err)
	}
	if crosses(loop) {
		return nil, bad("Loop is not valid: %s Edges cross.", notation.Brief(v))
	}
	return loop, nil
}

// crosses reports whether edges of a ring cross, or a vertex is there twice.
func crosses(loop *s2.Loop) bool {
	seen := make(map[s2.Point]bool, loop.NumVertices())
	for _, p := range loop.Vertices() {
		if seen[p] {
			return true
		}
		seen[p] = true
	}
	var index *s2.ShapeIndex
	if loop.NumEdges() > fewEdges {
		index = s2.NewShapeIndex()
		index.Add(loop)
	}
	for i := range loop.NumEdges() {
		if len(crossings(loop, index, loop.Edge(i))) > 0 {
			return true
		}
	}
	return false
}

// addPolygon adds a polygon: its outline, and the holes in it. Whatever the order of vertices, the smaller part of the sphere is
// inside.
func (g *Geometry) addPolygon(v bsoncore.Value) error {
	if v.Type != bsoncore.TypeArray {
		return bad("Polygon coordinates must be an array")
	}
	var loops []*s2.Loop
	for _, member := range members(v) {
		loop, err := ring(member)
		if err != nil {
			return err
		}
		loop.Normalize()
		if len(loops) > 0 && !loops[0].Contains(loop) {
			return bad("Secondary loops not contained by first exterior loop - secondary loops must be holes: %s", notation.Brief(member))
		}
		loops = append(loops, loop)
	}
	if len(loops) == 0 {
		return bad("Polygon has no loops.")
	}
	if twice(loops) {
		return bad("Polygon isn't valid: Duplicate edge %s", notation.Brief(v))
	}
	g.polygons = append(g.polygons, newArea(s2.PolygonFromLoops(loops)))
	return nil
}

// twice reports whether two rings share an edge.
func twice(loops []*s2.Loop) bool {
	if len(loops) == 1 {
		return false
	}
	seen := map[s2.Edge]bool{}
	for _, loop := range loops {
		for i := range loop.NumEdges() {
			e := loop.Edge(i)
			if seen[e] || seen[s2.Edge{V0: e.V1, V1: e.V0}] {
				return true
			}
			seen[e] = true
		}
	}
	return false
}

// addStrict adds a polygon that lies to the left of its only ring, however large that is.
func (g *Geometry) addStrict(v bsoncore.Value) error {
	values := members(v)
	switch {
	case v.Type != bsoncore.TypeArray:
		return bad("Polygon coordinates must be an array")
	case len(values) == 0:
		return bad("Polygon has no loops.")
	case len(values) > 1:
		return bad("Only one simple loop is allowed in a big polygon: %s", notation.Brief(v))
	}
	loop, err := ring(values[0])
	if err != nil {
		return err
	}
	g.polygons = append(g.polygons, newArea(s2.PolygonFromOrientedLoops([]*s2.Loop{loop})))
	return nil
}
