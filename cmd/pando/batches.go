package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/importer"
)

// batchBytes is how much is committed at a time: large enough that a sync costs little, small enough that an interrupted
// import has got nearly as far as it had read.
const batchBytes = 1 << 20

// shortest is what a measured time is taken for at least, so that a rate has no division by zero.
const shortest = time.Microsecond

// loaded sums up what was brought in.
type loaded struct {
	Keyspace         string  `json:"keyspace"`
	Records          int64   `json:"records"`
	Bytes            int64   `json:"bytes"`
	Seconds          float64 `json:"seconds"`
	RecordsPerSecond float64 `json:"recordsPerSecond"`
	Holds            int64   `json:"holds"` // records in the keyspace afterwards
}

// loader brings a file into a keyspace.
type loader struct {
	a       *app
	file    string
	ks      keyspaceFlag
	layout  layoutFlag
	options importer.Options
	write   writeFlags
	numbers *importer.Sequence // of records without keys; nil until one came
}

// source is the file of a loader while it is read.
type source struct {
	in      io.ReadCloser
	bar     *progress
	chunks  iter.Seq2[*importer.Chunk, error]
	ticks   clock.Clock
	started time.Time
}

// open opens the file, and shows how far it has been read until the source is closed.
func (l *loader) open(ctx context.Context) (*source, error) {
	ticks := clock.System()
	s := &source{ticks: ticks, started: ticks.Now()}
	in, size, err := l.a.openInput(ctx, l.file)
	if err != nil {
		return nil, err
	}
	s.in, s.bar = in, l.a.progress("reading", size)
	s.chunks = importer.Chunks(ctx, importer.NewReader(s.bar.reader(in), l.options), batchBytes)
	return s, nil
}

// finish removes the bar, and returns how long everything took.
func (s *source) finish() time.Duration {
	s.bar.end()
	return max(s.ticks.Now().Sub(s.started), shortest)
}

// close closes the file, which was only read.
func (s *source) close() {
	s.bar.end()
	_ = s.in.Close()
}

// run reads the file, commits its records batch by batch, and prints what that took. Nothing is made of a file of which nothing can be
// read; of an empty one an empty keyspace.
func (l *loader) run(ctx context.Context, dir string) error {
	src, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer src.close()
	next, stop := iter.Pull2(src.chunks)
	defer stop()
	chunk, err, _ := next()
	if err != nil {
		return fmt.Errorf("%s: %w", l.file, err)
	}
	var sum loaded
	err = l.a.using(dir, l.write.options(false), func(db *pando.DB) error {
		k, err := l.ks.made(db, l.layout)
		if err != nil {
			return err
		}
		sum.Keyspace = k.Name()
		for batch := db.NewBatch().In(k); err == nil && chunk != nil; chunk, err, _ = next() {
			if err = l.store(db, batch, k, chunk, &sum); err != nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w (stored before: %s)", l.file, err, countOf(sum.Records, "record"))
		}
		sum.Holds, err = k.Count(nil, nil)
		return err
	})
	if err != nil {
		return err
	}
	sum.Seconds = src.finish().Seconds()
	sum.RecordsPerSecond = float64(sum.Records) / sum.Seconds
	return l.a.print(sum, "%s, %s in %.2f s (%s records/s, %s/s); keyspace %s holds %s\n",
		countOf(sum.Records, "record"), formatSize(sum.Bytes), sum.Seconds, formatCount(int64(sum.RecordsPerSecond)),
		formatSize(int64(float64(sum.Bytes)/sum.Seconds)), sum.Keyspace, formatCount(sum.Holds))
}

// store commits a chunk as one batch, and counts it.
func (l *loader) store(db *pando.DB, batch *pando.Batch, k *pando.Keyspace, chunk *importer.Chunk, sum *loaded) (err error) {
	batch.Reset()
	for key, value := range chunk.All() {
		if key == nil {
			if l.numbers == nil {
				if l.numbers, err = sequenceOf(k); err != nil {
					return err
				}
			}
			key = l.numbers.Next()
		}
		if err := batch.Put(key, value); err != nil {
			return fmt.Errorf("record %d: %w", sum.Records+int64(batch.Len())+1, err)
		}
	}
	size := batch.Size()
	if err := db.Write(batch); err != nil {
		return err
	}
	sum.Records += int64(chunk.Len())
	sum.Bytes += size
	return nil
}

// sequenceOf returns the numbers that follow the highest key of a keyspace.
func sequenceOf(k *pando.Keyspace) (*importer.Sequence, error) {
	it := k.Iter(&pando.IterOptions{KeysOnly: true})
	defer it.Close()
	var highest []byte
	for more := it.Last(); more; more = it.Prev() {
		if highest == nil || bytes.Compare(it.Key(), highest) > 0 {
			highest = append([]byte{}, it.Key()...)
		}
		if k.Layout() != pando.Hash {
			break // where there is an order it is the last one
		}
	}
	if err := it.Err(); err != nil {
		return nil, err
	}
	return importer.NewSequence(highest)
}
