package document

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// DeleteOptions says how to delete. nil: the first document that matches.
type DeleteOptions struct {
	// Many deletes all documents that match.
	Many bool
	// Hint, Collation, Let: see FindOptions.
	Hint, Collation, Let any
}

// Delete deletes documents that match and returns how many it did.
func (c *Collection) Delete(ctx context.Context, filter any, o *DeleteOptions) (int64, error) {
	if o == nil {
		o = new(DeleteOptions)
	}
	ch, err := c.parseDelete(ctx, filter, o)
	if err != nil {
		return 0, err
	}
	err = ch.run(ctx)
	return ch.modified, err
}

// parseDelete parses a delete, unless there is nothing here that can be deleted so.
func (c *Collection) parseDelete(ctx context.Context, filter any, o *DeleteOptions) (*change, error) {
	if c.view() != nil {
		return nil, onView(c.ns)
	}
	if c.tx != nil && c.IsTimeSeries() {
		return nil, seriesInTransaction(c.ns, "delete from")
	}
	return c.parseChange(ctx, filter, bsoncore.Value{}, &UpdateOptions{Many: o.Many, Hint: o.Hint, Collation: o.Collation, Let: o.Let})
}
