package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

func (r *request) explainAggregate(name string, stages bson.RawArray, o *document.AggregateOptions, verbosity string) (bsoncore.Document, error) {
	plan, err := r.lookup(name).ExplainAggregate(r.ctx, stages, o, verbosity)
	if err != nil {
		return nil, err
	}
	return r.explained(plan), nil
}

// explained adds to a plan what the server knows.
func (r *request) explained(plan bson.Raw) bsoncore.Document {
	at, out := bsoncore.AppendDocumentStart(nil)
	elements, err := bsoncore.Document(plan).Elements()
	if err == nil {
		for _, e := range elements {
			if e.Key() != "ok" {
				out = append(out, e...)
			}
		}
	}
	out = bsoncore.AppendDocumentElement(out, "command", r.withDatabase())
	out = bsoncore.AppendDocumentElement(out, "serverInfo", r.server.info())
	out = bsoncore.AppendDocumentElement(out, "serverParameters", queryParameters())
	out = bsoncore.AppendDoubleElement(out, "ok", 1)
	out, err = bsoncore.AppendDocumentEnd(out, at)
	if err != nil {
		return bsoncore.Document(plan)
	}
	return out
}

// queryParameters are MongoDB's limits of what a query takes, which tools read from plans, as they are where nobody has set them.
func queryParameters() bsoncore.Document {
	const most = 100 << 20 // bytes
	b := bsoncore.NewDocumentBuilder()
	for _, name := range []string{
		"internalQueryFacetBufferSizeBytes", "internalQueryFacetMaxOutputDocSizeBytes", "internalLookupStageIntermediateDocumentMaxSizeBytes",
		"internalDocumentSourceGroupMaxMemoryBytes", "internalQueryMaxBlockingSortMemoryUsageBytes", "internalQueryMaxAddToSetBytes",
		"internalDocumentSourceSetWindowFieldsMaxMemoryBytes",
	} {
		b.AppendInt32(name, most)
	}
	return b.AppendInt32("internalQueryProhibitBlockingMergeOnMongoS", 0).Build()
}

// withDatabase is the command with the database that it is for.
func (r *request) withDatabase() bsoncore.Document {
	if _, err := r.body.LookupErr("$db"); err == nil {
		return r.body
	}
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(r.body) {
		b.AppendValue(e.Key(), e.Value())
	}
	return b.AppendString("$db", r.db).Build()
}

// explain tells how the command inside would be, or was, carried out.
func (r *request) explain() (bsoncore.Document, error) {
	inner, isDoc := r.target.DocumentOK()
	if !isDoc {
		return nil, wrongType("explain.explain", r.target, "object")
	}
	verbosity, err := r.text("verbosity")
	if err != nil {
		return nil, err
	}
	if verbosity == "" && r.has("verbosity") {
		return nil, document.NewError(document.BadValue, "Enumeration value '' for field 'explain.verbosity' is not a valid value.")
	}
	if verbosity == "" {
		verbosity = "allPlansExecution"
	}
	x := *r
	x.body, x.docs = inner, nil
	first, err := inner.IndexErr(0)
	if err != nil {
		return nil, document.NewError(codeCommandNotFound, "Explain failed due to unknown command: ")
	}
	x.name, x.target = first.Key(), first.Value()
	db := r.db
	if err := x.parse(); err != nil && document.CodeOf(err) != codeMissingField {
		return nil, err
	}
	x.db = db
	if x.command != nil {
		if err := x.checkTypes(); err != nil && x.command.name != "explain" {
			return nil, err
		}
	}
	switch x.name {
	case "find":
		filter, o, err := x.parseFind()
		if err != nil {
			return nil, err
		}
		o.Verbosity = verbosity
		return x.explainFind(filter, o)
	case "count", "distinct":
		return x.explainValues(verbosity)
	case "aggregate":
		stages, err := x.pipeline()
		if err != nil {
			return nil, err
		}
		o, err := x.aggregateOptions()
		if err != nil {
			return nil, err
		}
		name, _, err := x.aggregated()
		if err != nil {
			return nil, err
		}
		return x.explainAggregate(name, stages, o, verbosity)
	case "update", "delete":
		return x.explainWrite(verbosity)
	case "findAndModify", "findandmodify":
		return x.explainModify(verbosity)
	}
	if x.command == nil {
		return nil, document.NewError(codeCommandNotFound, "Explain failed due to unknown command: %s", x.name)
	}
	return nil, document.NewError(codeIllegalOperation, "Cannot explain cmd: %s", x.name)
}

func (r *request) explainFind(filter any, o *document.FindOptions) (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	plan, err := c.Explain(r.ctx, filter, o)
	if err != nil {
		return nil, err
	}
	return r.explained(plan), nil
}

// explainValues explains count and distinct.
func (r *request) explainValues(verbosity string) (bsoncore.Document, error) {
	filter, err := r.optional("query")
	if err != nil {
		return nil, err
	}
	o := &document.FindOptions{Hint: r.raw("hint"), Verbosity: verbosity}
	if o.Collation, err = r.optional("collation"); err != nil {
		return nil, err
	}
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	var plan bson.Raw
	if r.name == "count" {
		plan, err = c.ExplainCount(r.ctx, filter, o)
	} else {
		var key string
		if key, err = r.text("key"); err == nil {
			plan, err = c.ExplainDistinct(r.ctx, key, filter, o)
		}
	}
	if err != nil {
		return nil, err
	}
	return r.explained(plan), nil
}
