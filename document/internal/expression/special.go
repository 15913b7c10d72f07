package expression

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

func parseLiteral(_ *parser, _ string, v bsoncore.Value) (node, error) { return &constant{v}, nil }

// parseScript refuses the operators that run code.
func parseScript(_ *parser, name string, _ bsoncore.Value) (node, error) {
	return nil, mongoerror.New(mongoerror.CommandNotSupported, "%s is not supported: the server runs no JavaScript", name)
}

// parseMeta parses the kind of metadata, which a variable of EvalWith or Options.Meta gives.
func parseMeta(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isString(v) {
		return nil, mongoerror.New(17307, "%s only supports string arguments", name)
	}
	kind := string(stringOf(v))
	if err := p.options.CheckMeta(kind); err != nil {
		return nil, err
	}
	switch kind {
	case "textScore", "randVal", "searchScore", "searchHighlights", "geoNearDistance", "geoNearPoint", "recordId", "indexKey", "sortKey",
		"searchScoreDetails", "vectorSearchScore", "timeseriesBucketMinTime", "timeseriesBucketMaxTime":
	default:
		return nil, mongoerror.New(17308, "Unsupported argument to %s: %s", name, kind)
	}
	if !slices.Contains(p.metas, kind) {
		p.metas = append(p.metas, kind)
	}
	slot := slices.Index(p.external, MetaVariable(kind))
	if slot < 0 {
		slot = p.slots
		p.slots++
		p.external, p.externalSlots = append(p.external, MetaVariable(kind)), append(p.externalSlots, slot)
	} else {
		slot = p.externalSlots[slot]
	}
	return &volatile{lazy{apply: func(st *state, _ []node) (bsoncore.Value, error) {
		if v := st.variables[slot]; v.Type != 0 || st.meta == nil {
			return v, nil
		}
		return st.meta(kind), nil
	}}}, nil
}

// CheckMeta refuses a kind of metadata that is not known where expressions have these options.
func (o *Options) CheckMeta(kind string) error {
	if o != nil && o.Unsorted && kind == "sortKey" {
		return mongoerror.New(mongoerror.CommandNotSupported, "{$meta: \"sortKey\"} is not supported in a pipeline, only in the projection of a find")
	}
	if o != nil && o.Unscored && kind == "textScore" {
		return mongoerror.New(mongoerror.Code(40218), "query requires text score metadata, but it is not available")
	}
	return nil
}

// MetaVariable is the name of the variable by which EvalWith is given what {$meta: kind} means for the document.
func MetaVariable(kind string) string { return "meta:" + kind }

func parseRand(p *parser, name string, v bsoncore.Value) (node, error) {
	if p.options.Validator {
		return nil, mongoerror.New(3040500, "$rand not allowed inside collection validators")
	}
	if (isObject(v) || isArray(v)) && count(v.Data) == 0 {
		return &volatile{lazy{apply: func(st *state, _ []node) (bsoncore.Value, error) { return st.double(rand.Float64()) }}}, nil
	}
	if isObject(v) || isArray(v) {
		return nil, mongoerror.New(3040501, "%s does not currently accept arguments", name)
	}
	return nil, mongoerror.New(10065, "invalid parameter: expected an object (%s)", name)
}

// evalTimestampPart is $tsSecond and $tsIncrement.
func evalTimestampPart(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	if isNullish(v) {
		return null(), nil
	}
	seconds, increment, ok := v.TimestampOK()
	switch {
	case !ok:
		code := mongoerror.Code(5687301)
		if name == "$tsIncrement" {
			code = 5687302
		}
		return bsoncore.Value{}, mongoerror.New(code, " Argument to %s must be a timestamp, but is %s", name, typeName(v))
	case name == "$tsSecond":
		return st.number(number.Int64(int64(seconds)))
	}
	return st.number(number.Int64(int64(increment)))
}

func evalType(st *state, _ string, v bsoncore.Value) (bsoncore.Value, error) {
	return st.text(typeName(v))
}

func evalIsNumber(st *state, _ string, v bsoncore.Value) (bsoncore.Value, error) {
	_, ok := number.Of(v)
	return st.boolean(ok), nil
}
