package document

import (
	"context"
	"errors"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/index"
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

// Rest is told to a cursor that waits.
func (r *matchRows) Rest() {
	r.buf = nil
	r.m.Rest()
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
		return e.collectionStats(ctx, handle, spec)
	case "$indexStats":
		return e.indexStats(ctx, handle, spec)
	case "$planCacheStats":
		return planCacheStats(handle, spec)
	}
	return nil, mongoerror.New(mongoerror.CommandNotSupported, "the stage %s is not supported here", stage)
}

// Stats is sizes of a collection.
type Stats struct {
	Documents int64
	Indexes   int // that of _id included
	Capped    bool
	Bytes     int64 // about, of the oplog; 0 of others
}

// Stats returns sizes of the collection; of one that is not there, zeros.
func (c *Collection) Stats(ctx context.Context) (*Stats, error) {
	x, err := c.use()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	if c.store.isOplog(c.ns) {
		return c.store.oplogStats(ctx)
	}
	if x == nil {
		return new(Stats), nil
	}
	n, err := x.records.Count(nil, nil)
	if err != nil {
		return nil, err
	}
	return &Stats{Documents: n, Indexes: countListed(*x.indexes.Load()) + len(x.ownIndex()), Capped: x.settings.Load().capped}, nil
}

// replaceCollection fills a new collection and puts it in the place of an old one, whose indexes and options it takes over.
// unchecked leaves the validator out.
func (s *Store) replaceCollection(ctx context.Context, ns namespace, docs aggregate.Cursor, unchecked bool) error {
	options := emptyDocument()
	target := s.Database(ns.database).Lookup(ns.collection)
	if target.view() != nil {
		return onView(ns)
	}
	old, err := target.use()
	if err != nil {
		return err
	}
	if old != nil {
		if err := target.notSeries(); err != nil {
			return err
		}
		if options = old.settings.Load().spec; old.settings.Load().capped {
			return mongoerror.New(mongoerror.Code(17152), "namespace '%s' is capped so it can't be used for $out", ns)
		}
	}
	before := look(old)
	temporary, err := s.Database(ns.database).createTemporary(ctx, options)
	if err != nil {
		return err
	}
	err = s.fillCollection(ctx, temporary, before, docs, unchecked)
	if err == nil {
		err = temporary.rename(ctx, ns, true, before.unchanged)
	}
	if err != nil {
		return errors.Join(err, temporary.Drop(s.work))
	}
	return nil
}

// looked is a collection, nil for none, with what another one takes over that is put in its place.
type looked struct {
	c        *collection
	indexes  *[]*secondary
	settings *settings
}

func look(c *collection) looked {
	if c == nil {
		return looked{}
	}
	return looked{c, c.indexes.Load(), c.settings.Load()}
}

// unchanged refuses to put the new collection into the place of one that has got other indexes or options meanwhile: they would be gone.
func (l looked) unchanged(now *collection) error {
	fresh := l.c == nil && now != nil && len(*now.indexes.Load()) == 0 // documents alone are what is replaced
	if fresh || look(now) == l {
		return nil
	}
	return mongoerror.New(mongoerror.CommandFailed, "the target collection of $out, its options or its indexes have changed meanwhile")
}

func (s *Store) fillCollection(ctx context.Context, temporary *Collection, old looked, docs aggregate.Cursor, unchecked bool) error {
	if old.c != nil {
		var defs []*index.Definition
		for _, x := range *old.indexes {
			if x.ready {
				defs = append(defs, x.def)
			}
		}
		x, err := temporary.make(ctx)
		if err == nil {
			err = x.createIndexes(ctx, defs, nil)
		}
		if err != nil {
			return err
		}
	}
	var list []document
	size := 0
	flush := func() error {
		_, err := temporary.InsertMany(ctx, list, &InsertOptions{SkipValidation: unchecked})
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
	return flush()
}
