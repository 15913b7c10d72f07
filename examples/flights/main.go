// Command flights shows Pando at work: it loads packages and flights into two keyspaces, gets, scans forwards and backwards,
// counts, and makes a backup.
//
//	go run ./examples/flights
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/pandodb/pando"
)

func main() {
	dir, err := os.MkdirTemp("", "pando-flights-")
	if err == nil {
		err = errors.Join(tour(os.Stdout, dir), os.RemoveAll(dir))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// tour makes a database in dir and prints what it finds in it.
func tour(w io.Writer, dir string) (err error) {
	db, err := pando.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	packages, err := load(db, "packages", loadPackages)
	if err != nil {
		return err
	}
	flights, err := load(db, "flights", loadFlights)
	if err != nil {
		return err
	}

	// One record by its key.
	doc, err := packages.Get([]byte("coreutils"))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "coreutils: %.60s...\n", doc)

	// A snapshot stays as it is, whatever is written meanwhile.
	now := db.Snapshot()
	defer now.Close()
	for key := range now.In(packages).Prefix([]byte("libc")) {
		fmt.Fprintf(w, "package %s\n", key)
	}
	last := 0
	for key := range now.In(flights).RangeReverse([]byte("2013-07-"), []byte("2013-08-")) {
		fmt.Fprintf(w, "flight %s\n", key)
		if last++; last == 3 {
			break
		}
	}
	july, err := now.In(flights).Count([]byte("2013-07-"), []byte("2013-08-"))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d flights in July\n", july)

	// A backup opens as a database.
	target := filepath.Join(dir, "backup")
	if err := db.Backup(context.Background(), target); err != nil {
		return err
	}
	backup, err := pando.Open(target, &pando.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	list, err := backup.Keyspaces()
	for _, k := range list {
		fmt.Fprintf(w, "backup: %d records in %s\n", k.Records, k.Name)
	}
	return errors.Join(err, now.Err(), backup.Close())
}
