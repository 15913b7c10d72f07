package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Chunk holds some records, in their order.
type Chunk struct {
	data []byte
	ends []int // where each key and each value ends in data: two for each record
	keys bool  // records have keys
	err  error // what ended the input behind these records
}

// Len returns the number of records.
func (c *Chunk) Len() int { return len(c.ends) / 2 }

// All walks over the records. A key is nil when the records have none.
func (c *Chunk) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		start := 0
		for i := 0; i < len(c.ends); i += 2 {
			middle, end := c.ends[i], c.ends[i+1]
			key := c.data[start:middle:middle]
			if !c.keys {
				key = nil
			}
			if !yield(key, c.data[middle:end:end]) {
				return
			}
			start = end
		}
	}
}

// endBytes is what it takes to say where a record is.
const endBytes = 2 * 8

// fill takes records in until there are size bytes of them and of their ends, or the input ends.
func (c *Chunk) fill(r Reader, size int) {
	c.data, c.ends, c.err = append(c.data[:0], 0)[:0], c.ends[:0], nil // not nil: a key of no bytes is one
	for len(c.data)+c.Len()*endBytes < size {
		key, value, err := r.Next()
		if err != nil {
			c.err = err
			return
		}
		c.keys = key != nil
		c.data = append(c.data, key...)
		c.ends = append(c.ends, len(c.data))
		c.data = append(c.data, value...)
		c.ends = append(c.ends, len(c.data))
	}
}

// chunksAhead is how many chunks exist: one is being filled while another is being used.
const chunksAhead = 2

// Chunks walks over the records of r in chunks of about size bytes; a chunk is valid for its step. They are read ahead by a
// goroutine, which ends when the loop ends, or, if it waits for input then, when that arrives. An error is the last step,
// behind all records before it; that ctx is done is such an error.
func Chunks(ctx context.Context, r Reader, size int) iter.Seq2[*Chunk, error] {
	return func(yield func(*Chunk, error) bool) {
		filled := make(chan *Chunk, chunksAhead)
		free := make(chan *Chunk, chunksAhead)
		for range chunksAhead {
			free <- new(Chunk)
		}
		defer close(free)
		go func() {
			for c := range free {
				c.fill(r, size)
				filled <- c // has room for all chunks
				if c.err != nil {
					return
				}
			}
		}()
		for {
			var c *Chunk
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			case c = <-filled:
			}
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			if c.Len() > 0 && !yield(c, nil) {
				return
			}
			if c.err != nil {
				if !errors.Is(c.err, io.EOF) {
					yield(nil, fmt.Errorf("read: %w", c.err))
				}
				return
			}
			free <- c
		}
	}
}
