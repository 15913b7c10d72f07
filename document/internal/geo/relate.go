package geo

import (
	"slices"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
)

// touching is the distance below which a point counts as lying on a line: the size of the smallest cell.
const touching = s1.Angle(1.5e-9)

// Intersects reports whether two geometries on the sphere have a point in common.
func Intersects(a, b *Geometry) bool {
	if !a.spherical() || !b.spherical() || b.surface == Strict {
		return false
	}
	for _, p := range b.points {
		if a.touches(p) {
			return true
		}
	}
	for _, l := range b.lines {
		if a.meetsLine(l) {
			return true
		}
	}
	for _, polygon := range b.polygons {
		if a.meetsPolygon(polygon) {
			return true
		}
	}
	return false
}

func (g *Geometry) touches(p s2.Point) bool {
	cell := s2.CellFromPoint(p).ID()
	for _, q := range g.points {
		if s2.CellFromPoint(q).ID() == cell {
			return true
		}
	}
	for _, l := range g.lines {
		if distanceToLine(p, l) <= touching {
			return true
		}
	}
	for _, a := range g.polygons {
		if a.containsPoint(p) {
			return true
		}
	}
	return false
}

func (g *Geometry) meetsLine(l *s2.Polyline) bool {
	for _, p := range g.points {
		if distanceToLine(p, l) <= touching {
			return true
		}
	}
	for _, other := range g.lines {
		if l.Intersects(other) {
			return true
		}
	}
	for _, a := range g.polygons {
		if a.meetsLine(l) {
			return true
		}
	}
	return false
}

func (g *Geometry) meetsPolygon(b *area) bool {
	for _, p := range g.points {
		if b.containsPoint(p) {
			return true
		}
	}
	for _, l := range g.lines {
		if b.meetsLine(l) {
			return true
		}
	}
	for _, a := range g.polygons {
		if a.polygon.Intersects(b.polygon) {
			return true
		}
	}
	return false
}

// contains reports whether one of the areas of g contains all of o, part by part.
func (g *Geometry) contains(o *Geometry) bool {
	for _, p := range o.points {
		if !g.some(func(a *area) bool { return a.containsPoint(p) }) {
			return false
		}
	}
	for _, l := range o.lines {
		if !g.some(func(a *area) bool { return a.containsLine(l) }) {
			return false
		}
	}
	for _, b := range o.polygons {
		if !g.some(func(a *area) bool { return a.polygon.Contains(b.polygon) }) {
			return false
		}
	}
	return true
}

func (g *Geometry) some(holds func(*area) bool) bool {
	for _, a := range g.polygons {
		if holds(a) {
			return true
		}
	}
	return false
}

// containsPoint is true on the boundary too, as far as the smallest cells tell.
func (a *area) containsPoint(p s2.Point) bool {
	return a.polygon.ContainsPoint(p) || a.polygon.IntersectsCell(s2.CellFromPoint(p))
}

// meetsLine is false for a line that only touches the boundary.
func (a *area) meetsLine(l *s2.Polyline) bool {
	return a.anyPart(l, a.polygon.ContainsPoint)
}

func (a *area) containsLine(l *s2.Polyline) bool {
	for _, p := range *l {
		if !a.containsPoint(p) {
			return false
		}
	}
	return !a.anyPart(l, func(p s2.Point) bool { return !a.containsPoint(p) })
}

// anyPart cuts a line where it crosses the boundary, and reports whether something holds for the middle of one of the parts: each is inside
// or outside as a whole. Parts too short to count are left out.
func (a *area) anyPart(l *s2.Polyline, holds func(middle s2.Point) bool) bool {
	for i := range l.NumEdges() {
		e := l.Edge(i)
		length := e.V0.Distance(e.V1)
		cuts := []s1.Angle{length}
		for _, id := range crossings(a.polygon, a.index, e) {
			other := a.polygon.Edge(id)
			cuts = append(cuts, e.V0.Distance(s2.Intersection(e.V0, e.V1, other.V0, other.V1)))
		}
		slices.Sort(cuts)
		from := s1.Angle(0)
		for _, to := range cuts {
			if to-from > touching && holds(s2.InterpolateAtDistance((from+to)/2, e.V0, e.V1)) {
				return true
			}
			from = to
		}
	}
	return false
}

func distanceToLine(p s2.Point, l *s2.Polyline) s1.Angle {
	least := s1.InfAngle()
	for i := range l.NumEdges() {
		e := l.Edge(i)
		least = min(least, s2.DistanceFromSegment(p, e.V0, e.V1))
	}
	return least
}

// SphereDistance returns the least distance of a point of the sphere from the geometry, in radians; ok is false when the geometry is not
// on the sphere.
func (g *Geometry) SphereDistance(from Point) (radians float64, ok bool) {
	if !g.spherical() {
		return 0, false
	}
	p, least := from.s2(), s1.InfAngle()
	for _, q := range g.points {
		least = min(least, p.Distance(q))
	}
	for _, l := range g.lines {
		least = min(least, distanceToLine(p, l))
	}
	for _, a := range g.polygons {
		if a.polygon.ContainsPoint(p) {
			return 0, true
		}
		for i := range a.polygon.NumEdges() {
			e := a.polygon.Edge(i)
			least = min(least, s2.DistanceFromSegment(p, e.V0, e.V1))
		}
	}
	return float64(least), true
}
