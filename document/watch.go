package document

import (
	"context"
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// WatchOptions says what a change stream tells. nil: changes from now on, of updates only what they did.
type WatchOptions struct {
	// FullDocument is "default", "updateLookup" (an update comes with the document as it is when the stream looks), "whenAvailable" or
	// "required" (as it was right after the update).
	FullDocument string
	// FullDocumentBeforeChange is "off", "whenAvailable" or "required": the document before the change, where the collection keeps
	// pre-images.
	FullDocumentBeforeChange string
	// ResumeAfter and StartAfter are the _id of the event behind which to go on.
	ResumeAfter, StartAfter any
	// StartAtOperationTime is the moment from which on to tell.
	StartAtOperationTime *bson.Timestamp
	// ShowExpandedEvents tells changes of the catalogue too: create, createIndexes, dropIndexes, modify.
	ShowExpandedEvents bool
	// Collation of the stages behind.
	Collation any
}

// Watch tells the changes of the collection as they are committed, each as an event in MongoDB's shape, passed through a pipeline
// that may be nil, for a range loop that ends with ctx. The _id of an event is a token to resume from, as far back as
// Options.History reaches.
func (c *Collection) Watch(ctx context.Context, pipeline any, o *WatchOptions) iter.Seq2[bson.Raw, error] {
	return loop(ctx, func() (*Cursor, error) { return c.OpenWatch(ctx, pipeline, o) })
}

// OpenWatch is Watch with a cursor, which must be closed.
func (c *Collection) OpenWatch(ctx context.Context, pipeline any, o *WatchOptions) (*Cursor, error) {
	return c.store.watch(ctx, c.ns, pipeline, o)
}

// OpenWatch tells the changes of all collections of the database.
func (d *Database) OpenWatch(ctx context.Context, pipeline any, o *WatchOptions) (*Cursor, error) {
	return d.store.watch(ctx, namespace{database: d.name}, pipeline, o)
}

// OpenWatch tells the changes of all collections.
func (s *Store) OpenWatch(ctx context.Context, pipeline any, o *WatchOptions) (*Cursor, error) {
	return s.watch(ctx, namespace{}, pipeline, o)
}

// watch opens a change stream; empty names take in everything.
func (s *Store) watch(ctx context.Context, ns namespace, pipeline any, o *WatchOptions) (*Cursor, error) {
	stages, err := toPipeline(pipeline)
	if err != nil {
		return nil, err
	}
	var own WatchOptions // which the stream goes by as long as it is open, whatever its caller does with his
	if o != nil {
		own = *o
	}
	return s.openStream(ctx, ns, stages, &own)
}

// changeStreamStage returns the argument of a pipeline's first stage, which is $changeStream.
func changeStreamStage(stages []document) (document, error) {
	elements, err := stages[0].Elements()
	if err != nil || len(elements) != 1 {
		return nil, mongoerror.StageOfManyFields()
	}
	spec, ok := elements[0].Value().DocumentOK()
	if !ok {
		return nil, mongoerror.New(mongoerror.Code(6188500), "$changeStream must take a nested object but found: $changeStream: %s", elements[0].Value())
	}
	return spec, nil
}

// begins reports whether the first stage is of a kind.
func begins(stages []document, name string) bool {
	if len(stages) == 0 {
		return false
	}
	e, err := stages[0].IndexErr(0)
	return err == nil && e.Key() == name
}

// openChangeStream opens the change stream that a pipeline's first stage asks for.
func (s *Store) openChangeStream(ctx context.Context, ns namespace, spec document, rest []document, a *AggregateOptions) (*Cursor, error) {
	o := &WatchOptions{Collation: a.Collation}
	for _, e := range elementsOf(spec) {
		v, ok := e.Value(), true
		if v.Type == bsoncore.TypeNull && maybeNull(e.Key()) {
			continue
		}
		switch e.Key() {
		case "fullDocument":
			if o.FullDocument, ok = v.StringValueOK(); !ok {
				return nil, wrongType("$changeStream.fullDocument", v, "a string")
			}
		case "fullDocumentBeforeChange":
			if o.FullDocumentBeforeChange, ok = v.StringValueOK(); !ok {
				return nil, wrongType("$changeStream.fullDocumentBeforeChange", v, "a string")
			}
		case "resumeAfter", "startAfter":
			token := bson.RawValue{Type: bson.Type(v.Type), Value: v.Data}
			if e.Key() == "resumeAfter" {
				o.ResumeAfter = token
			} else {
				o.StartAfter = token
			}
		case "startAtOperationTime":
			t, i, ok := v.TimestampOK()
			if !ok {
				return nil, wrongType("$changeStream.startAtOperationTime", v, "a timestamp")
			}
			o.StartAtOperationTime = &bson.Timestamp{T: t, I: i}
		case "allChangesForCluster":
			all, ok := v.BooleanOK()
			if !ok {
				return nil, wrongType("$changeStream.allChangesForCluster", v, "a bool")
			}
			if all && (ns.database != "admin" || ns.collection != "") {
				return nil, mongoerror.New(mongoerror.InvalidOptions, "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name")
			}
			if all {
				ns = namespace{}
			}
		case "showExpandedEvents":
			if o.ShowExpandedEvents, ok = v.BooleanOK(); !ok {
				return nil, wrongType("$changeStream.showExpandedEvents", v, "a bool")
			}
		default:
			return nil, mongoerror.New(mongoerror.Code(40415), "BSON field '$changeStream.%s' is an unknown field.", e.Key())
		}
	}
	return s.openStream(ctx, ns, rest, o)
}

// maybeNull reports whether null is for an option of $changeStream as if it were not there. The others are truths.
func maybeNull(option string) bool {
	switch option {
	case "fullDocument", "fullDocumentBeforeChange", "resumeAfter", "startAfter", "startAtOperationTime":
		return true
	}
	return false
}

// check refuses options that contradict each other, or that are unknown.
func (o *WatchOptions) check() error {
	switch o.FullDocument {
	case "", "default", "updateLookup", "whenAvailable", "required":
	default:
		return mongoerror.New(mongoerror.BadValue, "Enumeration value '%s' for field '$changeStream.fullDocument' is not a valid value.", o.FullDocument)
	}
	switch o.FullDocumentBeforeChange {
	case "", "off", "whenAvailable", "required":
	default:
		return mongoerror.New(mongoerror.BadValue, "Enumeration value '%s' for field '$changeStream.fullDocumentBeforeChange' is not a valid value.", o.FullDocumentBeforeChange)
	}
	if o.ResumeAfter != nil && o.StartAfter != nil {
		return mongoerror.New(mongoerror.Code(50865), "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage")
	}
	starts := 0
	for _, set := range []bool{o.ResumeAfter != nil, o.StartAfter != nil, o.StartAtOperationTime != nil} {
		if set {
			starts++
		}
	}
	if starts > 1 {
		return mongoerror.New(mongoerror.Code(40674), "Only one type of resume option is allowed, but multiple were found.")
	}
	return nil
}

// token is where a stream stands: behind the event of a change, or at a moment.
//
// Its document is {_data: hex}, of the kind (1), the sequence number in the storage's log (8, big-endian), the time of the newest change
// up to there (8, big-endian; older tokens lack it), and, where the event invalidates the stream, tokenInvalidate (1), or where it is a
// fragment of one, tokenFragment (1) and its number (4, big-endian).
type token struct {
	seq        uint64
	newest     uint64 // no change up to seq has a later time; 0: not known
	invalidate bool
	fragment   uint32 // 0: a whole event
}

func (t token) document() document {
	return bsoncore.NewDocumentBuilder().AppendString("_data", t.hex()).Build()
}
