package page_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

func addSeeds(f *testing.F) {
	var b page.Builder
	f.Add(build(f, &b, goldenPairs()))
	f.Add(build(f, &b, nil))
	var many []pair
	for i := range 40 {
		many = append(many, pair{[]byte{'k', byte(i)}, record.Record{Kind: record.Inline, Value: make([]byte, i)}})
	}
	f.Add(build(f, &b, many))
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f, 0})
}

// readAll reads raw with an iterator.
func readAll(raw []byte) ([]pair, error) {
	var it page.Iterator
	if err := it.Reset(raw); err != nil {
		return nil, err
	}
	var pairs []pair
	for it.Next() {
		r := it.Record()
		r.Value = bytes.Clone(r.Value)
		pairs = append(pairs, pair{bytes.Clone(it.Key()), r})
	}
	return pairs, it.Err()
}

// FuzzIterator: any bytes are read to their end or refused, and what was read makes a page that reads the same.
func FuzzIterator(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		pairs, err := readAll(raw)
		if !bytes.Equal(raw, before) {
			t.Fatal("the iterator wrote to the page")
		}
		if err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatalf("error %v is not corrupt.Err", err)
			}
			return
		}
		var b page.Builder
		again, err := readAll(build(t, &b, pairs))
		if err != nil || len(again) != len(pairs) {
			t.Fatalf("built again: %d of %d entries, %v", len(again), len(pairs), err)
		}
		for i := range pairs {
			if !bytes.Equal(again[i].Key, pairs[i].Key) || !sameRecord(again[i].Record, pairs[i].Record) {
				t.Fatalf("entry %d: %v, built again %v", i, pairs[i], again[i])
			}
		}
	})
}

// FuzzLoad: Load takes exactly the bytes that the iterator takes, and then answers everything from the same entries, also several at once.
func FuzzLoad(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		pairs, readErr := readAll(raw)
		n, err := page.ResidentSize(raw)
		if err == nil {
			if n > 64+16*len(raw) {
				t.Fatalf("%d bytes for a page of %d", n, len(raw))
			}
			mem := dirty(n)
			if err = page.Load(mem, raw, keyspace); err == nil {
				checkPage(t, page.At(mem), pairs, nil)
				compareBatches(t, page.At(mem))
			}
			if size, oerr := page.OrderedSize(raw); oerr != nil || size > n {
				t.Fatalf("%d bytes instead of %d without room for hash slots, %v", size, n, oerr)
			}
			mem = dirty(n)
			if oerr := page.LoadOrdered(mem, raw); (oerr == nil) != (err == nil) {
				t.Fatalf("Load: %v; LoadOrdered: %v", err, oerr)
			} else if oerr == nil {
				checkPage(t, page.At(mem), pairs, nil)
				compareBatches(t, page.At(mem))
			}
		}
		if (err == nil) != (readErr == nil) {
			t.Fatalf("Load: %v; Iterator: %v", err, readErr)
		}
		if err != nil && !errors.Is(err, corrupt.Err) {
			t.Fatalf("error %v is not corrupt.Err", err)
		}
	})
}
