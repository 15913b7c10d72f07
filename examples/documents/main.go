// Command documents shows collections, indexes and queries on real data: it loads flights with their airlines and planes, and
// packages, and asks which carriers are late, what depends on a library, and who flies what. It ends with a transaction and the
// changes that a stream tells of.
//
//	go run ./examples/documents
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

func main() {
	dir, err := os.MkdirTemp("", "pando-documents-")
	if err == nil {
		err = errors.Join(tour(context.Background(), os.Stdout, dir), os.RemoveAll(dir))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// tour makes a store in dir and prints what it finds in it.
func tour(ctx context.Context, w io.Writer, dir string) (err error) {
	store, err := document.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := loadAll(ctx, store); err != nil {
		return err
	}
	for _, step := range []func(context.Context, io.Writer, *document.Store) error{lateCarriers, dependsOn, whoFliesWhat, typed, rebook} {
		if err := step(ctx, w, store); err != nil {
			return err
		}
	}
	return nil
}

// lateCarriers groups flights by carrier, and looks their names up.
func lateCarriers(ctx context.Context, w io.Writer, store *document.Store) error {
	flights := store.Database("test").Lookup("flights")
	pipeline := document.JSON(`[
		{"$match": {"arr_delay": {"$exists": true}}},
		{"$group": {"_id": "$carrier", "flights": {"$sum": 1}, "late": {"$avg": "$arr_delay"}}},
		{"$match": {"flights": {"$gte": 30}}},
		{"$sort": {"late": -1}},
		{"$limit": 3},
		{"$lookup": {"from": "airlines", "localField": "_id", "foreignField": "carrier", "as": "airline"}},
		{"$project": {"name": {"$first": "$airline.name"}, "flights": 1, "late": {"$round": ["$late", 1]}}}]`)
	fmt.Fprintln(w, "The carriers that are latest:")
	return printAll(w, flights.Aggregate(ctx, pipeline, nil))
}

// dependsOn makes an index with an entry for each element of an array, and shows that it is used.
func dependsOn(ctx context.Context, w io.Writer, store *document.Store) error {
	packages := store.Database("test").Lookup("packages")
	if _, err := packages.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "depends", Value: 1}}}); err != nil {
		return err
	}
	filter := bson.D{{Key: "depends", Value: "zlib1g"}}
	plan, err := packages.Explain(ctx, filter, &document.FindOptions{Verbosity: "executionStats"})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Packages that depend on zlib1g: %d by index %s, %d documents examined\n", plan.Lookup("executionStats", "nReturned").AsInt64(),
		plan.Lookup("queryPlanner", "winningPlan", "inputStage", "indexName"), plan.Lookup("executionStats", "totalDocsExamined").AsInt64())
	options := &document.FindOptions{Sort: document.JSON(`{"installedKiB": -1}`), Limit: 2, Projection: document.JSON(`{"summary": 1}`)}
	return printAll(w, packages.Find(ctx, filter, options))
}

// whoFliesWhat joins flights with planes.
func whoFliesWhat(ctx context.Context, w io.Writer, store *document.Store) error {
	flights := store.Database("test").Lookup("flights")
	pipeline := document.JSON(`[
		{"$group": {"_id": {"carrier": "$carrier", "tailnum": "$tailnum"}}},
		{"$lookup": {"from": "planes", "localField": "_id.tailnum", "foreignField": "tailnum", "as": "plane"}},
		{"$unwind": "$plane"},
		{"$group": {"_id": {"carrier": "$_id.carrier", "maker": "$plane.manufacturer"}, "planes": {"$sum": 1}}},
		{"$sort": {"planes": -1, "_id": 1}},
		{"$limit": 3}]`)
	fmt.Fprintln(w, "Who flies what:")
	return printAll(w, flights.Aggregate(ctx, pipeline, nil))
}

// Flight is a flight as a Go struct: it has the fields that this program cares for.
type Flight struct {
	ID      bson.ObjectID `bson:"_id,omitempty"`
	Carrier string        `bson:"carrier"`
	Number  int           `bson:"flight"`
	Dest    string        `bson:"dest"`
	Delay   *float64      `bson:"dep_delay,omitempty"`
}

// typed reads structs instead of documents.
func typed(ctx context.Context, w io.Writer, store *document.Store) error {
	flights := document.Typed[Flight](store.Database("test").Lookup("flights"))
	latest := &document.FindOptions{Sort: document.JSON(`{"dep_delay": -1}`), Limit: 2}
	for f, err := range flights.Find(ctx, nil, latest) {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s%d to %s left %.0f minutes late\n", f.Carrier, f.Number, f.Dest, *f.Delay)
	}
	return nil
}

// rebook marks the flights of February that did not leave, notes how many there were, all as one, and prints what a stream of
// changes tells of it.
func rebook(ctx context.Context, w io.Writer, store *document.Store) error {
	db := store.Database("test")
	flights, log := db.Lookup("flights"), db.Lookup("log")
	stream, err := db.OpenWatch(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	err = store.Transaction(ctx, func(tx *document.Tx) error {
		cancelled := document.JSON(`{"month": 2, "dep_time": {"$exists": false}}`)
		n, err := tx.In(flights).Update(ctx, cancelled, document.JSON(`{"$set": {"rebooked": true}}`), &document.UpdateOptions{Many: true})
		if err != nil {
			return err
		}
		_, err = tx.In(log).Insert(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "rebooked", Value: n.Modified}})
		return err
	})
	if err != nil {
		return err
	}
	for stream.Next(ctx) {
		event := stream.Current()
		fmt.Fprintf(w, "%s in %s\n", event.Lookup("operationType"), event.Lookup("ns", "coll"))
		if event.Lookup("ns", "coll").StringValue() == log.Name() {
			break // that was the last write of the transaction
		}
	}
	return stream.Err()
}
