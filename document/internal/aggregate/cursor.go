package aggregate

import (
	"context"
	"errors"
	"io"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/scratch"
)

const (
	// maxDocument is how large a document may be that leaves a pipeline: BSON's limit and some room.
	maxDocument = 16<<20 + 16<<10
	// maxBetween is how large it may be between stages, where MongoDB does not hold it against BSON's limit.
	maxBetween = maxAccumulated
	// maxHeld is how much of documents that are gone may lie in the stages that made them.
	maxHeld = 64 << 20
)

// pollEvery is after how many documents a loop looks whether it is to end.
const pollEvery = 256

func joinClose(err error, c Cursor) error {
	if closed := c.Close(); closed != nil {
		return errors.Join(err, closed)
	}
	return err
}

func tooLarge(n int) error {
	return mongoerror.New(mongoerror.BSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", n, n, maxDocument)
}

// listCursor is documents that are there already.
type listCursor struct{ docs []document }

// Next implements Cursor.
func (c *listCursor) Next(context.Context) (document, error) {
	if len(c.docs) == 0 {
		return nil, io.EOF
	}
	doc := c.docs[0]
	c.docs = c.docs[1:]
	return doc, nil
}

// Close implements Cursor.
func (c *listCursor) Close() error {
	c.docs = nil
	return nil
}

// mapCursor makes at most one document of each.
type mapCursor struct {
	in    Cursor
	apply func(dst []byte, doc document) (out document, keep bool, err error) // out may be doc itself
	buf   []byte                                                              // for what apply makes, where it keeps that
	n     int

	before   int                  // how many cursors in front keep a document that they have made
	sequence *projection.Sequence // of a $project, $addFields or $unset and those before it
	source   Cursor               // what the sequence reads
}

// Next implements Cursor.
func (c *mapCursor) Next(ctx context.Context) (document, error) {
	for {
		doc, err := c.in.Next(ctx)
		if err != nil {
			return nil, err
		}
		if c.n++; c.n%pollEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out, keep, err := c.apply(c.buf[:0], doc)
		if err != nil {
			return nil, err
		}
		if !keep {
			continue
		}
		if len(out) > maxBetween {
			return nil, tooLarge(len(out))
		}
		return out, nil
	}
}

// makersBefore is how many cursors, one behind the other, keep a document that they have made.
func makersBefore(in Cursor) int {
	for m, ok := in.(*mapCursor); ok; m, ok = m.in.(*mapCursor) {
		if m.source != nil {
			return m.before + 1
		}
	}
	return 0
}

// made takes over a document that was made of that of the stages before: they give up theirs where long chains would hold too much.
func (c *mapCursor) made(doc document) {
	c.buf = doc
	if c.before*len(doc) <= maxHeld {
		return
	}
	for in, ok := c.in.(*mapCursor); ok; in, ok = in.in.(*mapCursor) {
		in.buf = nil
	}
}

// Close implements Cursor.
func (c *mapCursor) Close() error { return c.in.Close() }

// Rest gives back the memory that large documents have taken in a cursor and in those that it reads from, for one that waits: a stage that
// makes a document of each, or several, holds the last one. The document that Next returned is gone.
func Rest(c Cursor) {
	switch c := c.(type) {
	case *mapCursor:
		c.buf = nil
		Rest(c.in)
	case *unwindCursor:
		c.buf, c.other = nil, nil
		Rest(c.in)
	case *limitCursor:
		Rest(c.Cursor)
	case *skipCursor:
		Rest(c.Cursor)
	case *joinCursor:
		c.rest()
		Rest(c.in)
	case *subPipelineCursor:
		c.rest()
		Rest(c.in)
		if c.inner != nil {
			Rest(c.inner)
		}
	case *unionCursor:
		Rest(c.first)
		Rest(c.second)
	case *graphCursor:
		c.buf = nil
		Rest(c.in)
	case *groupCursor:
		c.buf = nil
	case *windowCursor:
		c.buf = [2][]byte{}
	case *lazyCursor:
		if c.cursor != nil {
			Rest(c.cursor)
		}
	case interface{ Rest() }:
		c.Rest()
	}
}

// drain gives each document of a cursor to add, and closes it.
func drain(ctx context.Context, in Cursor, add func(doc document) error) error {
	for n := 1; ; n++ {
		doc, err := in.Next(ctx)
		if errors.Is(err, io.EOF) {
			return in.Close()
		}
		if err != nil {
			return err
		}
		if n%pollEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := add(doc); err != nil {
			return err
		}
	}
}

// tapeCursor reads the documents of a tape. It closes the tape if it is told to.
type tapeCursor struct {
	tape  *scratch.Tape
	next  int64
	owned bool
}

// Next implements Cursor.
func (c *tapeCursor) Next(ctx context.Context) (document, error) {
	if c.next >= c.tape.Len() {
		return nil, io.EOF
	}
	if c.next++; c.next%pollEvery == 0 && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	doc, err := c.tape.At(c.next - 1)
	return doc, err
}

// Close implements Cursor.
func (c *tapeCursor) Close() error {
	if !c.owned {
		return nil
	}
	return c.tape.Close()
}

// lazyCursor opens a cursor with its first document.
type lazyCursor struct {
	in     Cursor // closed too; may be nil
	start  func(ctx context.Context) (Cursor, error)
	cursor Cursor
}

// Next implements Cursor.
func (c *lazyCursor) Next(ctx context.Context) (document, error) {
	if c.cursor == nil {
		var err error
		if c.cursor, err = c.start(ctx); err != nil {
			c.cursor = nil
			return nil, err
		}
	}
	return c.cursor.Next(ctx)
}

// Close implements Cursor.
func (c *lazyCursor) Close() error {
	var list []error
	if c.cursor != nil {
		list = append(list, c.cursor.Close())
	}
	if c.in != nil {
		list = append(list, c.in.Close())
	}
	return errors.Join(list...)
}
