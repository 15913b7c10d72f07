package document

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/update"
)

// ApplyDiff changes the documents that match as the diff of an oplog's entry of version 2 says: what is in o.diff of it. It is Update
// with another language for what becomes of a document.
func (c *Collection) ApplyDiff(ctx context.Context, filter any, diff bson.Raw, o *UpdateOptions) (*UpdateResult, error) {
	if o == nil {
		o = new(UpdateOptions)
	}
	if c.view() != nil {
		return nil, onView(c.ns)
	}
	if err := checkSpec(document(diff)); err != nil {
		return nil, err
	}
	ch, err := c.parseChange(ctx, filter, bsoncore.Value{}, o)
	if err != nil {
		return nil, err
	}
	if ch.u, err = update.ParseDiff(document(diff)); err != nil {
		return nil, err
	}
	return ch.carryOut(ctx, o.Upsert)
}
