package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/examples/data"
)

// loadAll fills a collection from each file, with one commit.
func loadAll(ctx context.Context, store *document.Store) error {
	for _, f := range []struct {
		file, collection string
		read             func(r io.Reader) ([]any, error)
	}{
		{data.Airlines, "airlines", readCSV}, {data.Planes, "planes", readCSV}, {data.Flights, "flights", readCSV},
		{data.Packages, "packages", readLines},
	} {
		in, err := data.Files().Open(f.file)
		if err != nil {
			return err
		}
		docs, err := f.read(in)
		if err = errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("read %s: %w", f.file, err)
		}
		if _, err := store.Database("test").Lookup(f.collection).InsertMany(ctx, docs, nil); err != nil {
			return fmt.Errorf("load %s: %w", f.collection, err)
		}
	}
	return nil
}

// readLines makes a document of each line of Extended JSON.
func readLines(r io.Reader) (docs []any, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		docs = append(docs, document.JSON(lines.Text()))
	}
	return docs, lines.Err()
}

// readCSV makes a document of each line: numbers are numbers, and what is missing is left out.
func readCSV(r io.Reader) (docs []any, err error) {
	lines := csv.NewReader(r)
	header, err := lines.Read()
	if err != nil {
		return nil, err
	}
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		var doc bson.D
		for i, text := range line {
			if text == "" || text == "NA" {
				continue
			}
			var value any = text
			if n, err := strconv.ParseFloat(text, 64); err == nil {
				value = n
			}
			doc = append(doc, bson.E{Key: header[i], Value: value})
		}
		docs = append(docs, doc)
	}
}

// printAll prints documents as Extended JSON.
func printAll(w io.Writer, docs iter.Seq2[bson.Raw, error]) error {
	for doc, err := range docs {
		if err != nil {
			return err
		}
		text, err := bson.MarshalExtJSON(doc, false, false)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  %s\n", text)
	}
	return nil
}
