package query

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/geo"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/path"
)

// Geo is {Path: {$geoWithin: ...}}, with a Region, or {Path: {$geoIntersects: ...}}, with a Geometry.
type Geo struct {
	Path     string
	Region   *geo.Region
	Geometry *geo.Geometry
	Operator string         // $geoWithin, $within or $geoIntersects
	Spec     bsoncore.Value // its operand
}

func (*Geo) node() {}

// parseGeo parses $geoWithin and $geoIntersects.
func parseGeo(name, op string, v bsoncore.Value) (Node, error) {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return nil, badValue("geometry must be an object")
	}
	n := &Geo{Path: name, Operator: op, Spec: v}
	found := false
	for e := path.ElementsOf(v.Data); ; {
		specifier, operand, ok := e.Next()
		if !ok {
			break
		}
		if string(specifier) == "$uniqueDocs" {
			continue
		}
		if found || operand.Type != bsoncore.TypeEmbeddedDocument && operand.Type != bsoncore.TypeArray {
			return nil, badValue("unknown geo specifier: %s", notation.Element(string(specifier), operand))
		}
		if err := n.parse(string(specifier), operand); err != nil {
			return nil, err
		}
		found = true
	}
	if !found {
		return nil, badValue("geo query doesn't have any geometry")
	}
	return n, nil
}

// parse parses one specifier with its operand.
func (n *Geo) parse(specifier string, v bsoncore.Value) (err error) {
	spec := bsoncore.Value{
		Type: bsoncore.TypeEmbeddedDocument, Data: bsoncore.NewDocumentBuilder().AppendValue(n.Operator, n.Spec).Build(),
	}
	if specifier == "$geometry" {
		g, err := geo.Parse(v)
		if err != nil {
			return err
		}
		if n.Operator == "$geoIntersects" {
			if p, ok := g.Point(); ok && g.Surface() == geo.Flat && !p.OnSphere() {
				return badValue("$geoIntersect not supported with provided geometry: %s", notation.Brief(spec))
			}
			n.Geometry = g
			return nil
		}
		region, ok := geo.NewRegion(g)
		if !ok {
			return badValue("$within not supported with provided geometry: %s", notation.Brief(spec))
		}
		n.Region = region
		return nil
	}
	switch specifier {
	case "$box":
		n.Region, err = geo.ParseBox(v)
	case "$polygon":
		n.Region, err = geo.ParsePolygon(v)
	case "$center":
		n.Region, err = geo.ParseCircle(v, false)
	case "$centerSphere":
		n.Region, err = geo.ParseCircle(v, true)
	default:
		return badValue("unknown geo specifier: %s", notation.Element(specifier, v))
	}
	if err == nil && n.Operator == "$geoIntersects" {
		return badValue("$geoIntersect not supported with provided geometry: %s", notation.Brief(spec))
	}
	return err
}

// test matches values that are geometries.
func (n *Geo) test(v bsoncore.Value, _ *int) (bool, error) {
	if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
		return false, nil
	}
	g, err := geo.Parse(v)
	if err != nil {
		return false, nil // what is no geometry does not match; that is no error
	}
	if n.Region != nil {
		return n.Region.Contains(g), nil
	}
	return geo.Intersects(n.Geometry, g), nil
}
