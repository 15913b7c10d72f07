// Package update is MongoDB's update language: operators, replacements and pipelines, applied to one document at a time.
//
// It promises the document that MongoDB would make, byte for byte: the order of fields, the types of numbers, and whether
// anything counts as changed. It never changes what it is given, and a document that cannot be updated is refused as a whole
// with MongoDB's code. It knows nothing of collections: what is unique, valid or too many is for others to say.
package update

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/query"
)

// Options of Parse. nil means the zero value.
type Options struct {
	ArrayFilters []bsoncore.Document
	Collation    *collation.Collation
	Let          []expression.Variable
	Now          time.Time     // $currentDate, $$NOW
	Timestamp    func() uint64 // $currentDate {$type: "timestamp"}: one that nobody had yet; nil takes Now
	Filter       *query.Filter // for the positional operator
	Call         *expression.Call
}

// Update is a parsed update: immutable, safe for concurrent use.
type Update struct {
	root        *node                   // operators
	replacement bsoncore.Document       // a replacement
	stages      []transformation        // a pipeline
	diff        bsoncore.Document       // what an entry of an oplog says
	filters     map[string]*arrayFilter // by identifier
	collation   *collation.Collation
	timestamp   func() uint64
	renames     int
}

// Parse parses a document of operators, a replacement document, or an array of pipeline stages. The update keeps referring to
// the bytes of u and of the array filters.
func Parse(u bsoncore.Value, o *Options) (*Update, error) {
	if o == nil {
		o = new(Options)
	}
	result := &Update{collation: o.Collation, timestamp: o.Timestamp}
	switch u.Type {
	case bsoncore.TypeArray:
		if len(o.ArrayFilters) > 0 {
			return nil, mongoerror.New(mongoerror.FailedToParse, "arrayFilters may not be specified for pipeline-style updates")
		}
		return result, result.parsePipeline(u, o)
	case bsoncore.TypeEmbeddedDocument:
	default:
		return nil, mongoerror.New(mongoerror.FailedToParse, "Update argument must be either an object or an array")
	}
	var err error
	if result.filters, err = parseFilters(o.ArrayFilters, o); err != nil {
		return nil, err
	}
	if e, ok := first(u.Data); ok && len(e.Name) > 0 && e.Name[0] == '$' {
		return result, result.parseOperators(u.Data, o)
	}
	return result, result.parseReplacement(u.Data)
}

// Replacement reports whether it replaces the document (so that `multi` is refused).
func (u *Update) Replacement() bool { return u.replacement != nil }

// Apply appends the updated document to dst. inserting is for $setOnInsert; position is what $ stands for, or -1. changed is false
// when nothing counts as modified, as MongoDB sees it: the result is the same document then. _id cannot change (ImmutableField); it
// is put first and kept.
func (u *Update) Apply(dst []byte, doc bsoncore.Document, inserting bool, position int) (out []byte, changed bool, err error) {
	return u.apply(dst, doc, inserting, position)
}

func (u *Update) apply(dst []byte, doc bsoncore.Document, inserting bool, position int) (out []byte, changed bool, err error) {
	start := len(dst)
	switch {
	case u.replacement != nil:
		out, changed, err = u.replace(dst, doc, inserting)
	case u.diff != nil:
		out, changed, err = u.applyDiff(dst, doc)
	case u.root == nil:
		out, changed, err = u.transform(dst, doc, inserting)
	default:
		r := run{u: u, doc: doc, inserting: inserting, position: position}
		r.path = r.room[:0]
		e, ok := first(doc)
		r.keepID = ok && string(e.Name) == "_id"
		out, err = r.document(dst, doc, u.root)
		changed = r.changed
	}
	if err != nil {
		return dst, false, err
	}
	if len(out)-start > maxDocumentSize+sizeAllowance {
		return dst, false, tooLarge(out[start:])
	}
	return out, changed, nil
}

// tooLarge is the error of a document beyond the limit.
func tooLarge(doc bsoncore.Document) error {
	firstElement := "EOO"
	if e, ok := first(doc); ok {
		firstElement = notation.Element(string(e.Name), e.Value)
	}
	return mongoerror.New(mongoerror.BSONObjectTooLarge,
		"BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB) First element: %s",
		len(doc), len(doc), maxDocumentSize+sizeAllowance, firstElement)
}
