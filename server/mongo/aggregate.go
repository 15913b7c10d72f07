package mongo

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// pipeline returns the stages of an aggregate command.
func (r *request) pipeline() (bson.RawArray, error) {
	v, given := r.args["pipeline"]
	if !given {
		return nil, missingField("aggregate.pipeline")
	}
	array, isArray := v.ArrayOK()
	if !isArray {
		return nil, document.NewError(document.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	return bson.RawArray(array), nil
}

// aggregateOptions returns the options of an aggregate command.
func (r *request) aggregateOptions() (o *document.AggregateOptions, err error) {
	o = &document.AggregateOptions{Hint: r.raw("hint"), Special: r.specialStage(), Host: r.server.o.Address, Usage: r.server.stats.latencies}
	if o.Collation, err = r.optional("collation"); err != nil {
		return nil, err
	}
	if o.Let, err = r.optional("let"); err != nil {
		return nil, err
	}
	if o.SkipValidation, err = r.flag("bypassDocumentValidation"); err != nil {
		return nil, err
	}
	if r.has("allowDiskUse") {
		spill, err := r.flag("allowDiskUse")
		if err != nil {
			return nil, err
		}
		o.NoSpill = !spill
	}
	return o, nil
}

// aggregated returns the name of the collection of an aggregate command; whole is false for one of a database. A dollar sign in it finds
// nothing, and is no error, as on a mongod.
func (r *request) aggregated() (name string, whole bool, err error) {
	name, whole = r.target.StringValueOK()
	if one, isNumber := asInt64(r.target); !whole && (!isNumber || one != 1 || r.target.Type == bsoncore.TypeDouble && r.target.Double() != 1) {
		return "", false, r.nameless()
	}
	if whole && (strings.Contains(name, "\x00") || !strings.Contains(name, "$")) {
		err = r.lookup(name).CheckName()
	}
	return name, whole, err
}

func (r *request) aggregate() (bsoncore.Document, error) {
	stages, err := r.pipeline()
	if err != nil {
		return nil, err
	}
	o, err := r.aggregateOptions()
	if err != nil {
		return nil, err
	}
	name, whole, err := r.aggregated()
	if err != nil {
		return nil, err
	}
	if explain, err := r.flag("explain"); err != nil {
		return nil, err
	} else if explain && r.txn != nil {
		return nil, document.NewError(codeNotInTransaction, "Explain for the aggregate command cannot run within a multi-document transaction")
	} else if explain {
		return r.explainAggregate(name, stages, o, "queryPlanner")
	}
	spec, err := r.document("cursor")
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, document.NewError(document.FailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	size, err := r.cursorSize(spec)
	if err != nil {
		return nil, err
	}
	if level, _ := r.readConcern.Lookup("level").StringValueOK(); level == "linearizable" && writes(stages) {
		return nil, document.NewError(codeInvalidOptions, "$out and $merge cannot be used with a 'linearizable' read concern")
	}
	changes := startsWith(stages, "$changeStream")
	if level, given := r.readConcern.Lookup("level").StringValueOK(); changes && given && level != "majority" {
		return nil, document.NewError(codeInvalidOptions, "$changeStream cannot run with a readConcern other than 'majority'. Current readConcern: { level: \"%s\" }", level)
	}
	for _, stage := range []string{"$changeStream", "$collStats", "$indexStats", "$planCacheStats", "$currentOp", "$listSessions", "$listLocalSessions"} {
		if r.txn != nil && startsWith(stages, stage) {
			return nil, document.NewError(document.Code(263), "%s cannot be used in a transaction", stage)
		}
	}
	if changes && r.server.o.Standalone {
		return nil, document.NewError(document.Code(40573), "The $changeStream stage is only supported on replica sets")
	}
	ns := r.db + "." + name
	if !whole {
		ns = r.db + ".$cmd.aggregate"
	}
	open := func(ctx context.Context) (*document.Cursor, error) {
		if whole {
			return r.lookup(name).OpenAggregate(ctx, stages, o)
		}
		return r.server.store.Database(r.db).OpenAggregate(ctx, stages, o)
	}
	r.lasting = changes
	if writes(stages) {
		r.lasting, open = true, r.writingOnce(open)
	}
	return r.firstBatch(ns, size, false, open, func(x *cursor) { x.changes = changes })
}

// writingOnce is open, for a pipeline that writes while it is opened, with one sync for all that it writes.
func (r *request) writingOnce(open func(ctx context.Context) (*document.Cursor, error)) func(ctx context.Context) (*document.Cursor, error) {
	const many = 2 // nobody knows how many
	return func(ctx context.Context) (src *document.Cursor, err error) {
		err = r.server.store.SyncOnce(ctx, many, func(ctx context.Context) error {
			src, err = open(ctx)
			return err
		})
		return src, err
	}
}

// writes reports whether a pipeline's last stage is $out or $merge.
func writes(stages bson.RawArray) bool {
	values, err := stages.Values()
	if err != nil || len(values) == 0 {
		return false
	}
	doc, isDoc := values[len(values)-1].DocumentOK()
	if !isDoc {
		return false
	}
	e, err := doc.IndexErr(0)
	return err == nil && (e.Key() == "$out" || e.Key() == "$merge")
}

// startsWith reports whether a pipeline's first stage has a name.
func startsWith(stages bson.RawArray, name string) bool {
	first, err := stages.IndexErr(0)
	if err != nil {
		return false
	}
	doc, isDoc := first.DocumentOK()
	if !isDoc {
		return false
	}
	e, err := doc.IndexErr(0)
	return err == nil && e.Key() == name
}
