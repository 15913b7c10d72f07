package document

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Next implements aggregate.Cursor.
func (r *rows) Next(ctx context.Context) (document, error) {
	if len(r.list) == 0 {
		return nil, io.EOF
	}
	doc := r.list[0]
	r.list = r.list[1:]
	return doc, ctx.Err()
}

// Close implements aggregate.Cursor.
func (r *rows) Close() error { return nil }

// Next implements aggregate.Cursor.
func (r *matchRows) Next(context.Context) (document, error) {
	if !r.m.next() {
		return nil, orError(r.m.err(), func() error { return io.EOF })
	}
	var err error
	r.buf, err = r.m.document(r.buf[:0])
	return r.buf, err
}

// Close implements aggregate.Cursor.
func (r *matchRows) Close() error { return r.m.close() }

// Special implements aggregate.Environment.
func (e *environment) Special(ctx context.Context, stage string, spec bsoncore.Value, database, collection string) (aggregate.Cursor, error) {
	if e.special != nil {
		list, ok, err := e.special(ctx, stage, bson.RawValue{Type: bson.Type(spec.Type), Value: spec.Data})
		if err != nil {
			return nil, err
		}
		if ok {
			r := &rows{}
			for _, doc := range list {
				r.list = append(r.list, document(doc))
			}
			return r, nil
		}
	}
	handle := e.store.Database(database).Lookup(collection)
	switch stage {
	case "$collStats":
		return e.collectionStats(ctx, handle)
	case "$indexStats":
		return e.indexStats(ctx, handle)
	case "$planCacheStats":
		return &rows{}, nil // plans are made anew for each query
	}
	return nil, mongoerror.New(mongoerror.CommandNotSupported, "the stage %s is not supported here", stage)
}

func (e *environment) collectionStats(ctx context.Context, c *Collection) (aggregate.Cursor, error) {
	stats, err := c.Stats(ctx)
	if err != nil {
		return nil, err
	}
	doc, err := marshal(bson.D{
		{Key: "ns", Value: c.ns.String()},
		{Key: "count", Value: stats.Documents},
		{Key: "storageStats", Value: bson.D{
			{Key: "count", Value: stats.Documents}, {Key: "nindexes", Value: stats.Indexes},
			{Key: "capped", Value: stats.Capped},
		}},
	})
	return &rows{list: []document{doc}}, err
}

func (e *environment) indexStats(ctx context.Context, c *Collection) (aggregate.Cursor, error) {
	list, err := c.Indexes(ctx)
	if err != nil && !errors.Is(err, NamespaceNotFound) {
		return nil, err
	}
	r := &rows{}
	for _, i := range list {
		doc, err := marshal(bson.D{
			{Key: "name", Value: i.Name}, {Key: "key", Value: i.Spec.Lookup("key")}, {Key: "spec", Value: i.Spec},
			{Key: "host", Value: "pando"}, {Key: "accesses", Value: bson.D{{Key: "ops", Value: int64(0)}}},
		})
		if err != nil {
			return nil, err
		}
		r.list = append(r.list, doc)
	}
	return r, nil
}

// Stats is sizes of a collection.
type Stats struct {
	Documents int64
	Indexes   int // that of _id included
	Capped    bool
}

// Stats returns sizes of the collection; of one that is not there, zeros.
func (c *Collection) Stats(ctx context.Context) (*Stats, error) {
	x, err := c.use()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	if x == nil {
		return new(Stats), nil
	}
	n, err := x.records.Count(nil, nil)
	if err != nil {
		return nil, err
	}
	return &Stats{Documents: n, Indexes: len(*x.indexes.Load()) + 1, Capped: x.settings.Load().capped}, nil
}

// replaceCollection fills a new collection and puts it in the place of an old one, whose indexes and options it takes over.
func (s *Store) replaceCollection(ctx context.Context, ns namespace, docs aggregate.Cursor) error {
	fresh := s.newID()
	temporary := s.Database(ns.database).Lookup(fmt.Sprintf("tmp.agg_out.%s", fresh.Hex()))
	options := emptyDocument()
	target := s.Database(ns.database).Lookup(ns.collection)
	old, err := target.use()
	if err != nil {
		return err
	}
	if old != nil {
		if options = old.settings.Load().spec; old.settings.Load().capped {
			return mongoerror.New(mongoerror.Code(17152), "namespace '%s' is capped so it can't be used for $out", ns)
		}
	}
	if _, err := s.create(ctx, temporary.ns, options, true); err != nil {
		return err
	}
	if err := s.fillCollection(ctx, temporary, target, old, docs); err != nil {
		return errors.Join(err, temporary.Drop(s.work))
	}
	return nil
}

func (s *Store) fillCollection(ctx context.Context, temporary, target *Collection, old *collection, docs aggregate.Cursor) error {
	if old != nil {
		var specs []bson.Raw
		for _, x := range *old.indexes.Load() {
			if x.ready {
				specs = append(specs, bson.Raw(x.def.Spec))
			}
		}
		if _, err := temporary.CreateIndexes(ctx, specs, nil); err != nil {
			return err
		}
	}
	var list []document
	size := 0
	flush := func() error {
		_, err := temporary.InsertMany(ctx, list, nil)
		list, size = list[:0], 0
		return err
	}
	for {
		doc, err := docs.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		list = append(list, append(document(nil), doc...))
		if size += len(doc); len(list) == 10_000 || size > 4<<20 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return temporary.Rename(ctx, target.ns.database, target.ns.collection, true)
}

// Merge implements aggregate.Environment: $merge, for one document.
func (e *environment) Merge(ctx context.Context, database, collection string, m *aggregate.Merge, doc document) error {
	if e.tx != nil {
		return mongoerror.New(mongoerror.OperationNotSupportedInTransaction, "Stage not supported inside of a multi-document transaction: $merge")
	}
	c := e.store.Database(database).Lookup(collection)
	doc, _, err := identify(append(document(nil), doc...), e.store.newID)
	if err != nil {
		return err
	}
	filter := bsoncore.NewDocumentBuilder()
	for _, field := range m.On {
		v, err := doc.LookupErr(strings.Split(field, ".")...)
		if err != nil || v.Type == bsoncore.TypeNull || v.Type == bsoncore.TypeArray {
			return mongoerror.New(mongoerror.Code(51132), "$merge write error: 'on' field '%s' cannot be missing, null, undefined or an array", field)
		}
		filter.AppendValue(field, v)
	}
	return c.merge(ctx, m, filter.Build(), doc)
}

// merge carries out what is to happen to a document that is there, or is not.
func (c *Collection) merge(ctx context.Context, m *aggregate.Merge, filter, doc document) error {
	raw := bson.Raw(doc)
	upsert := m.WhenNotMatched == "insert"
	var u any
	o := &UpdateOptions{Upsert: upsert, Let: variablesDocument(m.Let, doc)}
	switch m.WhenMatched {
	case "replace":
		u = raw
	case "keepExisting":
		u, o.Upsert = bson.D{{Key: "$setOnInsert", Value: raw}}, true
	case "merge":
		u = bson.D{{Key: "$set", Value: raw}}
	case "pipeline":
		u = bson.RawValue{Type: bson.Type(m.Pipeline.Type), Value: m.Pipeline.Data}
	case "fail":
		_, err := c.Insert(ctx, raw)
		return err
	}
	if m.WhenMatched == "pipeline" && upsert {
		if there, err := c.Count(ctx, bson.Raw(filter), &FindOptions{Limit: 1}); err != nil {
			return err
		} else if there == 0 {
			_, err := c.Insert(ctx, raw)
			return err
		}
	}
	result, err := c.Apply(ctx, bson.Raw(filter), u, o)
	if err != nil {
		return err
	}
	if m.WhenNotMatched == "fail" && result.Matched == 0 {
		return mongoerror.New(mongoerror.Code(13113), "$merge could not find a matching document in the target collection for at least one document in the source collection")
	}
	return nil
}

// variablesDocument makes a document of variables; new is the document that is merged.
func variablesDocument(list []expression.Variable, doc document) any {
	b := bsoncore.NewDocumentBuilder()
	for _, v := range list {
		b.AppendDocument(v.Name, bsoncore.NewDocumentBuilder().AppendValue("$literal", v.Value).Build())
	}
	if len(list) == 0 {
		b.AppendDocument("new", bsoncore.NewDocumentBuilder().AppendDocument("$literal", doc).Build())
	}
	return bson.Raw(b.Build())
}
