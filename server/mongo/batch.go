package mongo

import (
	"context"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
)

// Bounds of a batch.
const (
	defaultBatch  = 101
	maxBatchBytes = 16 << 20
	mostReserved  = 128 << 10 // before it is known how many documents a batch has
)

// batch is the documents of an answer. They are put where the connection makes the message, behind the beginnings of the message, of
// the answer and of its cursor, so that nothing is copied afterwards.
type batch struct {
	out                  []byte
	outer, cursor, array int32 // where these documents begin
	count                int
	cut                  bool  // there was no room for more
	whole                bool  // it is not cut short, as there is no other
	conn                 *conn // gives room
}

// newBatch begins the answer of a command that gives a batch in a field.
func (r *request) newBatch(field string) *batch {
	b := &batch{out: append(r.conn.out[:0], make([]byte, wire.MsgBytes)...), conn: r.conn}
	b.outer, b.out = bsoncore.AppendDocumentStart(b.out)
	b.cursor, b.out = bsoncore.AppendDocumentElementStart(b.out, "cursor")
	b.array, b.out = bsoncore.AppendArrayElementStart(b.out, field)
	return b
}

// add appends a document.
func (b *batch) add(doc bson.Raw) {
	b.out = bsoncore.AppendDocumentElement(b.out, itoa(b.count), bsoncore.Document(doc))
	b.count++
}

// room reports whether the batch may be as long as it is now. A first document always may; a batch that has to be whole waits until it may.
func (b *batch) room(ctx context.Context) (bool, error) {
	switch {
	case b.conn.fits(len(b.out)), b.count == 0:
		return true, nil
	case b.whole:
		return true, b.conn.claim(ctx, maxBatchBytes)
	}
	return false, nil
}

// read takes documents from the cursor until the batch has n (-1: no limit), as many as there is room for in an answer, and reports whether the
// cursor is at its end.
func (c *cursor) read(ctx context.Context, n int64, b *batch) (end bool, err error) {
	if c.held != nil && n != 0 {
		b.add(c.held)
		c.drop()
	}
	for n < 0 || int64(b.count) < n {
		before := len(b.out)
		b.out = append(strconv.AppendInt(append(b.out, byte(bsoncore.TypeEmbeddedDocument)), int64(b.count), 10), 0) // its header
		at, there := len(b.out), false
		b.out, there = c.src.NextTo(ctx, b.out)
		if !there {
			b.out = b.out[:before]
			end = c.src.Exhausted() || c.src.Err() != nil
			break
		}
		size := len(b.out) - at
		room, err := b.room(ctx)
		if err != nil {
			return false, err
		}
		if b.count > 0 && (before-int(b.array)+size > maxBatchBytes || !room) {
			if b.cut = true; c.hold(b.out[at:]) {
				b.out = b.out[:before]
			} else {
				b.count++
			}
			break
		}
		if b.count++; b.count == 2 && n > 2 { // documents of a collection are much alike
			b.out = slices.Grow(b.out, min(int(min(n, defaultBatch))*(size+8), mostReserved))
		}
		if b.count > 2 && cap(b.out)-len(b.out) < 2*size {
			b.out = b.conn.larger(b.out)
		}
	}
	if c.rest > 0 {
		if c.rest -= int64(b.count); c.rest <= 0 {
			end = true // nobody has to ask once more to hear that this was all
		}
	}
	if !end {
		c.src.Rest() // the client may take long to ask for more, or never do
	}
	return end, c.src.Err()
}

// hold keeps a document that does not fit into a batch for the next one, and reports whether there was room for that: what clients do
// not ask for again stays until their cursors end. Where there is none it goes out with the batch, whose memory it is in.
func (c *cursor) hold(doc []byte) bool {
	if !c.waiting.tryTake(int64(len(doc))) {
		return false
	}
	c.held = slices.Clone(bson.Raw(doc))
	return true
}

// drop gives up the document that is held.
func (c *cursor) drop() {
	c.waiting.give(int64(len(c.held)))
	c.held = nil
}

// cursorReply is the answer with a batch; id is what the client reads on with.
func (r *request) cursorReply(x *cursor, id int64, b *batch) (bsoncore.Document, error) {
	out, err := bsoncore.AppendArrayEnd(b.out, b.array)
	if err != nil {
		return nil, document.NewError(document.Code(1), "%v", err)
	}
	if x.changes {
		if token := x.src.ResumeToken(); token != nil {
			out = bsoncore.AppendDocumentElement(out, "postBatchResumeToken", bsoncore.Document(token))
		}
	}
	if r.at != nil {
		out = bsoncore.AppendTimestampElement(out, "atClusterTime", r.atTime.T, r.atTime.I)
	}
	out = bsoncore.AppendStringElement(bsoncore.AppendInt64Element(out, "id", id), "ns", x.ns)
	out, _ = bsoncore.AppendDocumentEnd(out, b.cursor) // fails only for a wrong start
	out = bsoncore.AppendDoubleElement(out, "ok", 1)
	out, _ = bsoncore.AppendDocumentEnd(out, b.outer)
	r.roomy = true // a batch may be large: finish finds room behind it
	r.conn.out = slices.Grow(out, finishBytes)
	return bsoncore.Document(r.conn.out[wire.MsgBytes:]), nil
}
