package document

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// Most changes are of the document with an _id: there is nothing to plan then, and no filter to be asked, as the commit reads the record
// under the key itself. Of the others most are of a document that a unique index knows: there the commit reads the entry, and the record
// that it leads to.

// parseSought parses the query of a change. Where it is an _id and nothing else, as mostly, its filter is left out: see parseFilter.
func (c *Collection) parseSought(ctx context.Context, filter any, o *UpdateOptions) (*findQuery, error) {
	spec, err := encodeDocument(filter)
	if err != nil {
		return nil, err
	}
	options := &FindOptions{Sort: o.Sort, Hint: o.Hint, Collation: o.Collation, Let: o.Let, now: o.now}
	if o.Upsert || soughtID(spec, options).Type == 0 {
		return c.parseFind(ctx, spec, options)
	}
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	q := &findQuery{call: c.store.newCall(ctx), spec: spec, project: whole}
	q.FilterSpec, q.Now = spec, c.store.nowIn(o.now)
	q.Collation, err = c.collation(nil)
	return q, err
}

// soughtID returns the _id that is all that a query asks for; Type 0: it asks for something else.
func soughtID(spec document, o *FindOptions) bsoncore.Value {
	if !o.plain() {
		return bsoncore.Value{}
	}
	var room [maxEqualities]equality
	return idAlone(appendEqualities(room[:0], spec))
}

// idAlone returns the value of _id where that is the only field; Type 0: there is another, or none.
func idAlone(list []equality) bsoncore.Value {
	if len(list) != 1 || string(list[0].field) != "_id" {
		return bsoncore.Value{}
	}
	return list[0].value
}

// plain reports whether documents are asked for as they are, in any order, however they are found.
func (o *FindOptions) plain() bool {
	return o.Sort == nil && o.Skip == 0 && o.Limit >= 0 && o.Projection == nil && o.Hint == nil && o.Min == nil && o.Max == nil &&
		o.Collation == nil && o.Let == nil
}

// parseFilter parses the filter if that has not been done: nobody needs it where the document with the _id is the one that matches.
func (ch *change) parseFilter() (err error) {
	if q := ch.query; q.Filter == nil {
		q.Filter, err = query.Parse(q.spec, &query.Options{Collation: q.Collation, Now: q.Now, Call: q.call})
	}
	return err
}

// shortcut returns what leads to the only document that can match: its _id, or a unique index that can have one entry at most for what the
// filter asks for, with the values of its fields. Neither: only a plan finds it. That is so in transactions and snapshots, which an index may
// be younger than, and where records do not lie under their _id.
func (ch *change) shortcut(x *collection, room []equality) (id bsoncore.Value, i *secondary, list []equality) {
	if ch.c.tx != nil || ch.c.at != nil || !ch.query.options.plain() || !x.settings.Load().byID() {
		return bsoncore.Value{}, nil, nil
	}
	list = appendEqualities(room, ch.query.spec)
	if id = idAlone(list); id.Type != 0 || len(list) == 0 {
		return id, nil, nil
	}
	if i = x.direct(list); i == nil || !i.def.Unique || len(i.def.Components) != len(list) {
		return bsoncore.Value{}, nil, nil
	}
	return bsoncore.Value{}, i, list
}

// needsNoPlan reports whether onlyKey is likely to say what can match.
func (ch *change) needsNoPlan(x *collection) bool {
	var room [maxEqualities]equality
	id, i, _ := ch.shortcut(x, room[:0])
	return id.Type != 0 || i != nil
}

// errNeedsPlan says that only a plan finds what matches.
var errNeedsPlan = errors.New("documents are looked for by a plan")

// onlyKey returns the key of the only record that can match, by what the commit at hand sees; none: nothing can. errNeedsPlan says that there
// is no such way, or none any more.
func (ch *change) onlyKey(w *writer, x *collection) (keys [][]byte, err error) {
	var room [maxEqualities]equality
	id, i, list := ch.shortcut(x, room[:0])
	if ch.id = id; id.Type != 0 { // the commit reads the record itself
		ch.key = x.key(ch.key[:0], id)
		return [][]byte{ch.key}, nil
	}
	if i == nil || i.since > w.began { // an index that is younger than what the commit sees may lack entries there
		return nil, errNeedsPlan
	}
	ch.key = i.appendEntry(ch.key[:0], list)
	value, err := w.tx.In(i.ks).GetTo(w.buf[:0], ch.key)
	switch {
	case errors.Is(err, pando.ErrNotFound):
		return nil, nil
	case errors.Is(err, pando.ErrDropped):
		return nil, errSchemaChanged
	case err != nil:
		return nil, err
	}
	w.buf = value
	key, err := i.recordOf(x, value)
	ch.key = append(ch.key[:0], key...)
	return [][]byte{ch.key}, err
}

// firstKey returns the key of the first record that matches by what the commit at hand sees, as a plan finds it; none: nothing matches.
// The commit reads the record again, and is overtaken by whoever changes that.
func (ch *change) firstKey(ctx context.Context, w *writer, x *collection) (keys [][]byte, err error) {
	if err := ch.parseFilter(); err != nil {
		return nil, err
	}
	q := *ch.query
	q.Limit = 1
	at := &moment{store: w.store, reader: execute.FromTx(w.tx.Unchecked()), seq: w.began}
	m, err := at.open(ctx, x, &q)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if m.next() {
		ch.key = append(ch.key[:0], m.key()...)
		keys = [][]byte{ch.key}
	}
	return keys, m.err()
}

// matches reports whether a document matches, and at which position of an array.
func (ch *change) matches(doc document) (match bool, position int, err error) {
	if id, _ := path.Lookup(doc, "_id"); ch.id.Type != 0 && id.Type == ch.id.Type && bytes.Equal(id.Data, ch.id.Data) {
		return true, -1, nil
	}
	if err := ch.parseFilter(); err != nil {
		return false, -1, err
	}
	return ch.query.Filter.MatchPosition(path.Document(doc))
}

// changeBuffers is the memory that a change works in.
type changeBuffers struct {
	key, doc, out, stored []byte
	spans                 []span
}

// spareChanges is buffers of earlier changes.
var spareChanges = sync.Pool{New: func() any { return new(changeBuffers) }}

// release gives the buffers to later changes.
func (b *changeBuffers) release() {
	if max(cap(b.doc), cap(b.out), cap(b.stored)) <= maxSpareBuffer {
		spareChanges.Put(b)
	}
}
