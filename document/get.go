package document

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
)

// lookup is the buffers of a point read.
type lookup struct{ key, record []byte }

var lookups = sync.Pool{New: func() any { return new(lookup) }}

// GetValueTo is GetTo for an _id that is BSON already. It allocates nothing when the document fits into dst.
func (c *Collection) GetValueTo(ctx context.Context, dst []byte, id bson.RawValue) (bson.Raw, error) {
	x, passing, err := c.useRecords()
	if err != nil {
		return dst, err
	}
	v := bsoncore.Value{Type: bsoncore.Type(id.Type), Data: id.Value}
	if x == nil && c.view() != nil {
		return c.getFound(ctx, dst, v)
	}
	if x == nil {
		return dst, fmt.Errorf("%s: %w", c.ns, ErrNotFound)
	}
	l := lookups.Get().(*lookup)
	defer lookups.Put(l)
	switch settings := x.settings.Load(); {
	case settings.capped:
		if err := x.open(); err != nil {
			return dst, err
		}
		return c.getCapped(ctx, x, dst, v)
	case settings.series != nil:
		return c.getFound(ctx, dst, v)
	}
	l.key = x.key(l.key[:0], v)
	if c.at != nil {
		l.record, err = c.at.reader.GetTo(x.records, l.record[:0], l.key)
	} else if c.tx != nil {
		l.record, err = c.tx.reads.In(x.records).GetTo(l.record[:0], l.key)
	} else {
		l.record, err = x.records.GetTo(l.record[:0], l.key)
		if errors.Is(err, pando.ErrDropped) {
			err = fmt.Errorf("%s, which was dropped meanwhile: %w", c.ns, ErrNotFound)
		}
	}
	if err != nil {
		return dst, err
	}
	var out []byte
	if passing {
		out, err = x.decodePassing(dst, l.record)
	} else {
		out, err = x.codec.Decode(dst, l.record)
	}
	if err != nil {
		return dst, fmt.Errorf("%s: %w", c.ns, err)
	}
	return out, nil
}

// getFound is GetValueTo where the _id is not the key of a record.
func (c *Collection) getFound(ctx context.Context, dst []byte, id bsoncore.Value) (bson.Raw, error) {
	equal := bsoncore.NewDocumentBuilder().AppendValue("$eq", id).Build() // a regular expression would be a pattern without it
	doc, err := c.FindOne(ctx, bsoncore.NewDocumentBuilder().AppendDocument("_id", equal).Build(), nil)
	return append(dst, doc...), err
}
