package document

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Cursor is a stream of documents. It reads the store as it was when it was opened. It is used by one goroutine at a time and must be
// closed; reading it to its end closes it too. Raw documents that were passed to what opened it must not change before that.
type Cursor struct {
	src     source
	current document
	err     error
	closed  bool
	early   bool   // closed before the end
	tail    waiter // nil: the cursor ends
}

// source is where a cursor's documents come from.
type source interface {
	// next returns the next document, valid until the next call; ok is false at the end.
	next(ctx context.Context) (doc document, ok bool, err error)
	close() error
}

// appending is a source that makes its documents where they are wanted.
type appending interface {
	// nextTo is next, but appends the document to dst. Without one it returns dst as it was.
	nextTo(ctx context.Context, dst []byte) (out []byte, ok bool, err error)
}

// resting is a source that can do with less memory while nobody asks for its next document.
type resting interface{ rest() }

// errEnded is what next returns when a stream that otherwise waits has come to its end for ever.
var errEnded = errors.New("the stream has ended")

// waiter is a source that has an end only for now.
type waiter interface {
	wait(ctx context.Context) error
}

// cursors are those that loops have ended, which nobody else has seen.
var cursors = sync.Pool{New: func() any { return new(Cursor) }}

func newCursor(_ context.Context, s source) *Cursor {
	c := cursors.Get().(*Cursor)
	c.src = s
	c.tail, _ = s.(waiter)
	return c
}

// Next moves to the next document and reports whether there is one. Of a cursor that does not end (Tail, Watch) it waits for the
// next, until ctx is done: then the stream has ended with ctx's error. Who wants to go on later uses TryNext and Wait.
func (c *Cursor) Next(ctx context.Context) bool {
	for {
		if c.TryNext(ctx) {
			return true
		}
		if c.tail == nil || c.err != nil || c.closed {
			return false
		}
		if err := c.tail.wait(ctx); err != nil && !errors.Is(err, errEnded) {
			c.err = err
			return false
		}
	}
}

// TryNext is Next, but does not wait: of a cursor that does not end it returns false, and Err nil, when there is nothing yet.
func (c *Cursor) TryNext(ctx context.Context) bool {
	if c.over() {
		return false
	}
	if c.err = ctx.Err(); c.err != nil {
		return false
	}
	doc, ok, err := c.src.next(ctx)
	if err == nil && ok {
		c.current = doc
		return true
	}
	return c.stop(err)
}

// over reports whether there is no next document, whatever comes, and notes why where that is no end of the stream.
func (c *Cursor) over() bool {
	if c.early && c.err == nil {
		c.err = ErrClosed
	}
	return c.closed || c.err != nil
}

// NextTo is TryNext, but appends the document to dst instead of keeping it for Current. Without one it returns dst as it was.
func (c *Cursor) NextTo(ctx context.Context, dst []byte) ([]byte, bool) {
	to, ok := c.src.(appending)
	if !ok {
		if ok = c.TryNext(ctx); ok {
			dst = append(dst, c.current...)
		}
		return dst, ok
	}
	if c.over() {
		return dst, false
	}
	if c.err = ctx.Err(); c.err != nil {
		return dst, false
	}
	out, ok, err := to.nextTo(ctx, dst)
	if err == nil && ok {
		c.current = nil
		return out, true
	}
	return dst, c.stop(err)
}

// stop notes why there is no next document: the end, the end for now, or an error. It returns false.
func (c *Cursor) stop(err error) bool {
	ended := errors.Is(err, errEnded)
	if ended {
		err = nil
	}
	c.current, c.err = nil, err
	if c.tail == nil || err != nil || ended {
		c.closed = true
		c.err = errors.Join(err, c.src.close())
	}
	return false
}

// Wait waits until there may be something new on a cursor that does not end, or until ctx is done; then it returns its error. On
// one that ends it returns at once.
func (c *Cursor) Wait(ctx context.Context) error {
	if c.over() || c.tail == nil {
		return c.err
	}
	if err := c.tail.wait(ctx); !errors.Is(err, errEnded) {
		return err
	}
	return nil
}

// Current returns the document that Next moved to, valid until the next move.
func (c *Cursor) Current() bson.Raw { return bson.Raw(c.current) }

// Rest gives back the memory that large documents have taken, for a cursor that waits for somebody who may never come back: a cursor keeps
// what the last one has taken for the next. Current is nil until the next move.
func (c *Cursor) Rest() {
	c.current = nil
	if r, ok := c.src.(resting); ok && !c.closed {
		r.rest()
	}
}

// Decode unmarshals the current document. There is none before Next has returned true.
func (c *Cursor) Decode(v any) error {
	if c.current == nil {
		return mongoerror.New(mongoerror.BadValue, "the cursor stands on no document")
	}
	return bson.Unmarshal(c.current, v)
}

// Err returns the error that ended the stream, and ErrClosed when a move was tried after a Close that came before its end.
func (c *Cursor) Err() error { return c.err }

// Exhausted reports whether the stream has come to its end.
func (c *Cursor) Exhausted() bool { return c.closed && !c.early }

// Close gives the cursor up. Closing twice is no error.
func (c *Cursor) Close() error {
	if c.closed {
		return nil
	}
	c.closed, c.early, c.current = true, true, nil
	return c.src.close()
}

// loop makes a range loop of what opens a cursor.
func loop(ctx context.Context, open func() (*Cursor, error)) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		c, err := open()
		if err != nil {
			yield(nil, err)
			return
		}
		c.each(ctx, yield)
	}
}

// each is the loop over a cursor that nobody else has. It ends the cursor.
func (c *Cursor) each(ctx context.Context, yield func(bson.Raw, error) bool) {
	defer c.recycle()
	for c.Next(ctx) {
		if !yield(c.Current(), nil) {
			return
		}
	}
	if err := c.Err(); err != nil {
		yield(nil, err)
	}
}

// recycle closes the cursor and gives its memory to the next one.
func (c *Cursor) recycle() {
	_ = c.Close() // the loop is over: nobody is there to hear of an error
	*c = Cursor{}
	cursors.Put(c)
}

// empty is the source of what is not there.
type empty struct{}

func (empty) next(context.Context) (document, bool, error) { return nil, false, nil }
func (empty) close() error                                 { return nil }

// piped makes a source of an aggregation's cursor.
type piped struct {
	cursor aggregate.Cursor
	call   *expression.Call // who waits; may be nil
	done   func() error     // what to give back afterwards; may be nil
}

func (p *piped) next(ctx context.Context) (document, bool, error) {
	p.call.By(ctx)
	doc, err := p.cursor.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, false, nil
	}
	return doc, err == nil, err
}

func (p *piped) rest() { aggregate.Rest(p.cursor) }

func (p *piped) close() error {
	err := p.cursor.Close()
	if p.done != nil {
		err = errors.Join(err, p.done())
	}
	return err
}

// listed is documents that are there already.
type listed struct{ docs []document }

func (l *listed) next(context.Context) (document, bool, error) {
	if len(l.docs) == 0 {
		return nil, false, nil
	}
	doc := l.docs[0]
	l.docs = l.docs[1:]
	return doc, true, nil
}

func (l *listed) close() error { return nil }
