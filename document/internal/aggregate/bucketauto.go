package aggregate

import (
	"bytes"
	"context"
	"io"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/scratch"
)

// bucketAutoStage is $bucketAuto.
type bucketAutoStage struct {
	by      *expression.Expression
	buckets int64
	fields  []*accumulation
	x       *extractor
	series  series // nil: no granularity
}

func (p *parser) bucketAuto(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.Code(40240), "The argument to $bucketAuto must be an object, but found type: %s.", mongoerror.TypeName(spec.Type))
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	s := &bucketAutoStage{x: new(extractor)}
	output := value{}
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "groupBy":
			if err = checkGroupBy(v, 40239, "$bucketAuto"); err == nil {
				s.by, err = expression.Parse(v, p.o.expression())
			}
		case "buckets":
			s.buckets, err = bucketCount(v)
		case "output":
			if output = v; v.Type != bsoncore.TypeEmbeddedDocument {
				err = mongoerror.New(mongoerror.Code(40244), "The $bucketAuto 'output' field must be an object, but found type: %s.", mongoerror.TypeName(v.Type))
			}
		case "granularity":
			s.series, err = granularity(v)
		default:
			err = mongoerror.New(mongoerror.Code(40245), "Unrecognized option to $bucketAuto: %s.", e.Key())
		}
		if err != nil {
			return nil, err
		}
	}
	if s.by == nil || s.buckets == 0 {
		return nil, mongoerror.New(mongoerror.Code(40246), "$bucketAuto requires 'groupBy' and 'buckets' to be specified.")
	}
	out := document(append(append([]byte{0, 0, 0, 0}, outputFields(output)...), 0))
	elements, err = document(end(out[:len(out)-1], 0)).Elements()
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		a, err := p.groupField(e.Key(), e.Value())
		if err != nil {
			return nil, err
		}
		a.input = s.x.operand(a.argument)
		s.fields = append(s.fields, a)
	}
	return s, nil
}

func bucketCount(v value) (int64, error) {
	n, exact := integer(v)
	switch {
	case !isNumber(v):
		return 0, mongoerror.New(mongoerror.Code(40241), "The $bucketAuto 'buckets' field must be a numeric value, but found type: %s.", mongoerror.TypeName(v.Type))
	case !exact || n > math.MaxInt32 || n < math.MinInt32:
		return 0, mongoerror.New(mongoerror.Code(40242), "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found %s.", v)
	case n <= 0:
		return 0, mongoerror.New(mongoerror.Code(40243), "The $bucketAuto 'buckets' field must be greater than 0, but found: %d.", n)
	}
	return n, nil
}

func (s *bucketAutoStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	return &bucketAutoCursor{s: s, o: x.o, in: in, sorter: scratch.NewSorter(x.o.allowance(), 0), x: s.x.fork()}, nil
}

// bucketAutoCursor sorts its input by the value to group by, and cuts it into buckets of about the same number of documents.
type bucketAutoCursor struct {
	s      *bucketAutoStage
	o      *Options
	in     Cursor
	x      *extractor
	sorter *scratch.Sorter
	filled bool

	count   int64
	made    int64
	current bucketRow // the next document
	max     value     // of the bucket before
	key     []byte
	buf     []byte
}

// bucketRow is a document with the value that it is grouped by.
type bucketRow struct {
	key []byte
	v   value
	doc document
	ok  bool
}

// Next implements Cursor.
func (c *bucketAutoCursor) Next(ctx context.Context) (document, error) {
	if !c.filled {
		if err := c.fill(ctx); err != nil {
			return nil, err
		}
	}
	if !c.current.ok || c.made == c.s.buckets {
		return nil, io.EOF
	}
	c.made++
	return c.bucket(ctx)
}

func (c *bucketAutoCursor) fill(ctx context.Context) error {
	var key, row []byte
	err := drain(ctx, c.in, func(doc document) error {
		v, err := c.s.by.Eval(doc)
		if err != nil {
			return err
		}
		if v.Type == 0 {
			v = null()
		}
		if err := c.s.series.check(v); err != nil {
			return err
		}
		c.count++
		key = keyenc.Append(key[:0], v, false, c.o.Collation)
		var start int
		row, start = begin(row[:0])
		row = end(appendField(row, "", v), start)
		return c.sorter.Add(key, append(row, doc...))
	})
	if err != nil {
		return err
	}
	c.filled = true
	if err := c.sorter.Sort(); err != nil {
		return err
	}
	return c.read()
}

// read takes the next document from the sorter.
func (c *bucketAutoCursor) read() error {
	key, row, ok, err := c.sorter.Next()
	if err != nil || !ok {
		c.current = bucketRow{}
		return err
	}
	head := document(row)
	n, _, _ := bsoncore.ReadLength(head)
	e, err := head[:n].IndexErr(0)
	if err != nil {
		return err
	}
	c.current = bucketRow{key: key, v: e.Value(), doc: document(row[n:]), ok: true}
	return nil
}

// bucket makes the next bucket.
func (c *bucketAutoCursor) bucket(ctx context.Context) (document, error) {
	accumulators := make([]accumulator, len(c.s.fields))
	for i, a := range c.s.fields {
		var err error
		if accumulators[i], err = a.accumulator(null()); err != nil {
			return nil, err
		}
	}
	size := int64(math.Max(1, math.Round(float64(c.count)/float64(c.s.buckets))))
	low, high := clone(c.current.v), kept{}
	var highKey []byte
	take := func() error {
		high.set(c.current.v)
		highKey = append(highKey[:0], c.current.key...)
		c.x.extract(c.current.doc)
		for i, a := range c.s.fields {
			var err error
			if _, c.key, err = a.feed(accumulators[i], c.x, c.current.doc, c.key); err != nil {
				return err
			}
		}
		return c.read()
	}
	for n := int64(0); c.current.ok && (n < size || c.made == c.s.buckets); n++ {
		if n%pollEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := take(); err != nil {
			return nil, err
		}
	}
	if c.s.series != nil {
		boundary := c.s.series.up(high.v)
		if f, _ := float(boundary); f == 0 && c.current.ok { // zero is not rounded: up to what is below the next one
			boundary = c.s.series.down(c.current.v)
		}
		for c.current.ok && order.Compare(c.current.v, boundary, nil) < 0 {
			if err := take(); err != nil {
				return nil, err
			}
		}
		if c.made == 1 {
			low = c.s.series.down(low)
		} else {
			low = c.max
		}
		c.max = boundary
		return c.emit(low, boundary, accumulators)
	}
	for c.current.ok && bytes.Equal(c.current.key, highKey) {
		if err := take(); err != nil {
			return nil, err
		}
	}
	if c.current.ok {
		high.set(c.current.v)
	}
	return c.emit(low, high.v, accumulators)
}

func (c *bucketAutoCursor) emit(low, high value, accumulators []accumulator) (document, error) {
	b, start := begin(c.buf[:0])
	b = appendField(b, "_id", object("min", low, "max", high))
	for i, a := range accumulators {
		v, err := a.result()
		if err != nil {
			return nil, err
		}
		if v.Type == 0 {
			v = null()
		}
		if b = appendField(b, c.s.fields[i].field, v); len(b) > maxBetween {
			return nil, tooLarge(len(b))
		}
	}
	c.buf = end(b, start)
	return c.buf, nil
}

// Close implements Cursor.
func (c *bucketAutoCursor) Close() error {
	if err := c.sorter.Close(); err != nil {
		return joinClose(err, c.in)
	}
	return c.in.Close()
}
