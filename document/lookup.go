package document

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
)

// Most queries of most programs are one equality that an index answers with few documents. They need no plan: to parse and plan takes
// longer than to run them. What is found here is exactly what a plan with a scan of that index finds.

// maxDirect is how many documents are found so. There may be better ways to find more of them, which the planner knows.
const maxDirect = 64

// equality is a filter of one field and a value that stands for itself.
type equality struct {
	field string
	value bsoncore.Value
}

// parseEquality reports whether a query is one equality, with nothing asked for that only a plan can do.
func parseEquality(spec document, o *FindOptions) (equality, bool) {
	if o != nil && (o.Sort != nil || o.Skip != 0 || o.Limit < 0 || o.Projection != nil || o.Hint != nil || o.Min != nil || o.Max != nil ||
		o.Collation != nil || o.Let != nil) {
		return equality{}, false
	}
	if len(spec) <= 5 {
		return equality{}, false
	}
	e, rest, ok := bsoncore.ReadElement(spec[4:])
	if !ok || len(rest) != 1 {
		return equality{}, false
	}
	field := e.Key()
	if field == "" || field[0] == '$' || strings.IndexByte(field, '.') >= 0 {
		return equality{}, false
	}
	switch v := e.Value(); v.Type {
	case bsoncore.TypeString, bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeBoolean, bsoncore.TypeObjectID, bsoncore.TypeDateTime:
		return equality{field, v}, true
	}
	return equality{}, false
}

// openDirect answers a query without a plan, if that can be done; else the cursor is nil. The present only is read so: an index may
// be younger than a snapshot or a transaction.
func (c *Collection) openDirect(ctx context.Context, spec document, o *FindOptions) (*Cursor, error) {
	if c.tx != nil || c.at != nil {
		return nil, nil
	}
	eq, ok := parseEquality(spec, o)
	if !ok {
		return nil, nil
	}
	x, err := c.use()
	if x == nil || err != nil {
		return nil, err
	}
	settings := x.settings.Load()
	if settings.collation != nil || settings.capped {
		return nil, nil
	}
	if eq.field == "_id" {
		doc, err := c.GetValueTo(ctx, nil, bson.RawValue{Type: bson.Type(eq.value.Type), Value: eq.value.Data})
		if errors.Is(err, ErrNotFound) {
			return newCursor(ctx, empty{}), nil
		}
		if err != nil {
			return nil, err
		}
		return newCursor(ctx, &listed{docs: []document{document(doc)}}), nil
	}
	i := x.direct(eq.field)
	if i == nil {
		return nil, nil
	}
	d := directs.Get().(*direct)
	d.x, d.snap = x, x.store.db.Snapshot()
	limit := maxDirect + 1
	if o != nil && o.Limit > 0 {
		limit = int(min(o.Limit, maxDirect+1))
	}
	if err = d.find(i, eq.value, limit); err != nil || len(d.ends) > maxDirect {
		err = errors.Join(err, d.close())
		if errors.Is(err, pando.ErrDropped) {
			err = nil // the planner finds another way
		}
		return nil, err
	}
	return newCursor(ctx, d), nil
}

// direct returns an index of one field that has every document with a value there under that value; nil: there is none.
func (c *collection) direct(field string) *secondary {
	var best *secondary
	for _, x := range *c.indexes.Load() {
		d := x.def
		if !x.ready || d.Hidden || d.Partial != nil || d.Collation != nil || len(d.Components) != 1 {
			continue
		}
		part := &d.Components[0]
		if part.Path != field || part.Wildcard || part.Kind != index.Ascending {
			continue
		}
		if d.Unique {
			return x
		}
		if best == nil {
			best = x
		}
	}
	return best
}

// direct is the documents of an equality: first the keys of the records are gathered, then they are read one by one, as of one moment.
type direct struct {
	x    *collection
	snap *pando.Snapshot
	keys []byte // one after the other
	ends []int
	at   int
	record,
	doc []byte
}

var directs = sync.Pool{New: func() any { return new(direct) }}

// maxKept is how large the buffers may be that are kept for others.
const maxKept = 1 << 20

// find gathers the keys of the records, limit at most.
func (d *direct) find(i *secondary, v bsoncore.Value, limit int) error {
	var room [96]byte
	entry := keyenc.Append(room[:0], v, false, nil)
	entries := d.snap.In(i.ks)
	if i.def.Unique {
		value, err := entries.GetTo(d.record[:0], entry)
		if errors.Is(err, pando.ErrNotFound) {
			return nil
		}
		d.record = value
		if err == nil && len(value) == 0 {
			err = fmt.Errorf("%s, index %s: an entry without a record: %w", d.x.name.Load(), i.def.Name, pando.ErrCorrupt)
		}
		if err != nil {
			return err
		}
		d.keys, d.ends = append(d.keys, value[1:]...), append(d.ends, len(value)-1)
		return nil
	}
	lo, hi := index.PrefixRange(entry)
	it := entries.Iter(&pando.IterOptions{Lower: lo, Upper: hi})
	defer it.Close()
	for len(d.ends) < limit && it.Next() {
		d.keys = append(d.keys, it.Key()[len(entry):]...)
		d.ends = append(d.ends, len(d.keys))
	}
	return it.Err()
}

func (d *direct) next(ctx context.Context) (document, bool, error) {
	if d.at == len(d.ends) {
		return nil, false, ctx.Err()
	}
	from := 0
	if d.at > 0 {
		from = d.ends[d.at-1]
	}
	key := d.keys[from:d.ends[d.at]]
	d.at++
	var err error
	if d.record, err = d.snap.In(d.x.records).GetTo(d.record[:0], key); err != nil {
		if errors.Is(err, pando.ErrNotFound) {
			err = fmt.Errorf("an index has an entry for a record that is not there: %w", pando.ErrCorrupt)
		}
		return nil, false, fmt.Errorf("%s: %w", d.x.name.Load(), err)
	}
	if d.doc, err = d.x.codec.Decode(d.doc[:0], d.record); err != nil {
		return nil, false, fmt.Errorf("%s: %w", d.x.name.Load(), err)
	}
	return d.doc, true, nil
}

// close gives the buffers to the next one: documents are valid until then only.
func (d *direct) close() error {
	err := d.snap.Close()
	*d = direct{keys: d.keys[:0], ends: d.ends[:0], record: d.record, doc: d.doc}
	if cap(d.record)+cap(d.doc) <= maxKept {
		directs.Put(d)
	}
	return err
}
