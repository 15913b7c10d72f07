package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/examples/data"
)

// load fills a keyspace with one atomic batch.
func load(db *pando.DB, name string, fill func(*pando.Batch) error) (*pando.Keyspace, error) {
	ks, err := db.Keyspace(name, nil)
	if err != nil {
		return nil, err
	}
	batch := db.NewBatch()
	if err := fill(batch.In(ks)); err != nil {
		return nil, fmt.Errorf("load %s: %w", name, err)
	}
	return ks, db.Write(batch)
}

// loadPackages stores each line under the name of the package.
func loadPackages(b *pando.Batch) error {
	f, err := data.Files().Open(data.Packages)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var doc struct {
			Name string `json:"_id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
			return err
		}
		if err := b.Put([]byte(doc.Name), lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// loadFlights stores each line under a key that sorts by time: hour, carrier, number.
func loadFlights(b *pando.Batch) error {
	f, err := data.Files().Open(data.Flights)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := csv.NewReader(f)
	header, err := lines.Read()
	if err != nil {
		return err
	}
	column := map[string]int{}
	for i, name := range header {
		column[name] = i
	}
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		key := line[column["time_hour"]] + " " + line[column["carrier"]] + line[column["flight"]]
		if err := b.Put([]byte(key), []byte(strings.Join(line, ","))); err != nil {
			return err
		}
	}
}
