package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// explainWrite explains the one statement of an update or delete.
func (r *request) explainWrite(verbosity string) (bsoncore.Document, error) {
	field, parse := "updates", (*request).parseUpdate
	if r.name == "delete" {
		field, parse = "deletes", (*request).parseDelete
	}
	list, _, err := r.statements(field, parse)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, document.NewError(codeInvalidLength, "explained write batches must be of size 1")
	}
	if err := r.refused[0]; err != nil {
		return nil, err
	}
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	plan, err := c.ExplainStatement(r.ctx, &list[0], verbosity)
	return r.explainedWrite(&explainedWrite{update: r.name == "update"}, plan, err)
}

// explainModify explains a findAndModify.
func (r *request) explainModify(verbosity string) (bsoncore.Document, error) {
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	o, filter, err := r.parseFindAndModify()
	if err != nil {
		return nil, err
	}
	plan, err := c.ExplainModify(r.ctx, filter, r.raw("update"), o, verbosity)
	return r.explainedWrite(&explainedWrite{update: !o.Remove, answers: true}, plan, err)
}

// explainedWrite answers with the plan of the query that finds the documents of a write, with its stage over it.
func (r *request) explainedWrite(w *explainedWrite, plan bson.Raw, err error) (bsoncore.Document, error) {
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
