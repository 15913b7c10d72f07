package aggregate

import (
	"context"
	"io"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/document/internal/sortkey"
)

// sortStage is $sort, and the $limit behind it.
type sortStage struct {
	spec    document
	pattern *sortkey.Pattern
	limit   int64 // 0: none
}

func (p *parser) sort(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(15973), "the $sort key specification must be an object")
	}
	pattern, err := sortkey.Parse(spec.Document(), p.o.Collation)
	return &sortStage{spec: spec.Document(), pattern: pattern}, err
}

func (s *sortStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	c := &sortCursor{in: in, sorter: scratch.NewSorter(x.o.allowance(), s.limit)}
	at := new(fieldsAt)
	for _, part := range s.pattern.Parts() {
		if part.Meta == "randVal" {
			at.random = map[string]bool{part.Path: true}
		}
	}
	c.key = func(dst []byte, doc document) ([]byte, error) {
		at.Document = path.Document(doc)
		return s.pattern.Append(dst, at)
	}
	return c, nil
}

// fieldsAt is path.Fields of one document after the other, without an allocation for each.
type fieldsAt struct {
	path.Document
	random map[string]bool // the names that stand for {$meta: "randVal"}
}

// Lookup implements path.Fields.
func (f *fieldsAt) Lookup(name string) (value, bool) {
	if f.random[name] {
		return doubleValue(rand.Float64()), true
	}
	return f.Document.Lookup(name)
}

// sortCursor sorts its input by a key.
type sortCursor struct {
	in     Cursor
	key    func(dst []byte, doc document) ([]byte, error)
	sorter *scratch.Sorter
	filled bool
	n      int64
}

// Next implements Cursor.
func (c *sortCursor) Next(ctx context.Context) (document, error) {
	if !c.filled {
		if err := c.fill(ctx); err != nil {
			return nil, err
		}
	}
	if c.n++; c.n%pollEvery == 0 && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	_, doc, ok, err := c.sorter.Next()
	if err == nil && !ok {
		err = io.EOF
	}
	return doc, err
}

func (c *sortCursor) fill(ctx context.Context) error {
	var key []byte
	err := drain(ctx, c.in, func(doc document) error {
		var err error
		if key, err = c.key(key[:0], doc); err != nil {
			return err
		}
		return c.sorter.Add(key, doc)
	})
	if err != nil {
		return err
	}
	c.filled = true
	return c.sorter.Sort()
}

// Close implements Cursor.
func (c *sortCursor) Close() error {
	if err := c.sorter.Close(); err != nil {
		return joinClose(err, c.in)
	}
	return c.in.Close()
}

// sampleStage is $sample: a sort by random numbers that keeps the first ones.
type sampleStage struct{ size int64 }

func parseSample(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(28745), "the $sample stage specification must be an object")
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	s := &sampleStage{size: -1}
	for _, e := range elements {
		if e.Key() != "size" {
			return nil, mongoerror.New(mongoerror.Code(28748), "unrecognized option to $sample: %s", e.Key())
		}
		n, ok := number.Of(e.Value())
		if !ok {
			return nil, mongoerror.New(mongoerror.Code(28746), "size argument to $sample must be a number")
		}
		if n.IsDecimal() {
			n = number.FromDecimal(n.Decimal().Quantize(0, number.HalfEven))
		}
		if s.size, _ = n.Int64(); s.size < 0 { // beyond the range it is the end of that
			return nil, mongoerror.New(mongoerror.Code(28747), "size argument to $sample must not be negative")
		}
	}
	if s.size < 0 {
		return nil, mongoerror.New(mongoerror.Code(28749), "$sample stage must specify a size")
	}
	return s, nil
}

func (s *sampleStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	if s.size == 0 {
		return &limitCursor{Cursor: in}, nil
	}
	return &sortCursor{
		in: in, sorter: scratch.NewSorter(x.o.allowance(), s.size),
		key: func(dst []byte, _ document) ([]byte, error) {
			return bsoncore.AppendInt64(dst, rand.Int64()), nil
		},
	}, nil
}
