package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/projection"
)

// Most queries of most programs are equalities that an index answers with few documents. They need no plan: to parse and plan takes
// longer than to run them. What is found here is exactly what a plan with a scan of that index finds.

const (
	// maxDirect is how many documents are found so. There may be better ways to find more of them, which the planner knows.
	maxDirect = 64
	// maxEqualities is how many fields are looked for so.
	maxEqualities = 4
)

// equality is a field and a value that stands for itself. They are parts of the filter.
type equality struct {
	field []byte
	value bsoncore.Value
}

// appendEqualities appends those that a query is made of; none when something is asked for that only a plan can do.
func appendEqualities(dst []equality, spec document) []equality {
	if len(spec) <= len(emptyDocument()) {
		return nil
	}
	for rest := spec[4:]; len(rest) > 1; {
		var e bsoncore.Element
		var ok bool
		if e, rest, ok = bsoncore.ReadElement(rest); !ok || len(dst) == maxEqualities {
			return nil
		}
		field := e.KeyBytes()
		if len(field) == 0 || field[0] == '$' || bytes.IndexByte(field, '.') >= 0 || placeOf(dst, string(field)) >= 0 {
			return nil
		}
		v := e.Value()
		if !isPlain(v.Type) {
			return nil
		}
		dst = append(dst, equality{field, v})
	}
	return dst
}

// isPlain reports whether a value stands for itself, and an index has it under its key and no other.
func isPlain(t bsoncore.Type) bool {
	switch t {
	case bsoncore.TypeString, bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeBoolean, bsoncore.TypeObjectID, bsoncore.TypeDateTime:
		return true
	}
	return false
}

// placeOf returns which of the equalities is about a field; -1: none.
func placeOf(list []equality, field string) int {
	for i := range list {
		if string(list[i].field) == field {
			return i
		}
	}
	return -1
}

// openDirect answers a query without a plan, if that can be done; else the cursor is nil. The present only is read so: an index may
// be younger than a snapshot or a transaction.
func (c *Collection) openDirect(ctx context.Context, spec document, o *FindOptions) (*Cursor, error) {
	if c.tx != nil || c.at != nil {
		return nil, nil
	}
	want, ok := wishesOf(o)
	if !ok {
		return nil, nil
	}
	var room [maxEqualities]equality
	list := appendEqualities(room[:0], spec)
	var ids bsoncore.Array
	var within idRange
	if len(list) == 0 {
		if ids = listedIDs(spec); ids == nil && want.limit <= longList {
			within = rangeOfIDs(spec)
		}
		if ids == nil && within.lower == nil {
			return nil, nil
		}
	}
	x, err := c.use()
	if x == nil || err != nil {
		return nil, err
	}
	settings := x.settings.Load()
	if !settings.byID() {
		return nil, nil
	}
	d := directs.Get().(*direct)
	d.x, d.projection, d.left = x, want.projection, want.limit
	switch {
	case ids != nil:
		return d.openListed(ctx, ids)
	case within.lower != nil:
		return d.openRange(ctx, within)
	case len(list) == 1 && string(list[0].field) == "_id":
		return d.openID(ctx, list[0].value)
	}
	i := x.direct(list)
	if i == nil || !want.suits(x, i, len(list)) {
		return nil, d.close()
	}
	limit := min(d.left, maxDirect+1)
	ok, err = d.find(i, list, limit)
	if err == nil && ok {
		err = d.fetch()
	}
	if err != nil || !ok {
		err = errors.Join(err, d.close())
		if errors.Is(err, pando.ErrDropped) {
			err = nil // the planner finds another way
		}
		return nil, err
	}
	return newCursor(ctx, d), nil
}

// opened is the cursor of what has been opened by _ids. It has nothing where the collection has been dropped meanwhile.
func (d *direct) opened(ctx context.Context, err error) (*Cursor, error) {
	if err == nil {
		return newCursor(ctx, d), nil
	}
	err = errors.Join(err, d.close())
	if errors.Is(err, pando.ErrDropped) {
		return newCursor(ctx, empty{}), nil
	}
	return nil, err
}

// direct returns an index the first fields of which are those of the equalities, and that has every document with values there under
// these values; nil: there is none. It prefers those that have no further fields, and of these one that is unique.
func (c *collection) direct(list []equality) *secondary {
	var best *secondary
	for _, x := range *c.indexes.Load() {
		d := x.def
		if !x.ready || d.Hidden || d.Partial != nil || d.Collation != nil || len(d.Components) < len(list) {
			continue
		}
		fits := true
		for i := range d.Components[:len(list)] {
			part := &d.Components[i]
			fits = fits && !part.Wildcard && plainKind(part.Kind) && placeOf(list, part.Path) >= 0
		}
		for i := range d.Components[len(list):] {
			fits = fits && plainKind(d.Components[len(list)+i].Kind) && !d.Components[len(list)+i].Wildcard
		}
		if !fits {
			continue
		}
		if d.Unique && len(d.Components) == len(list) {
			return x
		}
		if best == nil || len(d.Components) < len(best.def.Components) {
			best = x
		}
	}
	return best
}

func plainKind(k index.Kind) bool { return k == index.Ascending || k == index.Descending }

// direct is the documents of an equality: first the keys of the records are gathered, then the records are read, a few at a time, all
// as of one moment.
type direct struct {
	x       *collection
	reader  pando.Reader
	held    *pando.Snapshot // what the reader is opened at for each fetch, where that may take long; nil: it is open already
	keys    pando.List      // of the records
	others  pando.List      // is what keys are put in order in,
	order   [][]byte        // by way of this
	records pando.List      // those of keys[first:]
	first   int
	at      int  // the key of the next document
	listed  bool // the keys are those of a list: there may be none of their records
	left    int  // how many documents are wanted yet
	doc     []byte

	within idRange         // what it walks over, or what is left of that; there are no keys then
	it     *pando.Iterator // nil: there is no range, or the walk has been left

	projection *projection.Projection // nil: documents are wanted as they are
	whole      []byte                 // the document that it is applied to

	entry, value []byte
}

var directs = sync.Pool{New: func() any { return new(direct) }}

// maxKept is how large the buffers may be that are kept for others.
const maxKept = 1 << 20

// maxWaiting is how large a buffer may be that stays while nobody asks for more.
const maxWaiting = 64 << 10

// openID opens the document with an _id.
func (d *direct) openID(ctx context.Context, id bsoncore.Value) (*Cursor, error) {
	d.entry = d.x.key(d.entry[:0], id)
	d.keys.Append(d.entry)
	err := d.reader.Open(d.x.store.db, d.x.records)
	if err == nil {
		err = d.reader.GetMany(&d.records, d.x.records, &d.keys, 0, 1)
	}
	if err != nil || !d.large() {
		d.reader.Close()
	}
	if errors.Is(err, pando.ErrNotFound) || errors.Is(err, pando.ErrDropped) {
		return newCursor(ctx, empty{}), d.close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.x.name.Load(), err), d.close())
	}
	return newCursor(ctx, d), nil
}

// find opens the reader and gathers the keys of the records, limit at most. It is not ok when there are many, or the index may have
// a record several times.
func (d *direct) find(i *secondary, list []equality, limit int) (ok bool, err error) {
	if err := d.reader.Open(d.x.store.db, i.ks, d.x.records); err != nil {
		return false, err
	}
	if !slices.Contains(*d.x.indexes.Load(), i) { // from then on nobody keeps it up to date, and the reader may be opened behind that
		return false, nil
	}
	parts := i.def.Components
	d.entry = i.appendEntry(d.entry[:0], list)
	if i.def.Unique && len(parts) == len(list) {
		value, err := d.reader.GetTo(d.value[:0], i.ks, d.entry)
		if errors.Is(err, pando.ErrNotFound) {
			return true, nil
		}
		d.value = value
		if err != nil {
			return false, err
		}
		return true, d.add(i, nil, value)
	}
	if len(parts) > len(list) && i.multikey.Load() != 0 { // asked after the reader was opened: it is set before the commit
		return false, nil
	}
	return d.walk(i, len(list), limit)
}

// appendEntry appends what the entries of an equality begin with in an index, the first fields of which are its.
func (x *secondary) appendEntry(dst []byte, list []equality) []byte {
	for n := range list {
		part := &x.def.Components[n]
		dst = keyenc.Append(dst, list[placeOf(list, part.Path)].value, part.Kind == index.Descending, nil)
	}
	return dst
}

// recordOf returns the key of the record that the value of an entry leads to, in a unique index of a collection.
func (x *secondary) recordOf(c *collection, value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, fmt.Errorf("%s, index %s: an entry without a record: %w", c.name.Load(), x.def.Name, pando.ErrCorrupt)
	}
	return value[1:], nil
}

// walk gathers the keys of the records whose entries begin with d.entry, the first fields of the index.
func (d *direct) walk(i *secondary, fields, limit int) (ok bool, err error) {
	parts := i.def.Components
	it := d.reader.Iter(i.ks, d.entry, nil)
	for d.keys.Len() < limit && it.Next() {
		key, within := bytes.CutPrefix(it.Key(), d.entry)
		if !within {
			return d.keys.Len() <= maxDirect, nil
		}
		for n := fields; n < len(parts) && err == nil; n++ {
			key, err = keyenc.Skip(key, parts[n].Kind == index.Descending)
		}
		var value []byte
		if i.def.Unique {
			value = it.Value()
			err = errors.Join(err, it.Err())
		}
		if err != nil {
			return false, fmt.Errorf("%s, index %s: %w", d.x.name.Load(), i.def.Name, err)
		}
		if err = d.add(i, key, value); err != nil {
			return false, err
		}
	}
	return d.keys.Len() <= maxDirect, it.Err()
}

// add notes the key of a record: of a unique index it is in the value.
func (d *direct) add(i *secondary, key, value []byte) error {
	if i.def.Unique {
		var err error
		if key, err = i.recordOf(d.x, value); err != nil {
			return err
		}
	}
	d.keys.Append(key)
	return nil
}

// fetched is how many records are read at a time.
const fetched = 16

// large reports whether so much has been read that it is given back while nobody asks for more. Then the reader stays open for it.
func (d *direct) large() bool { return d.records.Cap() > maxWaiting }

// rest implements resting: what has been read of large records is read again, and an open reader does not wait.
func (d *direct) rest() {
	if cap(d.doc)+cap(d.whole) > maxWaiting {
		d.doc, d.whole = nil, nil
	}
	if d.large() {
		d.records, d.first = pando.List{}, d.at
	}
	d.leaveWalk()
	d.hold()
}

// hold keeps the moment by a snapshot, if the reader is open: that would keep all of its moment in memory.
func (d *direct) hold() {
	if d.held == nil {
		held, err := d.reader.Hold()
		if err != nil {
			return
		}
		d.held = held.In(d.x.records)
	}
	d.reader.Close()
}

// fetch reads the next records. With the last ones it closes the reader.
func (d *direct) fetch() error {
	if d.held != nil {
		if err := d.reader.OpenAt(d.held); err != nil {
			return fmt.Errorf("%s: %w", d.x.name.Load(), err)
		}
		defer d.reader.Close()
	}
	to, err := d.fetchNext()
	for d.listed && errors.Is(err, pando.ErrNotFound) {
		if err = d.leaveOut(); err == nil {
			to, err = d.fetchNext()
		}
	}
	if errors.Is(err, pando.ErrNotFound) {
		err = fmt.Errorf("an index has an entry for a record that is not there: %w", pando.ErrCorrupt)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.x.name.Load(), err)
	}
	if to == d.keys.Len() && !d.large() {
		d.reader.Close()
	}
	return nil
}

// fetchNext reads the records of the next keys, up to one that it returns.
func (d *direct) fetchNext() (to int, err error) {
	d.first = d.at
	d.records.Reset()
	to = min(d.at+min(fetched, d.left), d.keys.Len())
	return to, d.reader.GetMany(&d.records, d.x.records, &d.keys, d.at, to)
}

func (d *direct) next(ctx context.Context) (document, bool, error) {
	out, ok, err := d.nextTo(ctx, d.doc[:0])
	d.doc = out
	return out, ok, err
}

func (d *direct) nextTo(ctx context.Context, dst []byte) ([]byte, bool, error) {
	if d.within.lower != nil {
		return d.nextInRange(ctx, dst)
	}
	if d.left > 0 && d.at < d.keys.Len() && d.at-d.first == d.records.Len() {
		if err := d.fetch(); err != nil {
			return dst, false, err
		}
	}
	if d.left == 0 || d.at == d.keys.Len() {
		return dst, false, ctx.Err()
	}
	out, err := d.document(dst, d.records.At(d.at-d.first))
	if err != nil {
		return dst, false, fmt.Errorf("%s: %w", d.x.name.Load(), err)
	}
	d.at++
	d.left--
	return out, true, nil
}

// document appends what is wanted of the document of a record.
func (d *direct) document(dst, record []byte) (out []byte, err error) {
	if d.projection == nil {
		return d.x.codec.Decode(dst, record)
	}
	if d.whole, err = d.x.codec.Decode(d.whole[:0], record); err != nil {
		return dst, err
	}
	return d.projection.Apply(dst, d.whole)
}

// close gives the buffers to the next one: documents are valid until then only.
func (d *direct) close() (err error) {
	d.reader.Close()
	if d.held != nil {
		err = d.held.Close()
	}
	if d.records.Cap()+d.keys.Cap()+d.others.Cap()+cap(d.doc)+cap(d.whole) > maxKept {
		return err
	}
	d.keys.Reset()
	d.records.Reset()
	clear(d.order)
	d.x, d.held, d.projection, d.first, d.at, d.listed = nil, nil, nil, 0, 0, false
	d.within, d.it = idRange{}, nil
	directs.Put(d)
	return err
}
