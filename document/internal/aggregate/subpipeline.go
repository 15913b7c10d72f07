package aggregate

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/scratch"
)

// subPipelineCursor is $lookup with a pipeline. The pipeline is parsed anew for each document, with the values of its variables
// as constants: so they reach the filters that the other collection answers. What does not depend on the document is run once.
type subPipelineCursor struct {
	lookupOutput
	x  *run
	in Cursor

	cache   *scratch.Tape // what the pipeline, or its prefix, gave
	noCache bool          // it does not fit
	doc     document      // at hand, when unwinding
	inner   Cursor
	index   int64
	parsed  int // what the call kept of constants before the first document
}

// Next implements Cursor.
func (c *subPipelineCursor) Next(ctx context.Context) (document, error) {
	for {
		if c.inner != nil {
			match, err := c.inner.Next(ctx)
			if err == nil {
				c.index++
				return c.unwound(c.doc, documentValue(match), c.index-1), nil
			}
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			err = c.inner.Close()
			if c.inner = nil; err != nil {
				return nil, err
			}
			if c.index == 0 && c.s.unwind.preserve {
				return c.unwound(c.doc, value{}, 0), nil
			}
		}
		doc, err := c.in.Next(ctx)
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		inner, err := c.matching(ctx, doc)
		if err != nil {
			return nil, err
		}
		if c.s.unwind != nil {
			c.doc, c.inner, c.index = append(c.doc[:0], doc...), inner, 0
			continue
		}
		return c.gather(ctx, doc, inner)
	}
}

func (c *subPipelineCursor) gather(ctx context.Context, doc document, inner Cursor) (document, error) {
	c.start()
	if err := drain(ctx, inner, c.add); err != nil {
		return nil, joinClose(err, inner)
	}
	return c.finish(doc)
}

// matching opens the pipeline for a document.
func (c *subPipelineCursor) matching(ctx context.Context, doc document) (Cursor, error) {
	if c.s.fixed != nil {
		if in, err := c.cached(ctx, c.s.fixed); in != nil || err != nil {
			return in, err
		}
		return c.s.fixed.Run(ctx, c.x.env)
	}
	let, err := evalLet(c.s.let, doc)
	if err != nil {
		return nil, err
	}
	c.s.o.Call.Rewind(c.parsed) // the pipeline of the document before is gone
	o := *c.s.o
	o.Let = append(slices.Clone(o.Let), let...)
	if c.s.prefix > 0 && !c.noCache {
		prefix, err := parsePipeline(c.s.pipeline[:c.s.prefix], &o, "$lookup")
		if err != nil {
			return nil, err
		}
		if in, err := c.cached(ctx, prefix); in != nil || err != nil {
			if err != nil {
				return nil, err
			}
			return c.suffix(ctx, &o, in)
		}
	}
	stages := c.s.pipeline
	if c.s.local != nil {
		match := fields("$match", documentValue(equals(c.s.foreign, c.s.localValues(doc))))
		at := 0
		if startsWithDocuments(stages) {
			at = 1 // nothing comes before the documents
		}
		stages = slices.Insert(slices.Clone(stages), at, match)
	}
	p, err := parsePipeline(stages, &o, "$lookup")
	if err != nil {
		return nil, err
	}
	return p.Run(ctx, c.x.env)
}

// suffix runs the stages behind the cached ones.
func (c *subPipelineCursor) suffix(ctx context.Context, o *Options, in Cursor) (Cursor, error) {
	steps, err := (&parser{o: o, inside: "$lookup"}).steps(c.s.pipeline[c.s.prefix:])
	if err != nil {
		return nil, err
	}
	return openSteps(ctx, &run{env: c.x.env, o: o}, optimise(steps), in)
}

// cached returns what a pipeline gives, which is kept from its first run. It returns nil when that does not fit.
func (c *subPipelineCursor) cached(ctx context.Context, p *Pipeline) (Cursor, error) {
	if c.noCache {
		return nil, nil
	}
	if c.cache == nil {
		in, err := p.Run(ctx, c.x.env)
		if err != nil {
			return nil, err
		}
		c.cache = scratch.NewTape(c.x.o.allowance(), "$lookup")
		full := false
		err = drain(ctx, in, func(doc document) error {
			err := c.cache.Append(doc)
			full = errors.Is(err, mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed)
			return err
		})
		if full {
			c.noCache = true
			return nil, errors.Join(c.cache.Close(), in.Close())
		}
		if err != nil {
			return nil, joinClose(err, in)
		}
	}
	return &tapeCursor{tape: c.cache}, nil
}

// Close implements Cursor.
func (c *subPipelineCursor) Close() error {
	var list []error
	if c.inner != nil {
		list = append(list, c.inner.Close())
	}
	if c.cache != nil {
		list = append(list, c.cache.Close())
	}
	return errors.Join(append(list, c.in.Close())...)
}
