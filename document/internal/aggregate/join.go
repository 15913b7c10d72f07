package aggregate

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/scratch"
)

// A batch begins small, so that whoever wants the first documents only does not wait, and grows: with an index on the other
// collection its documents are found through it, and without one a whole batch costs a single scan.
const (
	firstBatch   = 16
	largestBatch = 8192
	batchGrowth  = 4
	batchBytes   = 4 << 20
)

// joinCursor is $lookup by equality: it takes a batch of documents, asks the other collection once for all of their values, and
// joins them by a hash table.
type joinCursor struct {
	lookupOutput
	x       *run
	in      Cursor
	foreign path.Path

	size    int // of the next batch
	batch   []joined
	arena   []byte
	ended   bool
	next    int   // in batch
	ready   int   // how many of batch are joined
	match   int   // in batch[next], when unwinding
	numbers []int // of the matches of batch[next], once they are asked for
	wanted  wantedTable
	matches *scratch.Tape

	together int   // how many documents of a batch are joined at a time; 0: all
	alone    bool  // it is one: what has any of its values has them all
	noted    int64 // how many numbers of documents are in wanted
}

// joined is a document with the values by which it is joined.
type joined struct {
	doc    document
	values []int // in wanted
}

// wantedTable is the distinct values of a batch, and which documents have them.
type wantedTable struct {
	values []value
	docs   [][]int
	seed   uint64
	byHash map[uint64][]int
}

// Next implements Cursor.
func (c *joinCursor) Next(ctx context.Context) (document, error) {
	for {
		if c.next == len(c.batch) {
			if err := c.fill(ctx); err != nil {
				return nil, err
			}
		}
		if c.next == c.ready {
			if err := c.join(ctx); err != nil {
				return nil, err
			}
		}
		doc, err := c.emit(&c.batch[c.next])
		if doc != nil || err != nil {
			return doc, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// emit returns the next document made of j, and nil when there is none (left).
func (c *joinCursor) emit(j *joined) (document, error) {
	if c.match == 0 { // not before: together the numbers may be many more than what has been found
		c.numbers = c.wanted.matches(c.numbers[:0], j.values)
	}
	if c.s.unwind == nil {
		c.next++
		c.start()
		for _, m := range c.numbers {
			doc, err := c.matches.At(int64(m))
			if err != nil {
				return nil, err
			}
			if err := c.add(doc); err != nil {
				return nil, err
			}
		}
		return c.finish(j.doc)
	}
	if len(c.numbers) == 0 {
		c.next++
		if !c.s.unwind.preserve {
			return nil, nil
		}
		return c.unwound(j.doc, value{}, 0), nil
	}
	doc, err := c.matches.At(int64(c.numbers[c.match]))
	if err != nil {
		return nil, err
	}
	i := c.match
	if c.match++; c.match == len(c.numbers) {
		c.match = 0
		c.next++
	}
	return c.unwound(j.doc, documentValue(doc), int64(i)), nil
}

// fill reads the next batch.
func (c *joinCursor) fill(ctx context.Context) error {
	c.size = min(max(c.size*batchGrowth, firstBatch), largestBatch)
	c.batch, c.arena, c.next, c.ready, c.match = c.batch[:0], c.arena[:0], 0, 0, 0
	var ends []int
	for !c.ended && len(ends) < c.size && len(c.arena) < batchBytes {
		doc, err := c.in.Next(ctx)
		if errors.Is(err, io.EOF) {
			c.ended = true
			break
		}
		if err != nil {
			return err
		}
		c.arena = append(c.arena, doc...)
		ends = append(ends, len(c.arena))
	}
	if len(ends) == 0 {
		return io.EOF
	}
	from := 0
	for _, to := range ends {
		c.batch = append(c.batch, joined{doc: document(c.arena[from:to])})
		from = to
	}
	return nil
}

// join finds the matches of the rest of the batch. Where these would take too much memory, and there is nowhere to put them, it
// takes less of the batch at a time.
func (c *joinCursor) join(ctx context.Context) error {
	n := len(c.batch) - c.ready
	if c.together > 0 {
		n = min(n, c.together)
	}
	for {
		err := c.joinSome(ctx, c.batch[c.ready:c.ready+n])
		if errors.Is(err, mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed) && n > 1 {
			n /= 2
			c.together = n
			continue
		}
		if err != nil {
			return err
		}
		c.ready += n
		return nil
	}
}

func (c *joinCursor) joinSome(ctx context.Context, batch []joined) error {
	c.want(batch)
	if c.matches != nil {
		if err := c.matches.Close(); err != nil {
			return err
		}
	}
	c.matches = scratch.NewTape(c.x.o.allowance(), "$lookup")
	found, err := c.x.env.Find(ctx, c.s.o.Database, c.s.from, &Request{
		Filter: equals(c.s.foreign, c.wanted.values), Collation: c.s.o.Collation, Let: c.s.o.Let, Now: c.s.o.Now,
	})
	if err != nil {
		return err
	}
	err = drain(ctx, found, func(doc document) error {
		n := int(c.matches.Len())
		c.foreign.Walk(path.Document(doc), path.Each, func(v value, _ int) bool {
			c.found(v, n)
			return false
		})
		if !c.alone && c.noted > c.x.o.memory()/numberBytes {
			return mongoerror.New(mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed, "$lookup has found %d pairs of documents", c.noted)
		}
		return c.matches.Append(doc)
	})
	if err != nil {
		return joinClose(err, found)
	}
	return nil
}

const numberBytes = 8 // of a document in wanted

// want gathers the values of the batch.
func (c *joinCursor) want(batch []joined) {
	c.wanted = newWantedTable(len(batch))
	for i := range batch {
		j := &batch[i]
		j.values = j.values[:0]
		for _, v := range c.s.localValues(j.doc) {
			j.values = append(j.values, c.wanted.add(v, c.s.o))
		}
		slices.Sort(j.values)
		j.values = slices.Compact(j.values)
	}
	c.noted = 0
	if c.alone = len(batch) == 1; c.alone {
		batch[0].values = batch[0].values[:min(len(batch[0].values), 1)]
	}
}

// found notes that the document number n of the other collection has a value.
func (c *joinCursor) found(v value, n int) {
	if v.Type == 0 || v.Type == bsoncore.TypeUndefined {
		v = null()
	}
	if i := c.wanted.find(c.wanted.hash(v, c.s.o), v, c.s.o); i >= 0 {
		if c.alone {
			i = 0
		}
		list := c.wanted.docs[i]
		if len(list) == 0 || list[len(list)-1] != n {
			c.wanted.docs[i] = append(list, n)
			c.noted++
		}
	}
}

func newWantedTable(n int) wantedTable {
	return wantedTable{seed: rand.Uint64(), byHash: make(map[uint64][]int, n)}
}

func (t *wantedTable) hash(v value, o *Options) uint64 { return order.Hash(t.seed, v, o.Collation) }

func (t *wantedTable) find(hash uint64, v value, o *Options) int {
	for _, i := range t.byHash[hash] {
		if order.Equal(t.values[i], v, o.Collation) {
			return i
		}
	}
	return -1
}

func (t *wantedTable) add(v value, o *Options) int {
	if v.Type == bsoncore.TypeUndefined {
		v = null()
	}
	hash := t.hash(v, o)
	if i := t.find(hash, v, o); i >= 0 {
		return i
	}
	t.byHash[hash] = append(t.byHash[hash], len(t.values))
	t.values, t.docs = append(t.values, v), append(t.docs, nil)
	return len(t.values) - 1
}

// matches appends the numbers of the documents that have one of the values, in their order.
func (t *wantedTable) matches(list, values []int) []int {
	for _, i := range values {
		list = append(list, t.docs[i]...)
	}
	if len(values) == 1 {
		return list
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Close implements Cursor.
func (c *joinCursor) Close() error {
	if c.matches != nil {
		if err := c.matches.Close(); err != nil {
			return joinClose(err, c.in)
		}
	}
	return c.in.Close()
}
