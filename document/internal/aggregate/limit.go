package aggregate

import (
	"context"
	"io"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// count reads a number of documents: an integer that is not negative, of whatever type.
func count(v value, code mongoerror.Code, message string) (int64, error) {
	n, ok := number.Of(v)
	if !ok {
		return 0, mongoerror.New(code, "%s: Expected a number in: %s", message, v)
	}
	i, exact := n.Int64()
	switch {
	case !exact:
		return 0, mongoerror.New(code, "%s: Expected an integer: %s", message, v)
	case i < 0:
		return 0, mongoerror.New(code, "%s: Expected a non-negative number in: %s", message, v)
	}
	return i, nil
}

// limitStage is $limit.
type limitStage struct{ n int64 }

func parseLimit(spec value) (stage, error) {
	n, err := count(spec, mongoerror.Code(5107201), "invalid argument to $limit stage")
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, mongoerror.New(mongoerror.Code(15958), "the limit must be positive")
	}
	return &limitStage{n}, nil
}

// skipStage is $skip.
type skipStage struct{ n int64 }

func parseSkip(spec value) (stage, error) {
	n, err := count(spec, mongoerror.Code(5107200), "invalid argument to $skip stage")
	return &skipStage{n}, err
}

type limitCursor struct {
	Cursor
	left int64
}

func (s *limitStage) open(_ context.Context, _ *run, in Cursor) (Cursor, error) {
	return &limitCursor{Cursor: in, left: s.n}, nil
}

type skipCursor struct {
	Cursor
	left int64
}

func (s *skipStage) open(_ context.Context, _ *run, in Cursor) (Cursor, error) {
	return &skipCursor{Cursor: in, left: s.n}, nil
}

// Next implements Cursor.
func (c *limitCursor) Next(ctx context.Context) (document, error) {
	if c.left == 0 {
		return nil, io.EOF
	}
	doc, err := c.Cursor.Next(ctx)
	if err == nil {
		c.left--
	}
	return doc, err
}

// Next implements Cursor.
func (c *skipCursor) Next(ctx context.Context) (document, error) {
	for ; c.left > 0; c.left-- {
		if _, err := c.Cursor.Next(ctx); err != nil {
			return nil, err
		}
		if c.left%pollEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return c.Cursor.Next(ctx)
}

// integer reads an integer of any numeric type.
func integer(v value) (int64, bool) {
	n, ok := number.Of(v)
	if !ok {
		return 0, false
	}
	return n.Int64()
}

// int32Of reads an integer of any numeric type that 32 bits hold.
func int32Of(v value) (int64, bool) {
	i, exact := integer(v)
	return i, exact && i == int64(int32(i))
}

// float reads a number as a double.
func float(v value) (float64, bool) {
	n, ok := number.Of(v)
	if !ok {
		return math.NaN(), false
	}
	return n.Float64(), true
}

func isTrue(v value) bool {
	b, ok := v.BooleanOK()
	return ok && b
}

func isString(v value) bool { return v.Type == bsoncore.TypeString }
