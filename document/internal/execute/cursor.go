package execute

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/scratch"
)

// Cursor walks over the rows of a plan. It is used by one goroutine at a time, and must be closed.
type Cursor struct {
	x          *run
	root       node
	stats      *plan.Stats
	row        row
	projection *projection.Projection
	excerpt    *codec.Excerpt // of the only top-level fields that are wanted; nil: of all
	cuts       bool           // the projection leaves the excerpt as it is
	closed     bool
}

// manyFields is of how many fields it is quicker to decode whole documents.
const manyFields = 8

// Open begins to run a plan. The reader must stay usable until the cursor is closed.
func Open(ctx context.Context, r Reader, c *Collection, p *plan.Plan, o *Options) (*Cursor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x := newRun(ctx, r, c, p, o)
	cur := &Cursor{x: x, projection: p.Query().Projection}
	needs := p.Query().Needs
	if cur.projection == nil {
		if fields := p.Query().Fields; fields != nil {
			needs = fields
		}
	} else if paths, whole := cur.projection.Fields(); !whole {
		needs = paths
		cur.cuts = selects(cur.projection)
	}
	if names := topLevel(needs); names != nil {
		cur.excerpt = codec.NewExcerpt(names)
	}
	cur.root, cur.stats = x.build(p.Root)
	return cur, nil
}

func newRun(ctx context.Context, r Reader, c *Collection, p *plan.Plan, o *Options) *run {
	x := &run{ctx: ctx, r: r, live: tracks(r), c: c, allowed: scratch.Allowance{Memory: DefaultMemory}, view: c.Codec.NewView(), query: p.Query()}
	if o != nil {
		x.allowed.Space, x.allowed.Shared, x.limit = o.Space, o.Shared, o.Steps
		if o.Memory > 0 {
			x.allowed.Memory = o.Memory
		}
	}
	return x
}

func (x *run) collation() *collation.Collation { return x.query.Collation }

// Next moves to the next row; false: the end, or an error, which Err tells.
func (c *Cursor) Next() bool {
	for c.row = (row{}); !c.closed && c.x.err == nil && c.root.next(&c.row); {
		if c.x.err == nil && c.x.complete(&c.row) {
			return true
		}
	}
	c.row = row{}
	return false
}

// Key returns the key of the record, valid until the next move.
func (c *Cursor) Key() []byte { return c.row.key }

// Record returns the record as it is stored, valid until the next move; nil for a row that a plan takes out of an index.
func (c *Cursor) Record() []byte { return c.row.stored }

// View returns the fields of the record, valid until the next move; nil for a row that a plan takes out of an index.
func (c *Cursor) View() *codec.View {
	if c.row.stored == nil {
		return nil
	}
	if err := c.x.view.Reset(c.row.stored); err != nil {
		c.x.fail(fmt.Errorf("%s: %w", c.x.c.Namespace, err))
		return nil
	}
	return c.x.view
}

// Document appends the document to dst, with the query's projection.
func (c *Cursor) Document(dst []byte) ([]byte, error) {
	if c.projection == nil {
		return c.wanted(dst)
	}
	if c.cuts {
		if out, ok, err := c.cut(dst); ok || err != nil {
			return out, err
		}
	}
	doc, err := c.wanted(c.x.whole[:0])
	if err != nil {
		return dst, err
	}
	c.x.whole = doc
	return c.projection.Apply(dst, doc)
}

// cut appends the excerpt of the record; it is not ok when there is none.
func (c *Cursor) cut(dst []byte) (out []byte, ok bool, err error) {
	if c.row.stored == nil || c.excerpt == nil {
		return dst, false, nil
	}
	view := c.View()
	if view == nil {
		return dst, false, c.x.err
	}
	if out, ok, err = c.excerpt.Append(dst, view); err != nil {
		err = fmt.Errorf("%s: %w", c.x.c.Namespace, err)
	}
	return out, ok, err
}

// selects reports whether a projection is a choice of top-level fields, and nothing else.
func selects(p *projection.Projection) bool {
	paths, _, ok := p.Simple()
	return ok && !slices.ContainsFunc(paths, func(path string) bool { return strings.Contains(path, ".") })
}

// wanted appends the document, or what is wanted of it if there is less to read for that.
func (c *Cursor) wanted(dst []byte) ([]byte, error) {
	if out, ok, err := c.cut(dst); ok || err != nil {
		return out, err
	}
	if c.row.stored != nil {
		return c.x.expand(dst, c.row.stored)
	}
	doc, err := c.x.document(&c.row)
	if err != nil {
		return dst, err
	}
	return append(dst, doc...), nil
}

// topLevel returns the names with which paths begin; nil when there are many, or none were given.
func topLevel(paths []string) []string {
	if paths == nil {
		return nil
	}
	out := []string{}
	for _, path := range paths {
		if name, _, _ := strings.Cut(path, "."); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if len(out) > manyFields {
		return nil
	}
	return out
}

// expand appends the document of a record.
func (x *run) expand(dst, stored []byte) ([]byte, error) {
	out, err := x.c.Codec.Decode(dst, stored)
	if err != nil {
		return out, fmt.Errorf("%s: %w", x.c.Namespace, err)
	}
	return out, nil
}

// complete reads the record of a row that has an entry which is not exact. It reports whether there is one that matches: see read.
func (x *run) complete(r *row) bool {
	if r.doc != nil || r.stored != nil || r.inside || r.scan == nil {
		return true
	}
	var ok bool
	if x.buf, ok = x.read(x.buf[:0], r.key); !ok {
		return false
	}
	r.stored = x.buf
	return x.stands(r.stored)
}

// document returns the document of a row that is complete, valid until the next call: that of the record, or one with the fields of an
// index.
func (x *run) document(r *row) ([]byte, error) {
	if r.doc != nil {
		return r.doc, nil
	}
	if r.stored == nil && r.inside {
		return r.scan.document(r.entry)
	}
	var err error
	x.whole, err = x.expand(x.whole[:0], r.stored)
	return x.whole, err
}

// Err returns the error that ended the walk.
func (c *Cursor) Err() error { return c.x.err }

// Close gives the cursor up. Closing twice is no error.
func (c *Cursor) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	before := c.x.err
	c.root.close()
	if before == nil {
		return c.x.err
	}
	return nil
}

// Stats returns what the stages have counted so far.
func (c *Cursor) Stats() *plan.Stats { return c.stats }
