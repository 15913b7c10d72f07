package aggregate

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// unwindStage is $unwind.
type unwindStage struct {
	path     []string
	index    []string // includeArrayIndex
	preserve bool
}

func parseUnwind(spec value) (stage, error) {
	s := &unwindStage{}
	var name string
	switch spec.Type {
	case bsoncore.TypeString:
		name = spec.StringValue()
	case bsoncore.TypeEmbeddedDocument:
		var err error
		if name, err = s.parseOptions(spec.Document()); err != nil {
			return nil, err
		}
	default:
		return nil, mongoerror.New(mongoerror.Code(15981), "expected either a string or an object as specification for $unwind stage, got %s", mongoerror.TypeName(spec.Type))
	}
	switch {
	case name == "":
		return nil, mongoerror.New(mongoerror.Code(28812), "no path specified to $unwind stage")
	case name[0] != '$':
		return nil, mongoerror.New(mongoerror.Code(28818), "path option to $unwind stage should be prefixed with a '$': %s", name)
	case strings.IndexByte(name, 0) >= 0:
		return nil, mongoerror.New(mongoerror.Code(16419), "field path must not contain embedded null characters")
	}
	var err error
	s.path, err = path.Split(name[1:])
	return s, err
}

func (s *unwindStage) parseOptions(spec document) (name string, err error) {
	elements, err := spec.Elements()
	if err != nil {
		return "", err
	}
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "path":
			if !isString(v) {
				return "", mongoerror.New(mongoerror.Code(28808), "expected a string as the path for $unwind stage, got %s", mongoerror.TypeName(v.Type))
			}
			name = v.StringValue()
		case "preserveNullAndEmptyArrays":
			if v.Type != bsoncore.TypeBoolean {
				return "", mongoerror.New(mongoerror.Code(28809), "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s", mongoerror.TypeName(v.Type))
			}
			s.preserve = v.Boolean()
		case "includeArrayIndex":
			if !isString(v) || v.StringValue() == "" {
				return "", mongoerror.New(mongoerror.Code(28810), "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got %s", mongoerror.TypeName(v.Type))
			}
			index := v.StringValue()
			if strings.HasPrefix(index, "$") {
				return "", mongoerror.New(mongoerror.Code(28822), "includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s", index)
			}
			if s.index, err = path.Split(index); err != nil {
				return "", err
			}
		default:
			return "", mongoerror.New(mongoerror.Code(28811), "unrecognized option to $unwind stage: %s", e.Key())
		}
	}
	return name, nil
}

func (s *unwindStage) open(_ context.Context, _ *run, in Cursor) (Cursor, error) {
	return &unwindCursor{s: s, in: in}, nil
}

type unwindCursor struct {
	s      *unwindStage
	in     Cursor
	doc    document // the one at hand, valid because in has not moved on
	before []byte   // of doc before the array, and what follows it, when the path is a top-level name
	after  []byte
	rest   path.Elements
	number int64
	inside bool
	buf    []byte
	other  []byte
}

// Next implements Cursor.
func (c *unwindCursor) Next(ctx context.Context) (document, error) {
	for n := 1; ; n++ {
		if c.inside {
			if _, v, ok := c.rest.Next(); ok {
				c.number++
				return c.emit(v, int64Value(c.number-1)), nil
			}
			c.inside = false
		}
		doc, err := c.in.Next(ctx)
		if err != nil {
			return nil, err
		}
		if n%pollEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if out := c.take(doc); out != nil {
			return out, nil
		}
	}
}

// take begins with a document. It returns one that is not to be taken apart, and nil for others and for those that vanish.
func (c *unwindCursor) take(doc document) document {
	c.doc = doc
	v := get(doc, c.s.path)
	switch {
	case v.Type != bsoncore.TypeArray && isNullish(v):
		if !c.s.preserve {
			return nil
		}
		return c.withIndex(doc, null())
	case v.Type != bsoncore.TypeArray:
		return c.withIndex(doc, null())
	case len(v.Data) <= bsoncore.EmptyDocumentLength:
		if !c.s.preserve {
			return nil
		}
		instead := value{}
		if n := len(c.s.path); len(c.s.index) >= n && slices.Equal(c.s.index[:n], c.s.path) {
			instead = documentValue(fields()) // for the index, which comes where the array was
		}
		c.buf = appendSet(c.buf[:0], doc, c.s.path, instead)
		return c.withIndex(c.buf, null())
	}
	c.rest, c.number, c.inside = path.ElementsOf(v.Data), 0, true
	c.before, c.after = nil, nil
	if len(c.s.path) == 1 {
		c.cut()
	}
	return nil
}

// cut finds what lies before and behind the array in the document: each output is these with an element between.
func (c *unwindCursor) cut() {
	it := path.ElementsOf(c.doc)
	at := 4
	for name, v, ok := it.Next(); ok; name, v, ok = it.Next() {
		size := 2 + len(name) + len(v.Data)
		if string(name) == c.s.path[0] {
			c.before, c.after = c.doc[:at], c.doc[at+size:]
			return
		}
		at += size
	}
}

// emit makes the document with v instead of the array.
func (c *unwindCursor) emit(v, index value) document {
	if c.before == nil {
		c.buf = appendSet(c.buf[:0], c.doc, c.s.path, v)
	} else {
		c.buf = append(c.buf[:0], c.before...)
		c.buf = append(appendField(c.buf, c.s.path[0], v), c.after[:len(c.after)-1]...)
		c.buf = end(c.buf, 0)
	}
	return c.withIndex(c.buf, index)
}

func (c *unwindCursor) withIndex(doc document, index value) document {
	if c.s.index == nil {
		return doc
	}
	c.other = appendSet(c.other[:0], doc, c.s.index, index)
	return c.other
}

// Close implements Cursor.
func (c *unwindCursor) Close() error { return c.in.Close() }
