package aggregate

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// stage is a parsed stage.
type stage interface {
	// open returns the stage's output over its input, which it closes with itself. A source gets nil.
	open(ctx context.Context, x *run, in Cursor) (Cursor, error)
}

// step is a stage with its name and specification, as explain shows them.
type step struct {
	name  string
	spec  value
	stage stage
}

// isSource reports whether the stage makes its rows by itself.
func (s *step) isSource() bool {
	_, ok := s.stage.(source)
	return ok
}

// source is a stage without input.
type source interface{ source() }

// maxStages is how many stages MongoDB takes.
const maxStages = 1000

// maxNesting is how deep pipelines may lie within pipelines.
const maxNesting = 20

// parser turns the stages of a pipeline into steps.
type parser struct {
	o      *Options
	inside string // the stage that the pipeline is an argument of
}

func (p *parser) steps(pipeline []document) ([]step, error) {
	if len(pipeline) > maxStages {
		return nil, mongoerror.New(mongoerror.FailedToParse, "Pipeline length must be no longer than %d stages", maxStages)
	}
	var list []step
	for i, spec := range pipeline {
		elements, err := spec.Elements()
		if err != nil || len(elements) != 1 {
			return nil, mongoerror.StageOfManyFields()
		}
		if name, v := elements[0].Key(), elements[0].Value(); i > 0 && name == "$match" && v.Type == bsoncore.TypeEmbeddedDocument && searchesIn(v.Data) {
			return nil, mongoerror.New(mongoerror.Code(17313), "$match with $text is only allowed as the first pipeline stage")
		}
		steps, err := p.stage(elements[0].Key(), elements[0].Value())
		if err != nil {
			return nil, err
		}
		list = append(list, steps...)
	}
	return list, nil
}

// stage parses one stage; some are several others.
func (p *parser) stage(name string, spec value) ([]step, error) {
	switch name {
	case "$bucket":
		return p.bucket(spec)
	case "$sortByCount":
		return p.sortByCount(spec)
	case "$count":
		return p.count(spec)
	case "$fill":
		return p.fill(spec)
	case "$setWindowFields":
		return one(name, spec)(p.windowFields(spec))
	}
	if s, ok, err := p.simpleStage(name, spec); ok || err != nil {
		return one(name, spec)(s, err)
	}
	if s, ok, err := p.blockingStage(name, spec); ok || err != nil {
		return one(name, spec)(s, err)
	}
	if s, ok, err := p.outerStage(name, spec); ok || err != nil {
		return one(name, spec)(s, err)
	}
	if isSpecial(name) {
		return one(name, spec)(&specialStage{name: name, spec: spec}, nil)
	}
	return nil, mongoerror.New(mongoerror.Code(40324), "Unrecognized pipeline stage name: '%s'", name)
}

func one(name string, spec value) func(s stage, err error) ([]step, error) {
	return func(s stage, err error) ([]step, error) {
		if err != nil {
			return nil, err
		}
		return []step{{name, spec, s}}, nil
	}
}

// simpleStage parses stages that make nothing or one of each document.
func (p *parser) simpleStage(name string, spec value) (s stage, ok bool, err error) {
	switch name {
	case "$match":
		s, err = p.match(spec)
	case "$project":
		s, err = p.project(spec)
	case "$addFields", "$set":
		s, err = p.addFields(name, spec)
	case "$unset":
		s, err = p.unset(spec)
	case "$replaceRoot":
		s, err = p.replaceRoot(spec)
	case "$replaceWith":
		s, err = p.replaceWith(spec)
	case "$redact":
		s, err = p.redact(spec)
	case "$limit":
		s, err = parseLimit(spec)
	case "$skip":
		s, err = parseSkip(spec)
	case "$unwind":
		s, err = parseUnwind(spec)
	case "$changeStreamSplitLargeEvent":
		s = identityStage{}
	default:
		return nil, false, nil
	}
	return s, true, err
}

// blockingStage parses stages that see all of their input first.
func (p *parser) blockingStage(name string, spec value) (s stage, ok bool, err error) {
	switch name {
	case "$group":
		s, err = p.group(spec)
	case "$sort":
		s, err = p.sort(spec)
	case "$sample":
		s, err = parseSample(spec)
	case "$facet":
		s, err = p.facet(spec)
	case "$bucketAuto":
		s, err = p.bucketAuto(spec)
	case "$densify":
		s, err = p.densify(spec)
	default:
		return nil, false, nil
	}
	return s, true, err
}

// outerStage parses stages that read or write elsewhere.
func (p *parser) outerStage(name string, spec value) (s stage, ok bool, err error) {
	switch name {
	case "$lookup":
		s, err = p.lookup(spec)
	case "$graphLookup":
		s, err = p.graphLookup(spec)
	case "$unionWith":
		s, err = p.unionWith(spec)
	case "$out":
		s, err = p.out(spec)
	case "$merge":
		s, err = p.merge(spec)
	case "$documents":
		s, err = p.documents(spec)
	case "$geoNear":
		s, err = p.geoNear(spec)
	case "$search", "$searchMeta", "$vectorSearch", "$listSearchIndexes":
		err = mongoerror.New(mongoerror.CommandNotSupported, "the stage %s is not supported", name)
	default:
		return nil, false, nil
	}
	return s, true, err
}

// isSpecial reports whether the rows of a stage come from the environment.
func isSpecial(name string) bool {
	switch name {
	case "$collStats", "$indexStats", "$currentOp", "$listSessions", "$listLocalSessions", "$planCacheStats",
		"$listCatalog", "$operationMetrics", "$changeStream", "$shardedDataDistribution", "$querySettings", "$queryStats",
		"$listSampledQueries":
		return true
	}
	return false
}

// needsNoCollection reports whether a stage may begin the pipeline of {aggregate: 1}; only tells that it must be such a one.
func needsNoCollection(name string) (may, only bool) {
	switch name {
	case "$currentOp", "$listLocalSessions", "$documents", "$operationMetrics", "$shardedDataDistribution", "$queryStats":
		return true, true
	case "$changeStream", "$listCatalog", "$querySettings":
		return true, false
	}
	return false, false
}

// checkPositions holds the order of the stages against what MongoDB allows.
func checkPositions(steps []step, o *Options, inside string) error {
	for i := range steps {
		name := steps[i].name
		if i > 0 && name == "$geoNear" {
			return mongoerror.New(mongoerror.Code(40603), "$geoNear is only valid as the first stage in an optimized pipeline")
		}
		if i > 0 && steps[i].isSource() {
			return mongoerror.New(mongoerror.InvalidPipelineOperatorOptions, "%s is only valid as the first stage in a pipeline", name)
		}
		if err := checkInside(name, inside); err != nil {
			return err
		}
		if s, ok := steps[i].stage.(*sortStage); ok && s.needsMeta("textScore") && !searchesText(steps) {
			return mongoerror.New(mongoerror.Code(40218), "query requires text score metadata, but it is not available")
		}
		if i < len(steps)-1 && (name == "$out" || name == "$merge") {
			return mongoerror.New(mongoerror.Code(40601), "%s can only be the final stage in the pipeline", name)
		}
	}
	if inside == "$facet" || len(steps) == 0 {
		return nil
	}
	may, only := needsNoCollection(steps[0].name)
	switch {
	case o.Collection == "" && !may && steps[0].isSource():
		return mongoerror.New(mongoerror.InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.", steps[0].name)
	case o.Collection != "" && only:
		return mongoerror.New(mongoerror.InvalidNamespace, "'%s' can only be run with {aggregate: 1}", steps[0].name)
	}
	return nil
}

func searchesText(steps []step) bool {
	m, ok := steps[0].stage.(*matchStage)
	return ok && m.text
}

func checkInside(name, inside string) error {
	switch inside {
	case "$facet":
		switch name {
		case "$facet", "$out", "$merge", "$geoNear", "$collStats", "$indexStats", "$planCacheStats", "$currentOp", "$listSessions",
			"$listLocalSessions", "$documents", "$changeStream", "$search", "$listCatalog":
			return mongoerror.New(mongoerror.Code(40600), "%s is not allowed to be used within a $facet stage", name)
		}
	case "$lookup":
		switch name {
		case "$out", "$merge", "$changeStream", "$currentOp", "$listLocalSessions":
			return mongoerror.New(mongoerror.Code(51047), "%s is not allowed within a $lookup's sub-pipeline", name)
		}
	case "$unionWith":
		switch name {
		case "$out", "$merge", "$changeStream", "$currentOp", "$listLocalSessions":
			return mongoerror.New(mongoerror.Code(31441), "%s is not allowed within a $unionWith's sub-pipeline", name)
		}
	}
	return nil
}

// pipelineOf reads an array of stages.
func pipelineOf(v value) ([]document, error) {
	if v.Type != bsoncore.TypeArray {
		return nil, mongoerror.New(mongoerror.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	values, err := v.Array().Values()
	if err != nil {
		return nil, err
	}
	var list []document
	for _, v := range values {
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return nil, mongoerror.StageNotAnObject()
		}
		list = append(list, v.Document())
	}
	return list, nil
}
