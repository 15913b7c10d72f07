package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// carryOut carries out the statements of an update or delete command in their order, but for those that were carried out before. An error
// ends the command; those of single statements are noted in w.
func (r *request) carryOut(c *document.Collection, list []document.Statement, ordered bool, w *writeResult) (failed error) {
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
	if r.oneByOne(list) {
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

// oneByOne reports whether something has to be looked at before and after each statement.
func (r *request) oneByOne(list []document.Statement) bool {
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

// parseDelete reads one statement of a delete command.
func (r *request) parseDelete(s *document.Statement, i int, doc bsoncore.Document) error {
	if !r.docsChecked() {
		if err := document.CheckBSON(bson.Raw(doc)); err != nil {
			return err
		}
	}
	elements, err := doc.Elements()
	if err != nil {
		return document.NewError(document.FailedToParse, "delete.deletes.%d: %v", i, err)
	}
	for _, e := range elements {
		v := e.Value()
		raw := bson.RawValue{Type: bson.Type(v.Type), Value: v.Data}
		switch e.Key() {
		case "q":
			d, ok := v.DocumentOK()
			if !ok {
				return wrongType("delete.deletes.q", v, "object")
			}
			s.Filter = bson.Raw(d)
		case "limit":
			n, _ := asInt64(v)
			s.Options.Many = n == 0
		case "hint":
			s.Options.Hint = raw
		case "collation":
			s.Options.Collation = raw
		default:
			return document.NewError(codeUnknownField, "BSON field 'delete.deletes.%s' is an unknown field.", e.Key())
		}
	}
	return nil
}
