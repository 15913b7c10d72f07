package document

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// ModifyOptions says how to find and modify.
type ModifyOptions struct {
	// Sort picks the first of several.
	Sort any
	// Projection says what of the document is returned.
	Projection any
	// Remove deletes the document; then there is no update.
	Remove bool
	// New returns the document as it is afterwards, instead of before.
	New bool
	// Upsert, ArrayFilters, Hint, Collation, Let, SkipValidation: see UpdateOptions.
	Upsert               bool
	ArrayFilters         any
	Hint, Collation, Let any
	SkipValidation       bool
}

// FindAndModify changes or deletes the first document that matches, and returns it: as it was before, or with New as it is
// afterwards. It returns ErrNotFound, and the result, when there is no document to return: none matched, or it was inserted and New
// is not set.
func (c *Collection) FindAndModify(ctx context.Context, filter, u any, o *ModifyOptions) (bson.Raw, *UpdateResult, error) {
	if o == nil {
		o = new(ModifyOptions)
	}
	ch, err := c.parseModify(ctx, filter, u, o)
	if err != nil {
		return nil, nil, err
	}
	var kept document
	ch.keep = func(old, new document) (document, error) {
		wanted := old
		if o.New {
			wanted = new
		}
		doc, err := ch.query.project(wanted)
		kept = bytes.Clone(doc)
		return kept, err
	}
	result := new(UpdateResult)
	for attempt := 0; ; attempt++ {
		if err := ch.run(ctx); err != nil {
			return nil, nil, err
		}
		result.Matched, result.Modified = ch.matched, ch.modified
		if ch.matched == 0 {
			kept = nil // a commit that was overtaken may have met a document that does not match any more
		}
		if ch.matched > 0 || !o.Upsert || o.Remove {
			break
		}
		id, doc, err := ch.upsert(ctx)
		if errors.Is(err, DuplicateKey) && ch.c.tx == nil && attempt < maxUpsertAttempts && ch.collides(err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		result.UpsertedID = bson.RawValue{Type: bson.Type(id.Type), Value: id.Data}
		if o.New {
			if doc, err = ch.query.project(doc); err != nil {
				return nil, nil, err
			}
			kept = bytes.Clone(doc)
		}
		break
	}
	if kept == nil {
		return nil, result, ErrNotFound
	}
	return bson.Raw(kept), result, nil
}

// parseModify parses a FindAndModify, unless there is nothing here that can be changed so.
func (c *Collection) parseModify(ctx context.Context, filter, u any, o *ModifyOptions) (*change, error) {
	if c.view() != nil {
		return nil, onView(c.ns)
	}
	if err := c.notSeries(); err != nil {
		return nil, err
	}
	var v bsoncore.Value
	if !o.Remove {
		var err error
		if v, err = toUpdate(u); err != nil {
			return nil, err
		}
	}
	ch, err := c.parseChange(ctx, filter, v, &UpdateOptions{
		Sort: o.Sort, Upsert: o.Upsert, ArrayFilters: o.ArrayFilters, Hint: o.Hint, Collation: o.Collation, Let: o.Let, SkipValidation: o.SkipValidation,
	})
	if err != nil {
		return nil, err
	}
	if err := ch.parseFilter(); err != nil { // of which a projection may have a part
		return nil, err
	}
	ch.query.options.Projection = o.Projection
	ch.keepInserted = o.New
	if err := c.parseProjection(ch.query); err != nil {
		return nil, err
	}
	if slices.Contains(ch.query.Projection.Meta(), metaSorted) {
		return nil, mongoerror.New(mongoerror.BadValue, "Cannot use a $meta sortKey projection in findAndModify commands.")
	}
	if projection, err := toOptional(o.Projection); err != nil {
		return nil, err
	} else if o.New && !o.Remove && hasPosition(projection) {
		return nil, mongoerror.New(mongoerror.BadValue, "Cannot use a positional projection and return the new document.")
	}
	ch.query.Projection = nil // the plan gives whole documents
	return ch, nil
}

// hasPosition reports whether a projection has a path with the positional $.
func hasPosition(projection document) bool {
	for _, e := range elementsOf(projection) {
		if strings.HasSuffix(e.Key(), ".$") {
			return true
		}
	}
	return false
}
