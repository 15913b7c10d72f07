package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// explainWrite explains the one statement of an update or delete.
func (r *request) explainWrite(verbosity string) (bsoncore.Document, error) {
	field := map[string]string{"update": "updates", "delete": "deletes"}[r.name]
	list, err := r.documents(field)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, document.NewError(codeInvalidOptions, "explained write batches must be of size 1")
	}
	args := argsOf(list[0])
	q, isDoc := args["q"].DocumentOK()
	if !isDoc {
		return nil, document.NewError(document.FailedToParse, "a statement without q")
	}
	raw := func(name string) bson.RawValue {
		return bson.RawValue{Type: bson.Type(args[name].Type), Value: args[name].Data}
	}
	o := &document.FindOptions{Hint: raw("hint"), Verbosity: verbosity}
	if args["collation"].Type != 0 {
		o.Collation = raw("collation")
	}
	w := &explainedWrite{update: r.name == "update"}
	if w.update && !truth(args["multi"]) {
		o.Limit = 1
	} else if n, _ := asInt64(args["limit"]); !w.update && n == 1 {
		o.Limit = 1
	}
	return r.explainAs(w, bson.Raw(q), o)
}

// explainModify explains a findAndModify.
func (r *request) explainModify(verbosity string) (bsoncore.Document, error) {
	filter, err := r.optional("query")
	if err != nil {
		return nil, err
	}
	o := &document.FindOptions{Hint: r.raw("hint"), Sort: r.raw("sort"), Limit: 1, Verbosity: verbosity}
	if o.Collation, err = r.optional("collation"); err != nil {
		return nil, err
	}
	remove, err := r.flag("remove")
	if err != nil {
		return nil, err
	}
	return r.explainAs(&explainedWrite{update: !remove, answers: true}, filter, o)
}

// explainAs explains how a write finds its documents.
func (r *request) explainAs(w *explainedWrite, filter any, o *document.FindOptions) (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	if o.Let, err = r.optional("let"); err != nil {
		return nil, err
	}
	plan, err := c.Explain(r.ctx, filter, o)
	if err != nil {
		return nil, err
	}
	return r.explained(bson.Raw(w.over(bsoncore.Document(plan)))), nil
}

// explainedWrite puts the stage of a write over the plan of the query that finds its documents, as MongoDB does. Nothing is written, so
// that it cannot tell how many documents an update would leave as they are.
type explainedWrite struct {
	update  bool // else it deletes
	answers bool // with a document: a findAndModify
}

// over returns an explanation with the stage over each of its plans.
func (w *explainedWrite) over(plan bsoncore.Document) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(plan) {
		switch part, _ := e.Value().DocumentOK(); e.Key() {
		case "queryPlanner":
			b.AppendDocument(e.Key(), w.planner(part))
		case "executionStats":
			b.AppendDocument(e.Key(), w.execution(part))
		default:
			b.AppendValue(e.Key(), e.Value())
		}
	}
	return b.Build()
}

func (w *explainedWrite) planner(planner bsoncore.Document) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(planner) {
		switch e.Key() {
		case "winningPlan":
			b.AppendDocument(e.Key(), w.stage(e.Value().Document()))
		case "rejectedPlans":
			list, _ := e.Value().Array().Values()
			rejected := bsoncore.NewArrayBuilder()
			for _, v := range list {
				rejected.AppendDocument(w.stage(v.Document()))
			}
			b.AppendArray(e.Key(), rejected.Build())
		default:
			b.AppendValue(e.Key(), e.Value())
		}
	}
	return b.Build()
}

func (w *explainedWrite) execution(stats bsoncore.Document) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(stats) {
		switch {
		case e.Key() == "nReturned" && !w.answers:
			b.AppendInt32(e.Key(), 0)
		case e.Key() == "executionStages":
			b.AppendDocument(e.Key(), w.stage(e.Value().Document()))
		default:
			b.AppendValue(e.Key(), e.Value())
		}
	}
	return b.Build()
}

// stage puts the write over a stage, unless there is nothing to be found. It ends after the first document of its own accord, and so takes
// the place of a limit.
func (w *explainedWrite) stage(below bsoncore.Document) bsoncore.Document {
	kind, _ := below.Lookup("stage").StringValueOK()
	if kind == "EOF" {
		return below
	}
	name, found := "DELETE", "nWouldDelete"
	if w.update {
		name, found = "UPDATE", "nMatched"
	}
	b := bsoncore.NewDocumentBuilder().AppendString("stage", name)
	for _, e := range elementsOf(below) {
		switch key := e.Key(); key {
		case "nReturned", "advanced":
			if w.answers {
				b.AppendValue(key, e.Value())
			} else {
				b.AppendInt32(key, 0)
			}
		case "executionTimeMillisEstimate", "works", "needTime", "needYield", "saveState", "restoreState", "isEOF":
			b.AppendValue(key, e.Value())
		}
	}
	if n := below.Lookup("nReturned"); n.Type != 0 {
		b.AppendValue(found, n)
	}
	if kind == "LIMIT" {
		below = below.Lookup("inputStage").Document()
	}
	return b.AppendDocument("inputStage", below).Build()
}
