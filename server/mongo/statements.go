package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// carryOut carries out the statements of an update or delete command in their order, but for those that were carried out before. An error
// ends the command; those of single statements are noted in w.
func (r *request) carryOut(c *document.Collection, list []document.Statement, ordered bool, w *writeResult) error {
	oneByOne := r.oneByOne(list)
	carryOut := func() error { return r.carryOutEach(c, list, oneByOne, ordered, w) }
	switch {
	case r.txn != nil:
		return carryOut()
	case len(list) == 1 && !list[0].Options.Many:
		err := carryOut()
		r.synced = len(w.retried) == 0 && (w.modified > 0 || w.upserts > 0)
		return err
	case oneByOne:
		return r.syncOnce(len(list), carryOut)
	}
	return r.syncOnce(1, carryOut)
}

// carryOutEach is carryOut without a thought of when it is durable.
func (r *request) carryOutEach(c *document.Collection, list []document.Statement, oneByOne, ordered bool, w *writeResult) (failed error) {
	report := func(i int, result *document.UpdateResult, err error) bool {
		if result != nil {
			w.take(i, result)
		}
		if err == nil {
			return true
		}
		if r.fatal(err) {
			failed = err
			return false
		}
		w.fail(i, r.explainError(err))
		return !ordered
	}
	if oneByOne {
		for i := range list {
			if result, err := r.carryOutOne(c, i, &list[i], w); !report(i, result, err) {
				break
			}
		}
		return failed
	}
	var pending []document.Statement
	var numbers []int32
	for i := range list {
		before, err := r.repeated(i, w)
		if err != nil {
			return err
		}
		if before != nil {
			w.take(i, before.update())
			continue
		}
		pending, numbers = append(pending, list[i]), append(numbers, int32(i))
	}
	c.ApplyMany(r.statementContext(numbers...), pending, func(i int, result *document.UpdateResult, err error) bool {
		return report(int(numbers[i]), result, err)
	})
	return failed
}

// refuse notes that a statement fails when its turn comes, while others are carried out.
func (r *request) refuse(i int, err error) {
	if r.refused == nil {
		r.refused = map[int]error{}
	}
	r.refused[i] = err
}

// oneByOne reports whether something has to be looked at before and after each statement.
func (r *request) oneByOne(list []document.Statement) bool {
	if r.refused != nil {
		return true
	}
	if len(list) == 1 || r.txn != nil || !r.retryable {
		return len(list) == 1 || r.txn != nil
	}
	for i := range list {
		if list[i].Options.Many {
			return true // and refused
		}
	}
	return r.server.fails.strikesWrites()
}

// carryOutOne carries out one statement, unless it was carried out before.
func (r *request) carryOutOne(c *document.Collection, i int, s *document.Statement, w *writeResult) (*document.UpdateResult, error) {
	if err := r.refused[i]; err != nil {
		return nil, err
	}
	before, err := r.repeated(i, w)
	if err != nil {
		return nil, err
	}
	if before != nil {
		return before.update(), nil
	}
	if r.retryable && s.Options.Many {
		kind := "multi=true"
		if s.Update == nil {
			kind = "limit=0"
		}
		return nil, document.NewError(codeInvalidOptions, "Cannot use (or request) retryable writes with %s", kind)
	}
	if err := r.server.fails.beforeWrite(r); err != nil {
		return nil, err
	}
	result := new(document.UpdateResult)
	if s.Update != nil {
		result, err = c.Apply(r.statementContext(int32(i)), s.Filter, s.Update, &s.Options)
	} else {
		o := &s.Options
		result.Modified, err = c.Delete(r.statementContext(int32(i)), s.Filter, &document.DeleteOptions{Many: o.Many, Hint: o.Hint, Collation: o.Collation, Let: o.Let})
		result.Matched = result.Modified
	}
	if result != nil && (result.Modified > 0 || result.UpsertedID.Type != 0) {
		r.server.fails.afterWrite(r)
	}
	return result, err
}

// parseStatement reads one statement of an update or delete command.
type parseStatement func(r *request, s *document.Statement, i int, doc bsoncore.Document) error

// statements returns the statements of an update or delete. All are read before any is carried out, so that a command that cannot be
// understood changes nothing.
func (r *request) statements(field string, parse parseStatement) (list []document.Statement, ordered bool, err error) {
	docs, ordered, err := r.batch(field)
	if err != nil {
		return nil, false, err
	}
	let, err := r.optional("let")
	if err != nil {
		return nil, false, err
	}
	skip, err := r.flag("bypassDocumentValidation")
	if err != nil {
		return nil, false, err
	}
	list = make([]document.Statement, len(docs))
	for i, doc := range docs {
		if !r.docsChecked() {
			if err := document.CheckBSON(bson.Raw(doc)); err != nil {
				return nil, false, err
			}
		}
		list[i].Options.Let, list[i].Options.SkipValidation = let, skip
		if err := parse(r, &list[i], i, doc); err != nil {
			return nil, false, err
		}
	}
	return list, ordered, nil
}

// parseDelete reads one statement of a delete command.
func (r *request) parseDelete(s *document.Statement, i int, doc bsoncore.Document) error {
	elements, err := doc.Elements()
	if err != nil {
		return document.NewError(document.FailedToParse, "delete.deletes.%d: %v", i, err)
	}
	limited := false
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "q":
			d, ok := v.DocumentOK()
			if !ok {
				return wrongType("delete.deletes.q", v, "object")
			}
			s.Filter = bson.Raw(d)
		case "limit":
			n, ok := asInt64(v)
			if f, isDouble := v.DoubleOK(); !ok || n != 0 && n != 1 || isDouble && f != float64(n) {
				return document.NewError(document.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %s", v)
			}
			s.Options.Many, limited = n == 0, true
		case "hint":
			if s.Options.Hint, err = hintOf(v); err != nil {
				return err
			}
		case "collation":
			if s.Options.Collation, err = collationOf("delete.deletes.collation", v); err != nil {
				return err
			}
		default:
			return document.NewError(codeUnknownField, "BSON field 'delete.deletes.%s' is an unknown field.", e.Key())
		}
	}
	if s.Filter == nil {
		return missingField("delete.deletes.q")
	}
	if !limited {
		return missingField("delete.deletes.limit")
	}
	return nil
}

// hintOf returns the hint of a statement. One that can be none is an error of the whole command.
func hintOf(v bsoncore.Value) (any, error) {
	if v.Type != bsoncore.TypeString && v.Type != bsoncore.TypeEmbeddedDocument {
		return nil, document.NewError(document.FailedToParse, "Hint must be a string or an object")
	}
	return bson.RawValue{Type: bson.Type(v.Type), Value: v.Data}, nil
}

// collationOf returns the collation of a statement; nil where it is null.
func collationOf(field string, v bsoncore.Value) (any, error) {
	switch v.Type {
	case bsoncore.TypeNull:
		return nil, nil
	case bsoncore.TypeEmbeddedDocument:
		return bson.RawValue{Type: bson.Type(v.Type), Value: v.Data}, nil
	}
	return nil, wrongType(field, v, "object")
}
