package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/cmd/pando/shelltext"
	"github.com/pandodb/pando/document"
)

// methodCall is a call on a collection with what it needs.
type methodCall struct {
	*session
	ctx  context.Context
	c    *document.Collection
	args arguments
	rest []shelltext.Call
}

// methods are the methods of a collection.
func methods() map[string]func(m methodCall) error {
	return map[string]func(m methodCall) error{
		"find": methodCall.find, "findOne": methodCall.findOne, "aggregate": methodCall.aggregate, "explain": methodCall.explainFirst,
		"count": methodCall.count, "countDocuments": methodCall.count, "estimatedDocumentCount": methodCall.count,
		"distinct": methodCall.distinct, "insertOne": methodCall.insertOne, "insertMany": methodCall.insertMany,
		"updateOne": methodCall.update, "updateMany": methodCall.update, "replaceOne": methodCall.update,
		"deleteOne": methodCall.remove, "deleteMany": methodCall.remove,
		"findOneAndUpdate": methodCall.findAnd, "findOneAndReplace": methodCall.findAnd, "findOneAndDelete": methodCall.findAnd,
		"createIndex": methodCall.createIndex, "getIndexes": methodCall.getIndexes, "dropIndex": methodCall.dropIndex,
		"drop": methodCall.drop, "renameCollection": methodCall.rename, "stats": methodCall.stats,
	}
}

// mostArguments is how many arguments a method takes. What stands behind them is refused: to leave an option out without a word, such as
// a collation, would change what a statement finds, or deletes.
func mostArguments(name string) int {
	switch name {
	case "aggregate":
		return manyArguments
	case "updateOne", "updateMany", "replaceOne", "findOneAndUpdate", "findOneAndReplace":
		return 3
	case "find", "findOne", "distinct", "insertMany", "findOneAndDelete", "createIndex":
		return 2
	case "getIndexes", "drop", "stats":
		return 0
	}
	return 1
}

// manyArguments is for what takes any number, each of them a stage.
const manyArguments = math.MaxInt

// chained are the methods behind which others may stand.
func chained(name string) bool { return name == "find" || name == "aggregate" || name == "explain" }

// onCollection calls a method of a collection.
func (s *session) onCollection(ctx context.Context, c *document.Collection, args arguments, rest []shelltext.Call) error {
	method := methods()[args.name]
	if method == nil {
		return fmt.Errorf("collections have no method %s: see help", args.name)
	}
	if len(rest) > 0 && !chained(args.name) {
		return fmt.Errorf("%s has no method %s", args.name, rest[0].Name)
	}
	if err := args.atMost(mostArguments(args.name)); err != nil {
		return err
	}
	return method(methodCall{s, ctx, c, args, rest})
}

// ending is how a chain that reads ends.
type ending struct {
	count, explain bool
	verbosity      string
}

// readChain takes in the methods behind find.
func (m methodCall) readChain(o *document.FindOptions) (e ending, err error) {
	for _, call := range m.rest {
		args := arguments{call.Name, call.Args}
		if err := args.atMost(1); err != nil {
			return e, err
		}
		switch call.Name {
		case "sort":
			o.Sort, err = args.required(0)
		case "projection":
			o.Projection, err = args.required(0)
		case "collation":
			o.Collation, err = args.required(0)
		case "min":
			o.Min, err = args.required(0)
		case "max":
			o.Max, err = args.required(0)
		case "skip":
			o.Skip, err = args.number(0)
		case "limit":
			o.Limit, err = args.number(0)
		case "hint":
			o.Hint, err = args.hint(0)
		case "count", "size", "itcount":
			e.count = true
		case "explain":
			e.explain, e.verbosity = true, "queryPlanner"
			if len(call.Args) > 0 {
				e.verbosity, err = args.text(0)
			}
		case "pretty":
			m.printer.pretty, m.session.printer.pretty = true, true
		case "toArray":
		default:
			err = fmt.Errorf("find has no method %s: see help", call.Name)
		}
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

// hintOf returns a hint as FindOptions has it.
func hintOf(v bson.RawValue) any {
	if text, ok := v.StringValueOK(); ok {
		return text
	}
	if doc, ok := v.DocumentOK(); ok {
		return doc
	}
	return nil
}

func (m methodCall) find() error {
	o := &document.FindOptions{Projection: m.args.document(1)}
	e, err := m.readChain(o)
	if err != nil {
		return err
	}
	switch filter := m.args.document(0); {
	case e.explain:
		o.Verbosity = e.verbosity
		plan, err := m.c.Explain(m.ctx, filter, o)
		return m.printExplain(plan, err)
	case e.count:
		o.Sort, o.Projection = nil, nil
		n, err := m.c.Count(m.ctx, filter, o)
		return m.printNumber(n, err)
	default:
		c, err := m.c.OpenFind(m.ctx, filter, o)
		if err != nil {
			return err
		}
		return m.show(m.ctx, c)
	}
}

func (m methodCall) findOne() error {
	doc, err := m.c.FindOne(m.ctx, m.args.document(0), &document.FindOptions{Projection: m.args.document(1)})
	return m.printOne(doc, err)
}

// printOne prints one document, or null.
func (m methodCall) printOne(doc bson.Raw, err error) error {
	if errors.Is(err, document.ErrNotFound) {
		_, err = fmt.Fprintln(m.printer.a.out, "null")
		return err
	}
	if err != nil {
		return err
	}
	p := m.printer
	p.pretty = true
	return p.print(doc)
}

func (m methodCall) printNumber(n int64, err error) error {
	if err == nil {
		_, err = fmt.Fprintln(m.printer.a.out, n)
	}
	return err
}

func (m methodCall) printExplain(plan bson.Raw, err error) error {
	if err != nil {
		return err
	}
	if m.printer.a.json {
		return m.printer.print(plan)
	}
	return printPlan(m.printer.a.out, plan)
}

// explainFirst is explain("executionStats").find(...): the other order of the same.
func (m methodCall) explainFirst() error {
	if len(m.rest) == 0 {
		return errors.New("explain wants .find() or .aggregate() behind it")
	}
	if name := m.rest[0].Name; name != "find" && name != "aggregate" {
		return fmt.Errorf("explain has no method %s: it takes find and aggregate", name)
	}
	last := shelltext.Call{Name: "explain", Args: m.args.values}
	return m.onCollection(m.ctx, m.c, arguments{m.rest[0].Name, m.rest[0].Args}, append(m.rest[1:len(m.rest):len(m.rest)], last))
}

func (m methodCall) aggregate() error {
	pipeline, err := m.args.pipeline(0)
	if err != nil {
		return err
	}
	if err := m.modifiers(m.rest, "pretty", "toArray", "explain"); err != nil {
		return err
	}
	for _, call := range m.rest {
		if call.Name != "explain" {
			continue
		}
		args, verbosity := arguments{call.Name, call.Args}, "queryPlanner"
		if err := args.atMost(1); err != nil {
			return err
		}
		if len(call.Args) > 0 {
			if verbosity, err = args.text(0); err != nil {
				return err
			}
		}
		plan, err := m.c.ExplainAggregate(m.ctx, pipeline, nil, verbosity)
		return m.printExplain(plan, err)
	}
	c, err := m.c.OpenAggregate(m.ctx, pipeline, nil)
	if err != nil {
		return err
	}
	return m.show(m.ctx, c)
}

func (m methodCall) count() error {
	n, err := m.c.Count(m.ctx, m.args.document(0), nil)
	return m.printNumber(n, err)
}

func (m methodCall) distinct() error {
	field, err := m.args.text(0)
	if err != nil {
		return err
	}
	values, err := m.c.Distinct(m.ctx, field, m.args.document(1), nil)
	if err != nil {
		return err
	}
	for _, v := range values {
		fmt.Fprintln(m.printer.a.out, relaxed(v))
	}
	return nil
}

func (m methodCall) drop() error { return m.c.Drop(m.ctx) }

func (m methodCall) rename() error {
	name, err := m.args.text(0)
	if err != nil {
		return err
	}
	return m.c.Rename(m.ctx, m.database, name, false)
}

func (m methodCall) stats() error {
	stats, err := m.c.Stats(m.ctx)
	if err != nil {
		return err
	}
	return m.printer.print(bson.D{{Key: "documents", Value: stats.Documents}, {Key: "indexes", Value: stats.Indexes}, {Key: "capped", Value: stats.Capped}})
}
