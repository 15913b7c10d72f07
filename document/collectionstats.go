package document

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// statsAsked is what the specification of $collStats asks for.
type statsAsked struct {
	latency, storage, count, executions bool
	scale                               int64
}

// parseStats reads the specification of $collStats.
func parseStats(spec bsoncore.Value) (*statsAsked, error) {
	doc, ok := spec.DocumentOK()
	if !ok {
		return nil, mongoerror.New(mongoerror.Code(5447000), "$collStats must take a nested object but found: %s", mongoerror.TypeName(spec.Type))
	}
	a := &statsAsked{scale: 1}
	for _, e := range elementsOf(doc) {
		field := "$collStats." + e.Key()
		part, ok := e.Value().DocumentOK()
		var err error
		switch e.Key() {
		case "latencyStats":
			a.latency, err = true, checkLatency(part)
		case "storageStats":
			a.storage = true
			a.scale, err = storageScale(part)
		case "count", "queryExecStats":
			a.count, a.executions = a.count || e.Key() == "count", a.executions || e.Key() == "queryExecStats"
			if !emptySpec(part) {
				err = mongoerror.New(mongoerror.Code(31170), "the %s stage must be an empty object", e.Key())
			}
		default:
			return nil, mongoerror.New(mongoerror.Code(40415), "BSON field '%s' is an unknown field.", field)
		}
		if !ok {
			return nil, wrongType(field, e.Value(), "object")
		}
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

func checkLatency(spec document) error {
	for _, e := range elementsOf(spec) {
		if e.Key() != "histograms" {
			return mongoerror.New(mongoerror.Code(40415), "BSON field '$collStats.latencyStats.%s' is an unknown field.", e.Key())
		}
		if _, ok := e.Value().BooleanOK(); !ok {
			return wrongType("$collStats.latencyStats.histograms", e.Value(), "bool")
		}
	}
	return nil
}

// storageScale returns the unit of the sizes, in bytes.
func storageScale(spec document) (int64, error) {
	v, err := spec.LookupErr("scale")
	if err != nil {
		return 1, nil
	}
	n, ok := number.Truncated(v)
	switch {
	case !ok:
		return 0, wrongType("$collStats.storageStats.scale", v, "a number")
	case n < 1:
		return 0, mongoerror.New(mongoerror.Code(51024), "BSON field 'scale' value must be >= 1, actual value '%d'", n)
	}
	return n, nil
}

func emptySpec(spec document) bool { return len(spec) <= len(emptyDocument()) }

// collectionStats returns the one document of $collStats.
func (e *environment) collectionStats(ctx context.Context, c *Collection, spec bsoncore.Value) (aggregate.Cursor, error) {
	asked, err := parseStats(spec)
	if err != nil {
		return nil, err
	}
	if c.view() != nil && (asked.storage || asked.count || asked.executions) {
		return nil, onView(c.ns)
	}
	if x, err := c.use(); err != nil {
		return nil, err
	} else if x == nil && c.view() == nil && !c.store.isOplog(c.ns) && (asked.storage || asked.count) {
		return nil, mongoerror.New(mongoerror.NamespaceNotFound, "Unable to retrieve the statistics in $collStats stage :: caused by :: Collection [%s] not found.", c.ns)
	}
	out := bson.D{{Key: "ns", Value: c.ns.String()}}
	if e.host != "" {
		out = append(out, bson.E{Key: "host", Value: e.host})
	}
	out = append(out, bson.E{Key: "localTime", Value: e.store.clock.Now()})
	if asked.latency && e.usage != nil {
		out = append(out, bson.E{Key: "latencyStats", Value: e.usage(c.ns.String())})
	}
	if asked.storage {
		stats, err := c.StorageStats(ctx, asked.scale)
		if err != nil {
			return nil, err
		}
		out = append(out, bson.E{Key: "storageStats", Value: stats})
	}
	if asked.count {
		if err := c.notSeries(); err != nil {
			return nil, err
		}
		stats, err := c.Stats(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, bson.E{Key: "count", Value: Number(stats.Documents)})
	}
	doc, err := marshal(out)
	return &rows{list: []document{doc}}, err
}

// indexStats returns the documents of $indexStats. How often an index was used is not counted.
func (e *environment) indexStats(ctx context.Context, c *Collection, spec bsoncore.Value) (aggregate.Cursor, error) {
	if doc, ok := spec.DocumentOK(); !ok || !emptySpec(doc) {
		return nil, mongoerror.New(mongoerror.Code(28803), "The $indexStats stage specification must be an empty object")
	}
	list, err := c.Indexes(ctx)
	if err != nil && !errors.Is(err, NamespaceNotFound) {
		return nil, err
	}
	r := &rows{}
	for _, i := range list {
		out := bson.D{{Key: "name", Value: i.Name}, {Key: "key", Value: i.Spec.Lookup("key")}}
		if e.host != "" {
			out = append(out, bson.E{Key: "host", Value: e.host})
		}
		doc, err := marshal(append(out, bson.E{Key: "accesses", Value: bson.D{{Key: "ops", Value: int64(0)}, {Key: "since", Value: e.store.opened}}},
			bson.E{Key: "spec", Value: i.Spec}))
		if err != nil {
			return nil, err
		}
		r.list = append(r.list, doc)
	}
	return r, nil
}

// planCacheStats returns the documents of $planCacheStats: none, as plans are made anew for each query.
func planCacheStats(c *Collection, spec bsoncore.Value) (aggregate.Cursor, error) {
	if doc, ok := spec.DocumentOK(); !ok || !emptySpec(doc) {
		return nil, mongoerror.New(mongoerror.FailedToParse, "$planCacheStats value must be an empty object")
	}
	if x, err := c.use(); err != nil {
		return nil, err
	} else if x == nil {
		return nil, mongoerror.New(mongoerror.Code(50933), "collection '%s' does not exist", c.ns)
	}
	return &rows{}, nil
}
