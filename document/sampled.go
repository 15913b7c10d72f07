package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// A $sample of all documents needs few of them: most are passed over without a look. How many to pass over is what is drawn: algorithm L
// of Li, "Reservoir-Sampling Algorithms of Time Complexity O(n(1+log(N/n)))" (1994), which needs no count beforehand.
//
// Where they are very many even that takes long. Then their positions are drawn: trees know how many records are below each node, so that
// every document is as likely as any other, wherever keys lie close together.

const (
	// maxDrawn is how many documents are drawn so.
	maxDrawn = 1 << 14
	// passedPerCheck is after how many records a walk looks whether it has been cancelled.
	passedPerCheck = 1 << 12
	// passedPerSeek is how many records a walk passes over in the time of counting up to one in the middle of a tree, which decodes a leaf
	// or two: of documents that are much alike there are thousands in one. Where they are less alike it is a tenth of that.
	passedPerSeek = 16_000
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

// farthest returns how many records a walk passes over in the time of drawing so many by their positions: to count takes a look around each
// change that has not settled. In a transaction there is no such way.
func (m *moment) farthest(size int64) int {
	if m.snap == nil {
		return math.MaxInt
	}
	z := m.store.db.Metrics()
	return int(min((size+int64(z.LastSeq-min(z.Settled, z.LastSeq)))*passedPerSeek, math.MaxInt))
}

// draw returns so many documents of a collection, drawn at random, in any order, and all if there are no more; nil when they are many, or
// take more memory than a query may have.
func (m *moment) draw(ctx context.Context, x *collection, size int64) (*drawn, error) {
	if size > maxDrawn {
		return nil, nil
	}
	r := reservoir{size: int(size), weight: 1}
	farthest := m.farthest(size)
	it := m.reader.Iter(x.records, nil)
	var err error
	for err == nil && r.passed < farthest && r.bytes <= m.store.options.QueryMemoryBytes && it.NextWanted(r.wanted) {
		if r.chosen {
			r.take(it.Value())
		}
		err = errors.Join(ctx.Err(), it.Err())
	}
	if err = errors.Join(err, it.Err(), it.Close()); err != nil {
		return nil, x.orDropped(err)
	}
	if r.passed >= farthest {
		return m.drawByPosition(ctx, x, size)
	}
	if r.bytes > m.store.options.QueryMemoryBytes {
		return nil, nil
	}
	return &drawn{x: x, records: r.records}, nil
}

// drawByPosition is draw for a collection of many more documents, in a snapshot.
func (m *moment) drawByPosition(ctx context.Context, x *collection, size int64) (*drawn, error) {
	records := m.snap.In(x.records)
	n, err := records.Count(nil, nil)
	if err != nil {
		return nil, x.orDropped(err)
	}
	d := &drawn{x: x}
	var from []byte
	passed, bytes := int64(0), int64(0)
	for _, at := range positions(n, size) {
		key, record, err := records.Nth(from, nil, at-passed)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, x.orDropped(err)
		}
		d.records = append(d.records, record)
		if bytes += int64(len(record)); bytes > m.store.options.QueryMemoryBytes {
			return nil, nil
		}
		from, passed = append(key, 0), at+1 // so that all of them together count once
	}
	return d, nil
}

// positions draws so many different numbers below n, and all if there are no more, in ascending order: Floyd's algorithm.
func positions(n, size int64) []int64 {
	drawn := make(map[int64]struct{}, size)
	for i := max(0, n-size); i < n; i++ {
		at := rand.Int64N(i + 1)
		if _, twice := drawn[at]; twice {
			at = i
		}
		drawn[at] = struct{}{}
	}
	return slices.Sorted(maps.Keys(drawn))
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
