package document

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/query"
)

// Who goes over a collection page by page asks for a few documents from an _id on. For so few to plan takes as long as to read them.

// idRange is where the keys lie of the records with the _ids in question.
type idRange struct {
	lower, upper []byte // lower is nil where there is no range
}

// rangeOfIDs returns the range of a query that is {_id: {$gte: ...}} or one like it, and nothing else.
func rangeOfIDs(spec document) (r idRange) {
	condition, ok := only(spec, "_id").DocumentOK()
	if !ok || len(condition) <= len(emptyDocument()) {
		return idRange{}
	}
	for rest := condition[4:]; len(rest) > 1; {
		e, after, ok := bsoncore.ReadElement(rest)
		if !ok || !isPlain(e.Value().Type) {
			return idRange{}
		}
		var op query.Op
		switch string(e.KeyBytes()) {
		case "$gte":
			op = query.Gte
		case "$gt":
			op = query.Gt
		case "$lte":
			op = query.Lte
		case "$lt":
			op = query.Lt
		default:
			return idRange{}
		}
		bounds := index.Space{}.Compare(op, e.Value())
		if !bounds.Exact || len(bounds.Intervals) != 1 {
			return idRange{}
		}
		lower, upper := bounds.Intervals[0].Lo(), bounds.Intervals[0].Hi()
		if r.lower == nil || bytes.Compare(lower, r.lower) > 0 {
			r.lower = lower
		}
		if r.upper == nil || bytes.Compare(upper, r.upper) < 0 {
			r.upper = upper
		}
		rest = after
	}
	return r
}

// openRange opens the documents in a range.
func (d *direct) openRange(ctx context.Context, r idRange) (*Cursor, error) {
	if bytes.Compare(r.lower, r.upper) >= 0 {
		return newCursor(ctx, empty{}), d.close()
	}
	d.within = r
	err := d.reader.Open(d.x.store.db, d.x.records)
	if err == nil {
		d.it = d.reader.Iter(d.x.records, r.lower, r.upper)
	}
	return d.opened(ctx, err)
}

// nextInRange is nextTo for a range.
func (d *direct) nextInRange(ctx context.Context, dst []byte) (out []byte, ok bool, err error) {
	if d.left == 0 {
		return dst, false, ctx.Err()
	}
	if d.it == nil { // it was given up by leaveWalk
		if err := d.reader.OpenAt(d.held); err != nil {
			return dst, false, fmt.Errorf("%s: %w", d.x.name.Load(), err)
		}
		d.it = d.reader.Iter(d.x.records, d.within.lower, d.within.upper)
	}
	out = dst
	if ok = d.it.Next(); ok {
		record := d.it.Value()
		if d.it.Err() == nil {
			out, err = d.document(dst, record)
		}
		d.left--
	}
	if err = cmp.Or(d.it.Err(), err); err != nil {
		return dst, false, fmt.Errorf("%s: %w", d.x.name.Load(), err)
	}
	return out, ok, nil
}

// leaveWalk gives the iterator up. The walk goes on behind where it is.
func (d *direct) leaveWalk() {
	if d.it != nil && d.it.Valid() {
		d.within.lower = append(append([]byte(nil), d.it.Key()...), 0)
	}
	d.it = nil
}
