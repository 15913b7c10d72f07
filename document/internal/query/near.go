package query

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/geo"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
)

// Unit is how a Near measures.
type Unit uint8

// The units.
const (
	Meters      Unit = iota // on the sphere, from a GeoJSON point
	Radians                 // on the sphere, from a legacy point: $nearSphere
	Coordinates             // on the plane, from a legacy point: $near
)

// Near is {Path: {$near: ...}} or {Path: {$nearSphere: ...}}: it matches where Distance finds a geometry between MinDistance and
// MaxDistance, and asks for results in the order of distance. There is one in a filter at most: the root, or a child of the root And.
type Near struct {
	Path                     string
	Center                   geo.Point
	Unit                     Unit
	MinDistance, MaxDistance float64
	Spec                     bsoncore.Document // as given: {$near: ..., $maxDistance: ...}

	path path.Path
}

func (*Near) node() {}

// Codes without a name that are about $near.
const (
	nearArgument  mongoerror.Code = 34413
	minNotANumber mongoerror.Code = 16893
	minNegative   mongoerror.Code = 16894
	maxNotANumber mongoerror.Code = 16895
	maxNegative   mongoerror.Code = 16896
)

func isNear(doc []byte) bool {
	e := path.ElementsOf(doc)
	name, v, ok := e.Next()
	if !ok || v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
		return false
	}
	return string(name) == "$near" || string(name) == "$nearSphere" || string(name) == "$geoNear"
}

func errNearInside() error { return badValue("geo $near must be top-level expr") }

// checkNear refuses $near anywhere but at the top.
func checkNear(root Node) error {
	top := []Node{root}
	if and, ok := root.(*And); ok {
		top = and.Children
	}
	count := 0
	for _, n := range top {
		if _, ok := n.(*Near); ok {
			count++
		} else if hasNear(n) {
			return errNearInside()
		}
	}
	if count > 1 {
		return badValue("Too many geoNear expressions")
	}
	return nil
}

func hasNear(n Node) bool {
	if _, ok := n.(*Near); ok {
		return true
	}
	for _, child := range childrenOf(n) {
		if hasNear(child) {
			return true
		}
	}
	return false
}

// near parses $near with the operators beside it.
func (p *parser) near(name string, doc bsoncore.Document) (Node, error) {
	if p.inner > 0 {
		return nil, errNearInside()
	}
	if p.options.Validator {
		return nil, mongoerror.New(mongoerror.Code(5626500), "$geoNear, $near, and $nearSphere are not allowed in this context")
	}
	n := &Near{Path: name, Spec: doc, MaxDistance: math.MaxFloat64, path: path.Parse(name)}
	elements := path.ElementsOf(doc)
	op, v, _ := elements.Next()
	legacy, err := n.legacy(string(op), v)
	if err == nil && !legacy {
		err = n.geometry(string(op), v)
	}
	if err != nil {
		return nil, err
	}
	for {
		name, v, ok := elements.Next()
		if !ok {
			break
		}
		switch name := string(name); name {
		case "$maxDistance", "$minDistance":
			if !legacy {
				return nil, badValue("geo near accepts just one argument when querying for a GeoJSON point. Extra field found: %s",
					notation.Element(name, v))
			}
			if err := n.distance(name, v, true); err != nil {
				return nil, err
			}
		case "$uniqueDocs":
		default:
			return nil, mongoerror.New(nearArgument, "invalid argument in geo near query: %s", name)
		}
	}
	if n.Unit == Radians && !n.Center.OnSphere() {
		return nil, badValue("Legacy point is out of bounds for spherical query")
	}
	return n, nil
}

// legacy parses [x, y], [x, y, maxDistance] and {x: 1, y: 2, $maxDistance: 3}. ok is false when it is none of these.
func (n *Near) legacy(op string, v bsoncore.Value) (ok bool, err error) {
	numbers := 0
	for e := path.ElementsOf(v.Data); ; {
		name, member, more := e.Next()
		if !more {
			break
		}
		x, isNumber := number.Of(member)
		switch {
		case string(name) == "$maxDistance" || string(name) == "$minDistance":
			if numbers < 2 {
				return false, nil
			}
			if err := n.distance(string(name), member, true); err != nil {
				return false, err
			}
			continue
		case !isNumber:
			return false, nil
		case numbers == 2:
			n.MaxDistance = x.Float64()
		}
		numbers++
	}
	if numbers < 2 {
		return false, nil
	}
	n.Unit = Coordinates
	if op == "$nearSphere" {
		n.Unit = Radians
	}
	n.Center, err = geo.ParsePoint(v)
	return true, err
}

// geometry parses {$geometry: {...}, $minDistance: 1, $maxDistance: 2}, and a GeoJSON point in its place.
func (n *Near) geometry(op string, v bsoncore.Value) error {
	if g, err := geo.Parse(v); err == nil && g.Kind() == geo.PointKind && g.Surface() == geo.Sphere {
		return n.center(op, v)
	}
	found := false
	for e := path.ElementsOf(v.Data); ; {
		name, operand, ok := e.Next()
		if !ok {
			break
		}
		switch name := string(name); name {
		case "$geometry":
			if operand.Type != bsoncore.TypeEmbeddedDocument && operand.Type != bsoncore.TypeArray {
				continue
			}
			if err := n.center(op, operand); err != nil {
				return err
			}
			found = true
		case "$minDistance", "$maxDistance":
			if err := n.distance(name, operand, false); err != nil {
				return err
			}
		default:
			return badValue("invalid argument in geo near query: %s", name)
		}
	}
	if !found {
		return badValue("$geometry is required for geo near query")
	}
	return nil
}

func (n *Near) center(op string, v bsoncore.Value) error {
	g, err := geo.Parse(v)
	if err != nil {
		return badValue("invalid point in geo near query $geometry argument: %s  %s", notation.Brief(v), messageOf(err))
	}
	p, ok := g.Point()
	if !ok || g.Surface() != geo.Sphere {
		v.Type = bsoncore.TypeEmbeddedDocument // an array is shown with its positions
		return badValue("%s requires geojson point, given %s", op, notation.Brief(v))
	}
	n.Center = p
	return nil
}

func (n *Near) distance(name string, v bsoncore.Value, legacy bool) error {
	notANumber, negative, to := maxNotANumber, maxNegative, &n.MaxDistance
	if name == "$minDistance" {
		notANumber, negative, to = minNotANumber, minNegative, &n.MinDistance
	}
	if !legacy {
		notANumber, negative = mongoerror.BadValue, mongoerror.BadValue
	}
	x, ok := number.Of(v)
	if !ok {
		return mongoerror.New(notANumber, "%s must be a number", name)
	}
	if *to = x.Float64(); !(*to >= 0) {
		return mongoerror.New(negative, "%s must be non-negative", name)
	}
	return nil
}

// Distance returns how far the nearest geometry of the document's field is, in the unit of n. ok is false when the field has no geometry,
// or none that is within the distances asked for.
func (n *Near) Distance(doc path.Fields) (distance float64, ok bool) {
	distance, _, ok = n.Nearest(doc)
	return distance, ok
}

// Nearest is Distance, and returns the geometry too, which refers to the document.
func (n *Near) Nearest(doc path.Fields) (distance float64, place bsoncore.Value, ok bool) {
	distance = math.Inf(1)
	n.path.Walk(doc, path.Each, func(v bsoncore.Value, _ int) bool {
		if d, found := n.distanceOf(v); found && d < distance {
			distance, place, ok = d, v, true
		}
		return false
	})
	return distance, place, ok
}

// distanceOf returns the distance of one value that is a geometry near enough.
func (n *Near) distanceOf(v bsoncore.Value) (float64, bool) {
	if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
		return 0, false
	}
	g, err := geo.Parse(v)
	if err != nil {
		return 0, false
	}
	var d float64
	var ok bool
	if n.Unit == Coordinates {
		var p geo.Point
		p, ok = g.Point()
		d = geo.FlatDistance(n.Center, p)
	} else {
		d, ok = g.SphereDistance(n.Center)
	}
	if n.Unit == Meters {
		d *= geo.EarthRadius
	}
	return d, ok && d >= n.MinDistance && d <= n.MaxDistance
}

// test matches values that are geometries near enough.
func (n *Near) test(v bsoncore.Value, _ *int) (bool, error) {
	_, ok := n.distanceOf(v)
	return ok, nil
}
