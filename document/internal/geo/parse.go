package geo

import (
	"math"
	"strconv"

	"github.com/golang/geo/s2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/number"
)

// The coordinate reference systems that GeoJSON may name.
const (
	crsEPSG   = "EPSG:4326"
	crsOGC    = "urn:ogc:def:crs:OGC:1.3:CRS84"
	crsStrict = "urn:x-mongodb:crs:strictwinding:EPSG:4326"
)

func bad(format string, args ...any) error {
	return mongoerror.New(mongoerror.BadValue, format, args...)
}

// members returns the values of a document or array.
func members(v bsoncore.Value) []bsoncore.Value {
	if v.Type != bsoncore.TypeArray && v.Type != bsoncore.TypeEmbeddedDocument {
		return nil
	}
	elements, err := bsoncore.Document(v.Data).Elements()
	if err != nil {
		return nil
	}
	values := make([]bsoncore.Value, len(elements))
	for i, e := range elements {
		values[i] = e.Value()
	}
	return values
}

func lookup(v bsoncore.Value, name string) bsoncore.Value {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return bsoncore.Value{}
	}
	found, err := bsoncore.Document(v.Data).LookupErr(name)
	if err != nil {
		return bsoncore.Value{}
	}
	return found
}

// Parse reads a geometry: a GeoJSON object, or a legacy point ([x, y] or {x: ..., y: ...}).
func Parse(v bsoncore.Value) (*Geometry, error) {
	switch v.Type {
	case bsoncore.TypeArray:
		return legacy(v)
	case bsoncore.TypeEmbeddedDocument:
	default:
		return nil, bad("Point must be an array or object")
	}
	if IsGeoJSON(v) {
		return geoJSON(v, false)
	}
	if isNumber(firstOf(v)) || lookup(v, "type").Type != 0 && lookup(v, "type").Type != bsoncore.TypeString {
		return legacy(v)
	}
	return nil, bad("unknown GeoJSON type: %s", notation.Brief(v))
}

// IsGeoJSON reports whether a value is an object of one of GeoJSON's types.
func IsGeoJSON(v bsoncore.Value) bool {
	_, ok := kindOf(v)
	return ok
}

func kindOf(v bsoncore.Value) (Kind, bool) {
	name, ok := lookup(v, "type").StringValueOK()
	if !ok {
		return 0, false
	}
	switch name {
	case "Point":
		return PointKind, true
	case "LineString":
		return LineKind, true
	case "Polygon":
		return PolygonKind, true
	case "MultiPoint":
		return MultiPointKind, true
	case "MultiLineString":
		return MultiLineKind, true
	case "MultiPolygon":
		return MultiPolygonKind, true
	case "GeometryCollection":
		return CollectionKind, true
	}
	return 0, false
}

func firstOf(v bsoncore.Value) bsoncore.Value {
	if values := members(v); len(values) > 0 {
		return values[0]
	}
	return bsoncore.Value{}
}

func isNumber(v bsoncore.Value) bool {
	_, ok := number.Of(v)
	return ok
}

func legacy(v bsoncore.Value) (*Geometry, error) {
	p, err := ParsePoint(v)
	if err != nil {
		return nil, err
	}
	g := &Geometry{kind: PointKind, surface: Flat, point: p}
	if p.OnSphere() {
		g.points = []s2.Point{p.s2()}
	}
	return g, nil
}

// ParsePoint reads the coordinates of a point: the first two numbers of an array or of a document.
func ParsePoint(v bsoncore.Value) (Point, error) {
	if v.Type != bsoncore.TypeArray && v.Type != bsoncore.TypeEmbeddedDocument {
		return Point{}, bad("Point must be an array or object")
	}
	values := members(v)
	if len(values) < 2 {
		return Point{}, bad("Point must only contain numeric elements")
	}
	x, ok := number.Of(values[0])
	y, too := number.Of(values[1])
	if !ok || !too {
		return Point{}, bad("Point must only contain numeric elements")
	}
	p := Point{x.Float64(), y.Float64()}
	if math.IsNaN(p.X) || math.IsNaN(p.Y) || math.IsInf(p.X, 0) || math.IsInf(p.Y, 0) {
		return Point{}, bad("Point coordinates must be finite numbers")
	}
	return p, nil
}

func geoJSON(v bsoncore.Value, within bool) (*Geometry, error) {
	kind, ok := kindOf(v)
	if !ok {
		return nil, bad("Unknown GeoJSON type: %s", notation.Brief(v))
	}
	strict, err := parseCRS(lookup(v, "crs"))
	if err != nil {
		return nil, err
	}
	if strict && kind != PolygonKind {
		return nil, bad("Strict winding order is only supported by polygon")
	}
	g := &Geometry{kind: kind, surface: Sphere}
	coordinates := lookup(v, "coordinates")
	switch kind {
	case PointKind:
		return g, g.addPoint(coordinates)
	case LineKind:
		return g, g.addLine(coordinates)
	case PolygonKind:
		if strict {
			g.surface = Strict
			return g, g.addStrict(coordinates)
		}
		return g, g.addPolygon(coordinates)
	case CollectionKind:
		if within {
			return nil, bad("GeometryCollections cannot be nested: %s", notation.Brief(v))
		}
		return g, g.addCollection(lookup(v, "geometries"))
	}
	return g, g.addSeveral(coordinates)
}

// parseCRS reads the coordinate reference system. Only one is known, under several names.
func parseCRS(v bsoncore.Value) (strict bool, err error) {
	if v.Type == 0 {
		return false, nil
	}
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return false, bad("GeoJSON CRS must be an object")
	}
	if t, ok := lookup(v, "type").StringValueOK(); !ok || t != "name" {
		return false, bad(`GeoJSON CRS must have field "type": "name"`)
	}
	properties := lookup(v, "properties")
	if properties.Type != bsoncore.TypeEmbeddedDocument {
		return false, bad(`CRS must have field "properties" which is an object`)
	}
	name, ok := lookup(properties, "name").StringValueOK()
	if !ok {
		return false, bad(`In CRS, "properties.name" must be a string`)
	}
	switch name {
	case crsEPSG, crsOGC:
		return false, nil
	case crsStrict:
		return true, nil
	}
	return false, bad("Unknown CRS name: %s", name)
}

// onSphere reads a point that must be one of the sphere.
func onSphere(v bsoncore.Value) (Point, error) {
	p, err := ParsePoint(v)
	if err == nil && !p.OnSphere() {
		err = bad("longitude/latitude is out of bounds, lng: %s lat: %s", plain(p.X), plain(p.Y))
	}
	return p, err
}

func plain(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

func (g *Geometry) addPoint(v bsoncore.Value) error {
	p, err := onSphere(v)
	if err != nil {
		return err
	}
	g.point = p
	g.points = append(g.points, p.s2())
	return nil
}

// positions reads an array of points. Points that follow equal ones are left out.
func positions(v bsoncore.Value) (points []s2.Point, closed bool, err error) {
	if v.Type != bsoncore.TypeArray {
		return nil, false, bad("GeoJSON coordinates must be an array of coordinates")
	}
	var first, last Point
	for i, member := range members(v) {
		if member.Type != bsoncore.TypeArray {
			return nil, false, bad("GeoJSON coordinates must be an array")
		}
		p, err := onSphere(member)
		if err != nil {
			return nil, false, err
		}
		if i == 0 {
			first = p
		}
		last = p
		point := p.s2()
		if len(points) > 0 && points[len(points)-1] == point {
			continue
		}
		points = append(points, point)
	}
	if len(points) > 0 {
		closed = first.s2() == last.s2()
	}
	return points, closed, nil
}

func (g *Geometry) addLine(v bsoncore.Value) error {
	points, _, err := positions(v)
	if err != nil {
		return err
	}
	if len(points) < 2 {
		return bad("GeoJSON LineString must have at least 2 vertices: %s", notation.Brief(v))
	}
	line := s2.Polyline(points)
	g.lines = append(g.lines, &line)
	return nil
}

// addSeveral adds the members of a MultiPoint, MultiLineString or MultiPolygon.
func (g *Geometry) addSeveral(v bsoncore.Value) error {
	name, add := "MultiPoint", g.addPoint
	switch g.kind {
	case MultiLineKind:
		name, add = "MultiLineString", g.addLine
	case MultiPolygonKind:
		name, add = "MultiPolygon", g.addPolygon
	}
	if v.Type != bsoncore.TypeArray {
		if g.kind == MultiPointKind {
			return bad("GeoJSON coordinates must be an array of coordinates")
		}
		return bad("%s coordinates must be an array", name)
	}
	values := members(v)
	if len(values) == 0 {
		return bad("%s coordinates must have at least 1 element", name)
	}
	for _, member := range values {
		if g.kind == MultiPointKind && member.Type != bsoncore.TypeArray {
			return bad("GeoJSON coordinates must be an array")
		}
		if err := add(member); err != nil {
			return err
		}
	}
	return nil
}

func (g *Geometry) addCollection(v bsoncore.Value) error {
	if v.Type != bsoncore.TypeArray {
		return bad("GeometryCollection geometries must be an array")
	}
	values := members(v)
	if len(values) == 0 {
		return bad("GeometryCollection geometries must have at least 1 element")
	}
	for i, member := range values {
		if member.Type != bsoncore.TypeEmbeddedDocument {
			return bad(`Element %d of "geometries" is not an object`, i)
		}
		inner, err := geoJSON(member, true)
		if err != nil {
			return err
		}
		if inner.surface == Strict {
			return bad("Strict winding order is only supported by polygon")
		}
		g.points = append(g.points, inner.points...)
		g.lines = append(g.lines, inner.lines...)
		g.polygons = append(g.polygons, inner.polygons...)
	}
	return nil
}
