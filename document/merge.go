package document

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Merge implements aggregate.Environment: $merge, for documents that follow each other.
func (e *environment) Merge(ctx context.Context, database, collection string, m *aggregate.Merge, docs []document, report func(err error) error) error {
	if e.tx != nil {
		return mongoerror.New(mongoerror.OperationNotSupportedInTransaction, "Stage not supported inside of a multi-document transaction: $merge")
	}
	c := e.store.Database(database).Lookup(collection)
	if err := cmp.Or(c.CheckName(), c.notSeries()); err != nil {
		return err
	}
	if m.Alone() {
		filter, doc, err := e.matching(m, docs[0])
		if err == nil {
			err = c.merge(ctx, m, filter, doc, e.unchecked)
		}
		return report(err)
	}
	list := make([]Statement, 0, len(docs))
	var wrong error
	for _, doc := range docs {
		filter, doc, err := e.matching(m, doc)
		if wrong = err; err != nil {
			break // those before it are merged
		}
		list = append(list, c.merging(m, filter, doc, e.unchecked))
	}
	var failed error
	c.ApplyMany(ctx, list, func(_ int, _ *UpdateResult, err error) bool {
		if err != nil && failed == nil {
			failed = report(err)
		}
		return failed == nil
	})
	if failed == nil && wrong != nil {
		failed = report(wrong)
	}
	return failed
}

// matching returns what finds the document that one is merged with, and the document, which has an _id where that is part of it.
func (e *environment) matching(m *aggregate.Merge, doc document) (filter, identified document, err error) {
	if _, err := doc.LookupErr("_id"); err != nil && slices.Contains(m.On, "_id") {
		// Matched by other fields, a document that is there keeps its _id, so that none is made up then.
		if doc, _, err = identify(doc, e.store.newID); err != nil {
			return nil, nil, err
		}
	}
	b := bsoncore.NewDocumentBuilder()
	for _, field := range m.On {
		v, err := doc.LookupErr(strings.Split(field, ".")...)
		if err != nil || v.Type == bsoncore.TypeNull || v.Type == bsoncore.TypeUndefined {
			return nil, nil, mongoerror.New(mongoerror.Code(51132), "$merge write error: 'on' field '%s' cannot be missing, null or undefined", field)
		} else if v.Type == bsoncore.TypeArray {
			return nil, nil, mongoerror.New(mongoerror.Code(51185), "$merge write error: 'on' field '%s' is an array", field)
		}
		b.AppendValue(field, v)
	}
	return b.Build(), doc, nil
}

// Unique implements aggregate.Environment.
func (e *environment) Unique(database, collection string, fields []string, by *collation.Collation) (bool, error) {
	x, err := e.store.Database(database).Lookup(collection).use()
	if err != nil {
		return false, err
	}
	if slices.Equal(fields, []string{"_id"}) && (x == nil || x.settings.Load().collation.Equal(by)) {
		return true, nil
	}
	return x != nil && slices.ContainsFunc(*x.indexes.Load(), func(i *secondary) bool { return i.ready && separates(i.def, fields, by) }), nil
}

// separates reports whether no two documents have the same values of fields because of an index.
func separates(def *index.Definition, fields []string, by *collation.Collation) bool {
	if !def.Unique || def.Partial != nil || !def.Collation.Equal(by) || len(def.Components) != len(fields) {
		return false
	}
	return !slices.ContainsFunc(def.Components, func(c index.Component) bool {
		return c.Wildcard || c.Kind != index.Ascending && c.Kind != index.Descending || !slices.Contains(fields, c.Path)
	})
}

// merging returns the statement that merges a document with the one that is there, or inserts it. unchecked leaves the validator out.
func (c *Collection) merging(m *aggregate.Merge, filter, doc document, unchecked bool) Statement {
	raw := bson.Raw(doc)
	s := Statement{Filter: bson.Raw(filter), Options: UpdateOptions{
		Upsert: m.WhenNotMatched == "insert", Collation: c.collationOf(m), SkipValidation: unchecked, now: m.Now,
	}}
	switch m.WhenMatched {
	case "replace":
		s.Update = raw
	case "keepExisting":
		s.Update, s.Options.Upsert = bson.D{{Key: "$setOnInsert", Value: raw}}, true
	case "merge":
		s.Update = bson.D{{Key: "$set", Value: raw}}
	case "pipeline":
		s.Update, s.Options.Let = bson.RawValue{Type: bson.Type(m.Pipeline.Type), Value: m.Pipeline.Data}, variablesDocument(m.Let)
	}
	return s
}

// merge carries out what is to happen to a document that is there, or is not, and is merged alone.
func (c *Collection) merge(ctx context.Context, m *aggregate.Merge, filter, doc document, unchecked bool) error {
	insert := func() error {
		_, err := c.InsertMany(ctx, []bson.Raw{bson.Raw(doc)}, &InsertOptions{SkipValidation: unchecked})
		return err
	}
	if m.WhenMatched == "fail" {
		return insert()
	}
	s := c.merging(m, filter, doc, unchecked)
	if m.WhenMatched == "pipeline" && s.Options.Upsert {
		if there, err := c.Count(ctx, s.Filter, &FindOptions{Limit: 1, Collation: s.Options.Collation}); err != nil {
			return err
		} else if there == 0 {
			u := bsoncore.Value{Type: m.Pipeline.Type, Data: m.Pipeline.Data}
			if _, err := c.parseChange(ctx, s.Filter, u, &s.Options); err != nil { // what is wrong with it is so for all documents
				return err
			}
			return insert()
		}
	}
	result, err := c.Apply(ctx, s.Filter, s.Update, &s.Options)
	if err != nil {
		return err
	}
	if m.WhenNotMatched == "fail" && result.Matched == 0 {
		return mongoerror.New(mongoerror.Code(13113), "$merge could not find a matching document in the target collection for at least one document in the source collection")
	}
	return nil
}

// collationOf returns the collation by which a document is matched, unless it is the collection's own.
func (c *Collection) collationOf(m *aggregate.Merge) any {
	var own *collation.Collation
	if x, err := c.use(); err == nil && x != nil {
		own = x.settings.Load().collation
	}
	if own.Equal(m.Collation) {
		return nil
	}
	return bson.Raw(m.Collation.Document())
}

// variablesDocument makes a document of variables. One without a value, of a field that is not there, is not in it: as in MongoDB, a
// pipeline that asks for it fails.
func variablesDocument(list []expression.Variable) any {
	b := bsoncore.NewDocumentBuilder()
	for _, v := range list {
		if v.Value.Type == 0 {
			continue
		}
		b.AppendDocument(v.Name, bsoncore.NewDocumentBuilder().AppendValue("$literal", v.Value).Build())
	}
	return bson.Raw(b.Build())
}
