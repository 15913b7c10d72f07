package main

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/internal/importer"
)

// batches makes documents of the records of each chunk, one chunk ahead of the loop. An error is the last step.
func batches(chunks iter.Seq2[*importer.Chunk, error]) iter.Seq2[[]bson.Raw, error] {
	type batch struct {
		docs []bson.Raw
		err  error
	}
	return func(yield func([]bson.Raw, error) bool) {
		ahead, left := make(chan batch, 1), make(chan struct{})
		go func() {
			defer close(ahead)
			first := 1
			for chunk, err := range chunks {
				b := batch{err: err}
				if err == nil {
					b.docs, b.err = documentsOf(chunk, first)
					first += chunk.Len()
				}
				select {
				case ahead <- b:
				case <-left:
					return
				}
				if b.err != nil {
					return
				}
			}
		}()
		defer close(left)
		for b := range ahead {
			if !yield(b.docs, b.err) || b.err != nil {
				return
			}
		}
	}
}

// documentsOf makes documents of a chunk, on all processors: that takes longer than to store them. first is the number of its
// first record.
func documentsOf(chunk *importer.Chunk, first int) ([]bson.Raw, error) {
	type record struct{ key, value []byte }
	records := make([]record, 0, chunk.Len())
	for key, value := range chunk.All() {
		records = append(records, record{key, value})
	}
	docs, errs := make([]bson.Raw, len(records)), make([]error, len(records))
	workers := min(runtime.GOMAXPROCS(0), len(records))
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := w; i < len(records); i += workers {
				docs[i], errs[i] = documentOf(records[i].key, records[i].value)
			}
		})
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", first+i, err)
		}
	}
	return docs, nil
}

// documentOf makes a document of a record: its Extended JSON, and its key, if it has one, as _id.
func documentOf(key, value []byte) (bson.Raw, error) {
	if len(value) == 0 || value[0] != '{' {
		return nil, fmt.Errorf("%w: a document is a JSON object", importer.ErrSyntax)
	}
	if err := importer.WellFormed(value); err != nil {
		return nil, fmt.Errorf("%w: it %w", importer.ErrSyntax, err)
	}
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON(value, false, &doc); err != nil {
		return nil, fmt.Errorf("%w: no Extended JSON: %w", importer.ErrSyntax, err)
	}
	if key == nil {
		return doc, nil
	}
	if _, err := doc.LookupErr("_id"); err == nil {
		return nil, errors.New("the document has an _id already, without --key")
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	named := bson.D{{Key: "_id", Value: string(key)}}
	for _, e := range elements {
		named = append(named, bson.E{Key: e.Key(), Value: e.Value()})
	}
	return bson.Marshal(named)
}
