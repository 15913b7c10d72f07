package plan

import (
	"math"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/geo"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/query"
)

// How regions are covered by cells.
const (
	maxCells    = 20
	finestLevel = 23
	// margin is added to every radius: what is computed in another way must not fall out at the rim.
	margin = s1.Angle(1e-9)
	// widest is the radius from which on a cap is no longer a useful bound for a shape: the lines between two of its points may leave it.
	widest = s1.Angle(math.Pi * 4 / 9)
	// firstRing is the radius of the first ring of a search by distance; the following ones are wider by ringGrowth.
	firstRing  = s1.Angle(1000 / geo.EarthRadius)
	ringGrowth = 4
)

// sphere returns the ways to bound a 2dsphere component.
func (p *planner) sphere(d *index.Definition, component int, found []leaf) []option {
	var out []option
	for _, l := range found {
		n, ok := l.node.(*query.Geo)
		if !ok || l.path != d.Components[component].Path {
			continue
		}
		if cap, ok := capOf(n.Spec); ok {
			c := of(d.Space(component).Cells(cover(cap)))
			out = append(out, option{leaves: []leaf{l}, conditions: []condition{c}, intervals: c.intervals})
		}
	}
	return out
}

// hasSphere reports whether an index holds only documents with a geometry.
func hasSphere(d *index.Definition) bool {
	for _, c := range d.Components {
		if c.Kind == index.Sphere {
			return true
		}
	}
	return false
}

func cover(c s2.Cap) []s2.CellID {
	return (&s2.RegionCoverer{MaxLevel: finestLevel, LevelMod: 1, MaxCells: maxCells}).Covering(c)
}

// capOf returns a cap that holds all of a shape: {$geometry: ...} or {$centerSphere: ...}.
func capOf(spec bsoncore.Value) (c s2.Cap, ok bool) {
	doc, ok := spec.DocumentOK()
	if !ok {
		return c, false
	}
	if v, err := doc.LookupErr("$centerSphere"); err == nil {
		return circle(v)
	}
	shape, ok := doc.Lookup("$geometry").DocumentOK()
	if !ok {
		return c, false
	}
	if _, err := shape.LookupErr("crs"); err == nil {
		return c, false // it may be the larger side of its outline
	}
	c = s2.EmptyCap()
	around(&c, bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: shape})
	c = c.Expanded(margin)
	return c, !c.IsEmpty() && c.Radius() < widest
}

// circle returns the cap of [[longitude, latitude], radians].
func circle(v bsoncore.Value) (c s2.Cap, ok bool) {
	values, ok := valuesOf(v)
	if !ok || len(values) != 2 {
		return c, false
	}
	center, ok := position(values[0])
	radius, isNumber := number.Of(values[1])
	return s2.CapFromCenterAngle(center, s1.Angle(radius.Float64())+margin), ok && isNumber
}

// around makes a cap hold all positions in v.
func around(c *s2.Cap, v bsoncore.Value) {
	if p, ok := position(v); ok {
		if c.IsEmpty() {
			*c = s2.CapFromPoint(p)
		}
		*c = c.AddPoint(p)
		return
	}
	values, _ := valuesOf(v)
	for _, one := range values {
		around(c, one)
	}
}

// valuesOf returns the values of an array or document.
func valuesOf(v bsoncore.Value) ([]bsoncore.Value, bool) {
	switch v.Type {
	case bsoncore.TypeArray, bsoncore.TypeEmbeddedDocument:
		values, err := bsoncore.Array(v.Data).Values()
		return values, err == nil
	}
	return nil, false
}

// position reads a pair of longitude and latitude.
func position(v bsoncore.Value) (p s2.Point, ok bool) {
	values, ok := valuesOf(v)
	if !ok || len(values) < 2 {
		return p, false
	}
	longitude, ok := number.Of(values[0])
	latitude, also := number.Of(values[1])
	return s2.PointFromLatLng(s2.LatLngFromDegrees(latitude.Float64(), longitude.Float64())), ok && also
}

// near returns the accesses that give records in the order of their distance, if the filter asks for that.
func (p *planner) near() (list []*access, asked bool, err error) {
	var near *query.Near
	for _, n := range p.all {
		if one, ok := n.(*query.Near); ok {
			near = one
		}
	}
	if near == nil {
		return nil, false, nil
	}
	found := p.leaves(p.all)
	for i := range p.c.Indexes {
		if p.hint != nil && (p.hint.walk || p.hint.index != i) || near.Unit == query.Coordinates {
			continue
		}
		if a := p.nearest(i, near, found); a != nil {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return nil, true, p.refuse(mongoerror.NoQueryExecutionPlans, "unable to find index for $geoNear query")
	}
	return list, true, nil
}

// nearest returns the access by one index; nil when it does not serve.
func (p *planner) nearest(i int, near *query.Near, found []leaf) *access {
	x := p.index(i)
	d := x.Definition
	if d.Partial != nil && !prover(d.Collation, p.q.Collation).implies(p.all, d.Partial.Root) {
		return nil
	}
	for n, c := range d.Components {
		if c.Kind != index.Sphere || c.Path != near.Path {
			continue
		}
		var first *option
		if options := p.options(x, 0, found, nil); n > 0 && len(options) > 0 {
			first = &options[0]
		}
		a := p.scan(i, p.all, found, first)
		a.scan.Bounds.Fields[n] = all()
		s := &Near{Scan: a.scan, Field: n, Query: near, Filter: p.filter(p.all)}
		p.estimate(a)
		return &access{stage: s, fetched: true, ordered: len(p.keys) == 0, entries: a.entries, docs: a.rows, rows: a.rows}
	}
	return nil
}

// Near gives records in the order of their distance from a point, searching ring after ring around it.
type Near struct {
	Scan   *IndexScan // without bounds on the component
	Field  int        // the 2dsphere component
	Query  *query.Near
	Filter *query.Filter // all conditions, that on the distance among them
}

// Name implements Stage.
func (*Near) Name() string { return "GEO_NEAR_2DSPHERE" }

// Inputs implements Stage.
func (*Near) Inputs() []Stage { return nil }

// Radians returns a distance in the query's unit as an angle.
func (s *Near) Radians(distance float64) float64 {
	if s.Query.Unit == query.Meters {
		return distance / geo.EarthRadius
	}
	return distance
}

// Rings returns the radius of the first ring, and the one behind which nothing is.
func (s *Near) Rings() (first, last float64) {
	last = min(math.Pi, s.Radians(s.Query.MaxDistance))
	return min(last, max(float64(firstRing), s.Radians(s.Query.MinDistance))), last
}

// Next returns the radius of the ring around one.
func (s *Near) Next(radius float64) float64 { return radius * ringGrowth }

// Within returns the scan of all that may be within a radius.
func (s *Near) Within(radius float64) *IndexScan {
	one := *s.Scan
	fields := append([][]index.Interval(nil), s.Scan.Bounds.Fields...)
	if angle := s1.Angle(radius) + margin; angle < math.Pi {
		center := s2.PointFromLatLng(s2.LatLngFromDegrees(s.Query.Center.Y, s.Query.Center.X))
		fields[s.Field] = one.Definition.Space(s.Field).Cells(cover(s2.CapFromCenterAngle(center, angle))).Intervals
	}
	one.Bounds = newBounds(one.Definition, fields, s.Scan.Bounds.Paths)
	one.Dedup = true
	return &one
}
