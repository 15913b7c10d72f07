package aggregate

import (
	"bytes"
	"context"
	"errors"
	"io"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/scratch"
)

func (s *windowStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	c := &windowCursor{s: s, o: x.o, in: in, sorter: scratch.NewSorter(x.o.allowance(), 0), top: new(extractor)}
	for _, out := range s.outputs {
		if len(out.path) > 1 {
			c.top = nil
			break
		}
		c.top.add(out.path[0])
	}
	return c, nil
}

// windowCursor sorts its input by partition and sort key, and then works on one partition at a time, which it keeps on tapes.
type windowCursor struct {
	s      *windowStage
	o      *Options
	in     Cursor
	sorter *scratch.Sorter
	filled bool
	ended  bool

	part    *partition
	next    int64
	nextKey []byte // of the first document of the next partition
	nextDoc []byte
	buf     [2][]byte
	top     *extractor // of the outputs, when all are top-level fields; else nil
	found   []bool     // of these, in the document at hand
}

// partition is the documents of a partition, and what the functions need of them.
type partition struct {
	docs      *scratch.Tape
	functions []windowState
	tapes     []*scratch.Tape
}

func (p *partition) close() error {
	var list []error
	for _, t := range p.tapes {
		list = append(list, t.Close())
	}
	return errors.Join(list...)
}

// mostTapes is how many tapes of a partition may become files. Those of thousands of outputs would take all that the process may have open.
const mostTapes = 500

func (c *windowCursor) tape(p *partition) *scratch.Tape {
	a := c.o.allowance()
	a.Memory /= int64(3*len(c.s.outputs) + 2)
	if len(p.tapes) >= mostTapes {
		a.Space = nil
	}
	t := scratch.NewTape(a, "$setWindowFields")
	p.tapes = append(p.tapes, t)
	return t
}

// Next implements Cursor.
func (c *windowCursor) Next(ctx context.Context) (document, error) {
	if !c.filled {
		if err := c.fill(ctx); err != nil {
			return nil, err
		}
	}
	for c.part == nil || c.next == c.part.docs.Len() {
		if err := c.nextPartition(ctx); err != nil {
			return nil, err
		}
	}
	if c.next%pollEvery == 0 && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	i := c.next
	c.next++
	values, size := make([]value, len(c.s.outputs)), 0
	for n, f := range c.part.functions {
		v, err := f.at(ctx, i)
		if err != nil {
			return nil, err
		}
		if size += len(v.Data); size > maxBetween { // before thousands of them are copied
			return nil, tooLarge(size)
		}
		values[n] = v
	}
	stored, err := c.part.docs.At(i)
	if err != nil {
		return nil, err
	}
	return c.set(stored, values)
}

// setTop sets outputs that are all top-level fields.
func (c *windowCursor) setTop(doc document, values []value) (document, error) {
	c.found = append(c.found[:0], make([]bool, len(values))...)
	b, start := begin(c.buf[0][:0])
	it := path.ElementsOf(doc)
	for name, v, ok := it.Next(); ok; name, v, ok = it.Next() {
		if i := c.top.place(name); i >= 0 {
			c.found[i], v = true, values[i]
		}
		if b = appendField(b, name, v); len(b) > maxBetween {
			return nil, tooLarge(len(b))
		}
	}
	for i, v := range values {
		if c.found[i] {
			continue
		}
		if b = appendField(b, c.top.names[i], v); len(b) > maxBetween {
			return nil, tooLarge(len(b))
		}
	}
	c.buf[0] = end(b, start)
	return c.buf[0], nil
}

// set sets the outputs of a document.
func (c *windowCursor) set(doc document, values []value) (document, error) {
	if c.top != nil {
		return c.setTop(doc, values)
	}
	for n, out := range c.s.outputs {
		v := values[n]
		buf := &c.buf[n%2]
		if throughArray(doc, out.path) {
			name := bsoncore.Element(out.pathElement(v))
			p, err := projection.ParseAddFields(documentOf([][]byte{name}), nil)
			if err != nil {
				return nil, err
			}
			if *buf, err = p.Apply((*buf)[:0], doc); err != nil {
				return nil, err
			}
		} else {
			*buf = appendSet((*buf)[:0], doc, out.path, v)
		}
		if doc = *buf; len(doc) > maxBetween {
			return nil, tooLarge(len(doc))
		}
	}
	return doc, nil
}

// throughArray reports whether there is an array on the way.
func throughArray(doc document, segments []string) bool {
	v := documentValue(doc)
	for _, name := range segments[:len(segments)-1] {
		if v, _ = path.Lookup(v.Data, name); v.Type != bsoncore.TypeEmbeddedDocument {
			return v.Type == bsoncore.TypeArray
		}
	}
	return false
}

func (out *windowOutput) pathElement(v value) []byte {
	name := []byte(nil)
	for i, s := range out.path {
		if i > 0 {
			name = append(name, '.')
		}
		name = append(name, s...)
	}
	if v.Type == 0 {
		return appendField(nil, name, text("$$REMOVE"))
	}
	return appendField(nil, name, literal(v))
}

func (c *windowCursor) fill(ctx context.Context) error {
	var key []byte
	err := drain(ctx, c.in, func(doc document) error {
		v := null()
		if c.s.partition != nil {
			var err error
			if v, err = c.s.partition.Eval(doc); err != nil {
				return err
			}
			switch v.Type {
			case bsoncore.TypeArray:
				return partitionIsArray()
			case 0:
				v = null()
			}
		}
		key = keyenc.Append(key[:0], v, false, c.o.Collation)
		if c.s.sort != nil {
			var err error
			if key, err = c.s.sort.Append(key, path.Document(doc)); err != nil {
				return err
			}
		}
		return c.sorter.Add(key, doc)
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
func (c *windowCursor) read() error {
	key, doc, ok, err := c.sorter.Next()
	if err != nil {
		return err
	}
	c.ended = !ok
	c.nextKey, c.nextDoc = append(c.nextKey[:0], key...), append(c.nextDoc[:0], doc...)
	return nil
}

// nextPartition reads a partition, and prepares the functions.
func (c *windowCursor) nextPartition(ctx context.Context) error {
	if err := c.closePartition(); err != nil {
		return err
	}
	if c.ended {
		return io.EOF
	}
	p := new(partition)
	c.part, c.next = p, 0
	p.docs = c.tape(p)
	rest, err := keyenc.Skip(c.nextKey, false)
	if err != nil {
		return err
	}
	prefix := append([]byte(nil), c.nextKey[:len(c.nextKey)-len(rest)]...)
	id := null()
	if c.s.partition != nil {
		if id, err = c.s.partition.Eval(c.nextDoc); err != nil {
			return err
		}
		id = clone(id)
	}
	for _, out := range c.s.outputs {
		state, err := out.function.state(c, p, id)
		if err != nil {
			return err
		}
		p.functions = append(p.functions, state)
	}
	for n := 1; !c.ended && bytes.HasPrefix(c.nextKey, prefix); n++ {
		if n%pollEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.take(p, c.nextDoc); err != nil {
			return err
		}
		if err := c.read(); err != nil {
			return err
		}
	}
	return nil
}

func (c *windowCursor) take(p *partition, doc []byte) error {
	if err := p.docs.Append(doc); err != nil {
		return err
	}
	for _, f := range p.functions {
		if err := f.take(doc); err != nil {
			return err
		}
	}
	return nil
}

func (c *windowCursor) closePartition() error {
	if c.part == nil {
		return nil
	}
	p := c.part
	c.part = nil
	return p.close()
}

// Close implements Cursor.
func (c *windowCursor) Close() error {
	return errors.Join(c.closePartition(), c.sorter.Close(), c.in.Close())
}

// windowState is a function at work on a partition.
type windowState interface {
	// take sees each document of the partition in order, before the first at.
	take(doc document) error
	// at returns the value for a document; i counts up from 0.
	at(ctx context.Context, i int64) (value, error)
}

// column is a tape of values.
type column struct{ tape *scratch.Tape }

func (c column) add(v value) error {
	return c.tape.Append(append([]byte{byte(v.Type)}, v.Data...))
}

func (c column) at(i int64) (value, error) {
	b, err := c.tape.At(i)
	if err != nil {
		return value{}, err
	}
	return value{Type: bsoncore.Type(b[0]), Data: b[1:]}, nil
}
