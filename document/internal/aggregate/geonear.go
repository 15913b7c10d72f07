package aggregate

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// Codes without a name that are about $geoNear.
const (
	nearDistanceField mongoerror.Code = 16606
	nearLocationField mongoerror.Code = 16607
	nearMissing       mongoerror.Code = 5860400
	nearType          mongoerror.Code = 5860401
	nearNotConstant   mongoerror.Code = 5860402
)

// geoNearStage is $geoNear: a search by distance that an index answers, whose results say how far they are.
type geoNearStage struct {
	near                value
	spherical           bool
	minimum, maximum    value
	query               document
	distance, locations []string // where the results say it
	multiplier          float64
	key                 string // the indexed field; empty: the only one there is
}

func (s *geoNearStage) source() {}

func (p *parser) geoNear(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(10065), "invalid parameter: expected an object ($geoNear)")
	}
	s := &geoNearStage{multiplier: 1}
	for e := path.ElementsOf(spec.Data); ; {
		name, v, ok := e.Next()
		if !ok {
			break
		}
		if err := s.option(p, string(name), v); err != nil {
			return nil, err
		}
	}
	switch {
	case s.near.Type == 0:
		return nil, mongoerror.New(nearMissing, "$geoNear requires a 'near' argument")
	case s.distance == nil:
		return nil, mongoerror.New(nearDistanceField, "$geoNear requires a 'distanceField' option as a String")
	}
	return s, nil
}

// option parses one field of the stage.
func (s *geoNearStage) option(p *parser, name string, v value) (err error) {
	switch name {
	case "near":
		if s.near, err = p.independent(name, v); err != nil {
			return err
		}
		if s.near.Type != bsoncore.TypeEmbeddedDocument && s.near.Type != bsoncore.TypeArray {
			return mongoerror.New(nearType, "$geoNear requires near argument to be a GeoJSON object or a legacy point(array)")
		}
	case "distanceField":
		if v.Type != bsoncore.TypeString {
			return mongoerror.New(nearDistanceField, "$geoNear requires a 'distanceField' option as a String")
		}
		s.distance, err = path.Split(v.StringValue())
	case "includeLocs":
		if v.Type != bsoncore.TypeString {
			return mongoerror.New(nearLocationField, "$geoNear requires that 'includeLocs' option is a String")
		}
		s.locations, err = path.Split(v.StringValue())
	case "minDistance":
		s.minimum, _, err = p.distance(name, v)
	case "maxDistance":
		s.maximum, _, err = p.distance(name, v)
	case "distanceMultiplier":
		_, s.multiplier, err = p.distance(name, v)
	case "query":
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return mongoerror.New(mongoerror.TypeMismatch, "query must be an object")
		}
		s.query = v.Document()
	case "spherical":
		s.spherical = expression.Truthy(v)
	case "key":
		if v.Type != bsoncore.TypeString {
			return mongoerror.New(mongoerror.TypeMismatch, "$geoNear parameter 'key' must be of type string but found type: %s", mongoerror.TypeName(v.Type))
		}
		if s.key = v.StringValue(); s.key == "" {
			return mongoerror.New(mongoerror.BadValue, "$geoNear parameter 'key' cannot be the empty string")
		}
	case "limit":
		return mongoerror.New(mongoerror.Code(50858), "$geoNear no longer supports the 'limit' parameter. Use a $limit stage instead.")
	case "num":
		return mongoerror.New(mongoerror.Code(50857), "$geoNear no longer supports the 'num' parameter. Use a $limit stage instead.")
	case "start":
		return mongoerror.New(mongoerror.Code(50856), "$geoNear no longer supports the 'start' argument.")
	case "collation":
		return mongoerror.New(mongoerror.Code(40227), "$geoNear does not accept the 'collation' parameter. Instead, specify a collation for the entire aggregation command.")
	}
	return err
}

// independent evaluates what depends on no document.
func (p *parser) independent(name string, v value) (value, error) {
	e, err := expression.Parse(v, p.o.expression())
	if err != nil {
		return value{}, err
	}
	if paths, whole := e.Fields(); whole || len(paths) > 0 {
		return value{}, mongoerror.New(nearNotConstant, "$geoNear requires a constant %s argument", name)
	}
	v, err = e.Eval(fields())
	return clone(v), err
}

func (p *parser) distance(name string, v value) (value, float64, error) {
	v, err := p.independent(name, v)
	if err != nil {
		return value{}, 0, err
	}
	x, ok := number.Of(v)
	if !ok {
		return value{}, 0, mongoerror.New(mongoerror.TypeMismatch, "%s must be a number", name)
	}
	if !(x.Float64() >= 0) {
		return value{}, 0, mongoerror.New(mongoerror.BadValue, "%s must be nonnegative", name)
	}
	return v, x.Float64(), nil
}

// filter returns what is asked of the collection, and the part of it that measures.
func (s *geoNearStage) filter(key string, o *Options) (document, *query.Near, error) {
	operator := "$near"
	if s.spherical {
		operator = "$nearSphere"
	}
	limits := []any{}
	if s.minimum.Type != 0 {
		limits = append(limits, "$minDistance", s.minimum)
	}
	if s.maximum.Type != 0 {
		limits = append(limits, "$maxDistance", s.maximum)
	}
	condition := fields(append([]any{operator, s.near}, limits...)...)
	if _, ok := path.Lookup(s.near.Data, "type"); ok && s.near.Type == bsoncore.TypeEmbeddedDocument {
		condition = fields(operator, object(append([]any{"$geometry", s.near}, limits...)...))
	}
	filter := fields(key, documentValue(condition))
	alone, err := query.Parse(filter, &query.Options{Collation: o.Collation, Let: o.Let, Now: o.Now, Call: o.Call})
	if err != nil {
		return nil, nil, err
	}
	near, ok := alone.Root.(*query.Near)
	if !ok {
		return nil, nil, mongoerror.New(nearType, "$geoNear requires near argument to be a GeoJSON object or a legacy point(array)")
	}
	if s.query != nil {
		filter = fields("$and", array(documentValue(filter), documentValue(s.query)))
		_, err = query.Parse(filter, &query.Options{Collation: o.Collation, Let: o.Let, Now: o.Now, Call: o.Call})
	}
	return filter, near, err
}

func (s *geoNearStage) open(ctx context.Context, x *run, _ Cursor) (Cursor, error) {
	key := s.key
	if key == "" {
		var err error
		if key, err = x.env.Located(ctx, x.o.Database, x.o.Collection); err != nil {
			return nil, err
		}
	}
	filter, near, err := s.filter(key, x.o)
	if err != nil {
		return nil, err
	}
	in, err := x.env.Find(ctx, x.o.Database, x.o.Collection,
		&Request{Filter: filter, Hint: x.o.Hint, Collation: x.o.Collation, Let: x.o.Let, Now: x.o.Now})
	if err != nil {
		return nil, err
	}
	return &mapCursor{in: in, apply: func(dst []byte, doc document) (document, bool, error) {
		distance, place, ok := near.Nearest(path.Document(doc))
		dst = appendSet(dst, doc, s.distance, doubleValue(distance*s.multiplier))
		if s.locations != nil {
			dst = appendSet(nil, dst, s.locations, place)
		}
		return dst, ok, nil
	}}, nil
}
