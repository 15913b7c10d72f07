package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// A $sample of all documents needs few of them: most are passed over without a look. How many to pass over is what is drawn: algorithm L
// of Li, "Reservoir-Sampling Algorithms of Time Complexity O(n(1+log(N/n)))" (1994), which needs no count beforehand.

const (
	// maxDrawn is how many documents are drawn so.
	maxDrawn = 1 << 14
	// passedPerCheck is after how many records a walk looks whether it has been cancelled.
	passedPerCheck = 1 << 12
)

// reservoir is records that were drawn from those that have come by.
type reservoir struct {
	size    int
	records [][]byte
	bytes   int64 // of them
	weight  float64
	left    int64 // records to pass over
	passed  int
	chosen  bool // the one that came last is drawn
}

// wanted reports whether the walk stops at a record: it is drawn, or it is time to see whether the walk is to go on.
func (r *reservoir) wanted([]byte) bool {
	r.passed++
	if r.chosen = r.left == 0; !r.chosen {
		r.left--
	}
	return r.chosen || r.passed%passedPerCheck == 0
}

// take puts a record in that is drawn: in place of another one, when there are enough.
func (r *reservoir) take(record []byte) {
	r.bytes += int64(len(record))
	if len(r.records) < r.size {
		r.records = append(r.records, bytes.Clone(record))
	} else {
		at := rand.IntN(r.size)
		r.bytes -= int64(len(r.records[at]))
		r.records[at] = append(r.records[at][:0], record...)
	}
	if len(r.records) == r.size {
		r.draw()
	}
}

// draw draws how many records to pass over.
func (r *reservoir) draw() {
	const most = 1 << 60
	uniform := func() float64 { return 1 - rand.Float64() } // never 0
	r.weight *= math.Exp(math.Log(uniform()) / float64(r.size))
	r.left = most
	if n := math.Log(uniform()) / math.Log1p(-r.weight); n < most {
		r.left = int64(n)
	}
}

// draw returns so many documents of a collection, drawn at random, in any order, and all if there are no more; nil when they are many, or
// take more memory than a query may have.
func (m *moment) draw(ctx context.Context, x *collection, size int64) (*drawn, error) {
	if size > maxDrawn {
		return nil, nil
	}
	r := reservoir{size: int(size), weight: 1}
	it := m.reader.Iter(x.records, nil)
	var err error
	for err == nil && r.bytes <= m.store.options.QueryMemoryBytes && it.NextWanted(r.wanted) {
		if r.chosen {
			r.take(it.Value())
		}
		err = errors.Join(ctx.Err(), it.Err())
	}
	if err = errors.Join(err, it.Err(), it.Close()); err != nil {
		return nil, x.orDropped(err)
	}
	if r.bytes > m.store.options.QueryMemoryBytes {
		return nil, nil
	}
	return &drawn{x: x, records: r.records}, nil
}

// drawn is documents that were drawn. It implements aggregate.Cursor.
type drawn struct {
	x       *collection
	records [][]byte
	doc     []byte
}

// Next implements aggregate.Cursor.
func (d *drawn) Next(ctx context.Context) (document, error) {
	if len(d.records) == 0 {
		return nil, io.EOF
	}
	var err error
	if d.doc, err = d.x.codec.Decode(d.doc[:0], d.records[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", d.x.name.Load(), err)
	}
	d.records = d.records[1:]
	return d.doc, ctx.Err()
}

// Close implements aggregate.Cursor.
func (d *drawn) Close() error { return nil }
