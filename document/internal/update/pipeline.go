package update

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/projection"
)

// maxStages is how many stages MongoDB takes.
const maxStages = 1000

// unknownStage is a code that has no name.
const unknownStage mongoerror.Code = 40324

// isOtherStage reports whether a stage exists that an update cannot have.
func isOtherStage(name string) bool {
	switch name {
	case "$bucket", "$bucketAuto", "$changeStream", "$changeStreamSplitLargeEvent", "$collStats", "$count", "$currentOp",
		"$densify", "$documents", "$facet", "$fill", "$geoNear", "$graphLookup", "$group", "$indexStats", "$limit",
		"$listLocalSessions", "$listSearchIndexes", "$listSessions", "$lookup", "$match", "$merge", "$out", "$planCacheStats",
		"$redact", "$sample", "$search", "$searchMeta", "$setWindowFields", "$skip", "$sort", "$sortByCount", "$unionWith",
		"$unwind", "$vectorSearch":
		return true
	}
	return false
}

// transformation is a stage, or several that work together: a *projection.Projection or a *projection.Sequence.
type transformation interface {
	Apply(dst []byte, doc bsoncore.Document) ([]byte, error)
}

// parsePipeline parses the stages.
func (u *Update) parsePipeline(v bsoncore.Value, o *Options) error {
	options := &projection.Options{Expression: &expression.Options{
		Collation: o.Collation, Let: o.Let, Now: o.Now, Call: o.Call, Later: true, Unsorted: true,
	}}
	var sequence *projection.Sequence
	stages := elementsOf(v)
	if len(stages) > maxStages {
		return mongoerror.New(mongoerror.FailedToParse, "Pipeline length must be no longer than %d stages", maxStages)
	}
	for _, stage := range stages {
		if stage.Type != bsoncore.TypeEmbeddedDocument {
			return mongoerror.StageNotAnObject()
		}
		e, ok := only(stage.Data)
		if !ok {
			return mongoerror.StageOfManyFields()
		}
		p, err := parseStage(string(e.Name), e.Value, options)
		if err != nil {
			return err
		}
		longer, ok := sequence.Then(p)
		switch {
		case !ok:
			u.stages = append(u.stages, p)
		case sequence == nil:
			u.stages = append(u.stages, longer)
		default:
			u.stages[len(u.stages)-1] = longer
		}
		sequence = longer
	}
	return nil
}

func parseStage(name string, v bsoncore.Value, o *projection.Options) (*projection.Projection, error) {
	switch name {
	case "$set", "$addFields":
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return nil, mongoerror.New(40272, "%s specification stage must be an object, got %s", name, mongoerror.TypeName(v.Type))
		}
		named := *o
		named.Stage = name
		return projection.ParseAddFields(v.Data, &named)
	case "$project":
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return nil, mongoerror.New(15969, "$project specification must be an object")
		}
		return projection.ParseProject(v.Data, o)
	case "$unset":
		return projection.ParseUnset(v)
	case "$replaceWith":
		return projection.ParseReplaceRoot(v, o)
	case "$replaceRoot":
		return parseReplaceRoot(v, o)
	}
	if isOtherStage(name) {
		return nil, mongoerror.New(mongoerror.InvalidOptions, "%s is not allowed to be used within an update", name)
	}
	return nil, mongoerror.New(unknownStage, "Unrecognized pipeline stage name: '%s'", name)
}

func parseReplaceRoot(v bsoncore.Value, o *projection.Options) (*projection.Projection, error) {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(40229, "expected an object as specification for $replaceRoot stage, got %s", mongoerror.TypeName(v.Type))
	}
	var root bsoncore.Value
	for s := path.PlacesOf(v.Data); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		if string(e.Name) != "newRoot" {
			return nil, mongoerror.New(40415, "BSON field '$replaceRoot.%s' is an unknown field.", e.Name)
		}
		root = e.Value
	}
	if root.Type == 0 {
		return nil, mongoerror.New(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field")
	}
	return projection.ParseReplaceRoot(root, o)
}

// transform appends what the pipeline makes of doc. _id is kept, and put first.
func (u *Update) transform(dst []byte, doc bsoncore.Document, inserting bool) ([]byte, bool, error) {
	now := doc
	var err error
	for _, stage := range u.stages {
		if now, err = stage.Apply(nil, now); err != nil {
			return dst, false, err
		}
	}
	id, err := identity(doc, now, inserting)
	if err != nil {
		return dst, false, err
	}
	start := len(dst)
	dst = idFirst(dst, now, id)
	if depthOf(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: dst[start:]}) > maxDepth {
		return dst, false, tooDeep()
	}
	changed := !bytes.Equal(doc, dst[start:])
	if inserting && changed && id.Type == bsoncore.TypeArray {
		return dst, false, arrayID()
	}
	return dst, changed, nil
}
